"""Compiles modules without running them. Its arguments are a folder and the expected tag of the Python, its input is paths below the folder, one a line.

For each path it writes one byte: "+" when the bytecode is there, "-" when there is none, which does not matter. The source text is hostile: it may make
the compiler use up memory or time, or end this process. So limits come first, and whoever started it goes on behind the file that it ended at.
"""

import importlib.util
import marshal
import os
import resource
import sys
import warnings
from _imp import source_hash

LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_AS, 2 << 30),
    (resource.RLIMIT_CPU, 60),
    (resource.RLIMIT_FSIZE, 64 << 20),
    (resource.RLIMIT_NOFILE, 64),
)
UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552


def compile_file(root, path, tag):
    folder, name = os.path.split(os.path.join(root, path))
    with open(os.path.join(folder, name), "rb") as f:
        source = f.read()
    code = compile(source, os.fsdecode(path), "exec", dont_inherit=True, optimize=0)
    magic = importlib.util.MAGIC_NUMBER
    digest = source_hash(int.from_bytes(magic[:2] + b"\r\n", "little"), source)
    data = magic + UNCHECKED_HASH + digest + marshal.dumps(code)
    cache = os.path.join(folder, b"__pycache__")
    os.makedirs(cache, 0o755, exist_ok=True)
    target = os.path.join(cache, name[: -len(b".py")] + b"." + tag.encode() + b".pyc")
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444)
    try:
        with open(fd, "wb") as f:
            f.write(data)
    except BaseException:
        os.unlink(target)
        raise


def main():
    root, tag = os.fsencode(sys.argv[1]), sys.argv[2]
    if sys.implementation.cache_tag != tag:
        sys.exit("this Python is " + str(sys.implementation.cache_tag) + ", not " + tag)
    for what, most in LIMITS:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    os.umask(0)
    warnings.simplefilter("ignore")
    for path in sys.stdin.buffer.read().splitlines():
        try:
            compile_file(root, path, tag)
        except Exception:
            os.write(1, b"-")
        else:
            os.write(1, b"+")


main()
