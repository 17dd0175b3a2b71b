"""The driver: limits itself, then answers one request after the other.

A request is the JSON array [script, code], where script says that code is a program and not a cell. The reply is a JSON object; see Finder.report.
"""

import gc
import posix
import sys
import time

ADDRESS_SPACE = 512 << 20  # bytes
STACK = 96 << 20  # bytes; a process leaves room for that much, whatever its limit was when it began
CPU_SECONDS = 10  # of one scan


def limit():
    """Bounds what any input can make this process use."""
    import resource

    for which, most in (
        (resource.RLIMIT_AS, ADDRESS_SPACE), (resource.RLIMIT_NPROC, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 16),
    ):
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if hard == resource.RLIM_INFINITY or hard > STACK:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, hard))  # Python 3.10 has no other bound for nested expressions
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + CPU_SECONDS, hard))


def silence():
    """Warnings about code that nobody runs here are of no use, and showing them imports modules."""
    try:
        import _warnings

        _warnings.filters[:] = [("ignore", None, Warning, None, 0)]
    except (ImportError, AttributeError, TypeError):
        pass


def parse(text):
    return compile(text, "<code>", "exec", ONLY_AST, True)


def scan(script, text):
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    shell, lines, invalid = [], [], False
    try:
        try:
            tree = parse(text)
        except SyntaxError:
            if script:
                raise
            cell = Cell(text)
            lines = cell.shell
            if installs(text):
                shell = [s for s in lines if installs(s)]
            text = cell.text
            tree = parse(text)
        finder = Finder(text)
        finder.find(tree)
    except Exception:  # also MemoryError and RecursionError
        tree, invalid = None, True
        finder = Finder(text)
        tolerant(text, finder)
    finder.shell = shell + finder.shell
    for line in lines[:FEW]:
        finder.programs(line, Context())
    return {**finder.report(), "invalid": invalid}


try:
    from _json import encode_basestring_ascii as quoted, scanstring as unquoted
except ImportError:
    from json.encoder import py_encode_basestring_ascii as quoted
    from json.decoder import py_scanstring as unquoted


def encoded(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ",".join(quoted(k) + ":" + encoded(v) for k, v in value.items()) + "}"
    return "[" + ",".join(map(encoded, value)) + "]"


def receive(n):
    data = b""
    while len(data) < n:
        more = posix.read(3, min(n - len(data), 1 << 20))
        if not more:
            sys.exit()
        data += more
    return data


def main():
    gc.disable()  # trees have no cycles
    silence()
    more_time = limit()
    while True:
        payload = receive(int.from_bytes(receive(5)[:4], "big")).decode()
        more_time()
        text, _ = unquoted(payload, payload.index('"') + 1, True)
        reply = encoded(scan(payload.startswith("[true"), text)).encode()
        frame = len(reply).to_bytes(4, "big") + b"\x01" + reply
        while frame:
            frame = frame[posix.write(3, frame):]


if __name__ == "__main__":
    main()
