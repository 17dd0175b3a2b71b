"""The kernel: one stateful Python interpreter, driven by the guest.

A thin driver around IPython's InteractiveShell. The guest owns every descriptor it starts with:

    fd 0    /dev/null
    fd 1,2  pipes; all text goes there: Python's, C libraries', child processes'
    fd 3    a stream socket for frames: u32 big-endian length, u8 kind, payload
    fd 4    the reading end of the acknowledgement pipe

Kind 1 is a JSON message, either way. Kind 2 (kernel to guest, empty) is a sync: the guest forwards what is in both
pipes, then writes one byte to the acknowledgement pipe. Kinds 3 and 4 are text of stdout and stderr. Before it forwards
a frame the guest also forwards what was in the pipes. Text and messages therefore keep their order as long as no later
text reaches a pipe before an earlier frame was read; the Outlet below sees to that. It pays for a sync only where text
really follows, and much text that changes between stdout and stderr goes in frames.

User code shares this process and may do anything to it. The host trusts nothing that comes from here; what this file
does is to keep an honest program's mistakes (closed descriptors, odd signals, patched modules) from ending the kernel.
"""

import sys

if __name__ == "__main__":
    # The user's namespace becomes sys.modules["__main__"]; classes made here must not claim to live in it.
    __name__ = "cove_kernel"
    sys.modules["cove_kernel"] = sys.modules["__main__"]
    sys.path[:] = [p for p in sys.path if p != __file__.rpartition("/")[0]]

import asyncio
import atexit
import base64
import bdb
import binascii
import builtins
import codeop
import ctypes
import errno
import faulthandler
import fcntl
import functools
import gc
import getpass
import importlib.machinery
import inspect
import io
import itertools
import json
import keyword
import linecache
import opcode
import os
import posix
import random
import resource
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import traceback
import types
import typing
import warnings
from collections import deque

MESSAGE, SYNC, TEXT = 1, 2, 2  # TEXT + 1 is for text of stdout, TEXT + 2 for that of stderr
MESSAGE_LIMIT = 20_000_000  # bytes of one encoded message; the guest refuses more
TEXT_LIMIT = 100_000  # characters of one line of a traceback
TRACE_LIMIT = 500  # frames and lines of a traceback kept at either end
READ_BYTES = 64 * 1024  # at a time: for much more, a buffer is mapped and unmapped, which takes longer than the reading
FLUSH_BYTES = 64 * 1024
FLUSH_SECONDS = 0.01
# Lines written within one flush interval that still go out at once, so that the last words before a crash are seen.
EAGER_FLUSHES = 8
MANY_LINES = 100  # of one stream within one flush interval, from which on the stream collects its text
SHORT_LINE = 4096  # bytes; longer ones are not collected
HIGH_FD = 1000
PAYLOAD_MIME = "application/vnd.cove.payload+json"  # what clients of notebooks are to do after a cell, in a display
BOTH = -1
BALLAST_BLOCKS = 512  # more than a warm interpreter has free of one size
SHUTDOWN_SECONDS = 2  # for the exit functions of user code

# Users replace functions of these modules in tests and by accident.
_read, _write, _exit, _getcwd, _urandom = os.read, os.write, os._exit, os.getcwd, os.urandom
_getrlimit, _setrlimit, _prlimit, _collect, _seed = resource.getrlimit, resource.setrlimit, resource.prlimit, gc.collect, random.seed
_monotonic, _sleep, _ident, _poll = time.monotonic, time.sleep, threading.get_ident, select.poll
_current_task = asyncio.current_task
_find_on_path = importlib.machinery.PathFinder.find_spec


# ---------------------------------------------------------------------------------------------------------------------
# Interrupts


class Interrupts:
    """Decides what a SIGINT does: raise in user code, wait while the protocol is busy, nothing when idle."""

    def __init__(self):
        self.main = _ident()
        self.enabled = False  # user code runs
        self.depth = 0  # protocol code runs in the main thread
        self.pending = False
        self.swallowed = False  # raised where Python ignores exceptions
        self.starting = False  # a request is between the socket and user code
        self.postponed = []
        self.task = None  # the task of a cell that awaits
        self.cancelled = False  # that task was cancelled by an interrupt
        self.delivered = False  # an interrupt reached this execution
        self.is_waiting = lambda: False  # a request has come, unread
        self._set = signal.signal
        self._get = signal.getsignal

    def install(self):
        self._set(signal.SIGINT, self.handle)
        signal.signal = self._signal
        signal.getsignal = lambda signum: self._unwrap(self._get(signum))

    def restore(self):
        """Takes SIGINT back from user code (pdb and some libraries keep it)."""
        if self._get(signal.SIGINT) != self.handle:
            self._set(signal.SIGINT, self.handle)

    def handle(self, signum, frame):
        if not self.enabled:
            if self.starting or self.is_waiting():
                self.pending = True
        elif self.depth:
            self.pending = True
        else:
            self.deliver()

    def deliver(self):
        self.delivered = True
        task = self.task
        if task is not None and not task.done():
            loop = task.get_loop()
            if loop.is_running() and _current_task(loop) is None:
                # The cell sleeps in an await. Raising here would tear up the loop's own bookkeeping.
                self.cancelled = True
                task.cancel()
                loop.call_soon_threadsafe(lambda: None)
                return
        raise KeyboardInterrupt

    def leave(self):
        """Ends protocol code in the main thread, then does what had to wait for it."""
        self.depth -= 1
        if self.depth or not (self.pending or self.postponed):
            return
        while self.postponed:
            self._call(*self.postponed.pop(0))
        if self.pending and self.enabled:
            self.pending = False
            self.deliver()

    def _signal(self, signum, handler):
        # A handler that raises (signal.alarm with a TimeoutError is common) must not cut a frame in two.
        if callable(handler) and not isinstance(handler, signal.Handlers) and handler != self.handle:
            def guarded(signum, frame, handler=handler):
                if self.depth:
                    self.postponed.append((handler, signum, frame))
                else:
                    self._call(handler, signum, frame)
            guarded.cove_handler = handler
            return self._unwrap(self._set(signum, guarded))
        return self._unwrap(self._set(signum, handler))

    def repeat(self):
        """Sends the interrupt again that a finalizer swallowed."""
        self.swallowed = False
        if self.enabled:
            signal.pthread_kill(self.main, signal.SIGINT)

    def _call(self, handler, signum, frame):
        if self.enabled:
            handler(signum, frame)
            return
        try:
            handler(signum, frame)
        except BaseException:
            traceback.print_exc()  # an alarm that outlived its cell has nothing to interrupt

    @staticmethod
    def _unwrap(handler):
        return getattr(handler, "cove_handler", handler)


class Guard:
    """The lock around protocol code; in the main thread it also holds signals back.

    threading's locks look at the clock whenever they are taken, which is a system call in the first seconds of a sandbox.
    This one is the one key of a dict, which setdefault() takes in a single step. Whoever finds itself to be the holder is inside
    already, in a finalizer for example, and leaves the key to the frame below.
    """

    def __init__(self, interrupts):
        self.interrupts = interrupts
        self.holder = {}
        self.nested = []  # for each `with` under way whether it was inside already

    def take(self, me, holder):
        """Waits for the key. A holder keeps it for as long as the guest takes to read what it writes."""
        while holder.setdefault(0, me) != me:
            _sleep(0.0005)

    def __enter__(self):
        me, holder = _ident(), self.holder
        if me == self.interrupts.main:
            self.interrupts.depth += 1
        inside = holder.get(0) == me
        if not inside:
            self.take(me, holder)
        self.nested.append(inside)

    def __exit__(self, *exc):
        if self.nested and not self.nested.pop():
            self.holder.pop(0, None)
        if _ident() == self.interrupts.main:
            self.interrupts.leave()


# ---------------------------------------------------------------------------------------------------------------------
# Output: text and messages, in order


def write_all(fd, data):
    view = memoryview(data)
    while len(view):
        view = view[_write(fd, view):]


class Outlet:
    """Everything that leaves the kernel goes through here, under one lock.

    Text is held back for up to FLUSH_SECONDS: chunks of one descriptor, and behind the first few changes of the
    descriptor frames before them, so text of stdout and stderr is written in the order in which it was printed.
    A forked child writes whole lines at once, without syncs.

    While many lines are printed to one stream, its channel collects them without Python code being run for each: print()
    takes a third of the time then. What leaves next takes them over first, the flushing thread at the latest.
    """

    def __init__(self, interrupts, sock, ack, framing):
        self.interrupts = interrupts
        self.framing = framing  # the guest takes text in frames; that of an old sandbox does not
        self.guard = Guard(interrupts)
        self.sock, self.ack = sock, ack
        self.spare = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, min(sock, ack)) for fd in (1, 2)}
        self.frames = []  # text that waits before the chunks
        self.chunks, self.size, self.fd = [], 0, 1  # size is that of the frames' text, too
        self.written = 0  # the descriptor that got text since the guest last emptied the pipes, or BOTH
        self.unsynced = False  # a frame left that the guest may not have read yet
        self.framed = False  # text left in frames since the last sync
        self.busy = False
        self.deferred = []
        self.held = b""  # a frame that goes out together with the next one
        self.child = False  # this process is a fork of the kernel
        self.collector = None  # the channel that collects
        self.turned = False  # text of the other descriptor came since the flushing thread last looked
        self.budget = EAGER_FLUSHES  # lines that are still written at once; the flushing thread renews it
        self.wake, self.awake = threading.Event(), False

    def start(self):
        threading.Thread(target=self._flush_late, name="cove-flush", daemon=True).start()
        os.register_at_fork(before=self.barrier, after_in_child=self._after_fork)

    def _after_fork(self):
        self.child = True
        self.guard.holder, self.guard.nested = {}, []
        self.frames, self.chunks, self.size, self.busy, self.deferred, self.unsynced, self.framed = [], [], 0, False, [], False, False
        self.held = b""
        if self.collector:
            self.collector.collected()  # the parent's
            self.collector = None
        self.interrupts.main, self.interrupts.depth = _ident(), 0
        self.interrupts.enabled = True

    def _flush_late(self):
        # Only the main thread can be interrupted; a signal taken here would not end its system call.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        sleep, wake = time.sleep, self.wake
        while True:
            wake.wait()
            sleep(FLUSH_SECONDS)
            wake.clear()
            self.awake = self.turned = False
            self.flush()
            if self.framed:
                self.settle()
            self.budget = EAGER_FLUSHES
            if self.interrupts.swallowed:
                self.interrupts.repeat()

    def text(self, fd, data, channel):
        # print() comes here twice; a `with self.guard` would cost it a third of its speed.
        holder, interrupts, me = self.guard.holder, self.interrupts, _ident()
        main = me == interrupts.main
        if main:
            interrupts.depth += 1
        inside = holder.get(0) == me
        if not inside and holder.setdefault(0, me) != me:
            self.guard.take(me, holder)
        try:
            if self.collector:
                self._take_over()
            if self.busy:
                # A finalizer or a hook of the user's prints while a frame is on its way.
                self.deferred.append((fd, data))
                return
            if fd != self.fd:
                self._turn(fd)
            self.chunks.append(data)
            self.size += len(data)
            if self.size >= FLUSH_BYTES:
                self._flush()
                return
            if data[-1] == 10:
                if self.child:
                    self._flush()
                    return
                # No clock is looked at here: in the first seconds of a sandbox that costs a system call.
                if self.budget > 0:
                    self.budget -= 1
                    self._flush()
                    if self.budget > EAGER_FLUSHES // 2:
                        return
                elif channel and len(data) < SHORT_LINE and not self.turned:
                    self.budget -= 1
                    if self.budget < -MANY_LINES:
                        channel.collect()
                        self.collector = channel
            if not (self.awake or self.child):
                self.awake = True
                self.wake.set()
        finally:
            if not inside:
                del holder[0]
            if main:
                interrupts.leave()

    def _take_over(self):
        """Adds what was collected to the text that waits. The descriptor has not changed since: other text would have come here first."""
        collector, self.collector = self.collector, None
        data = collector.collected()
        if data:
            self.chunks.append(data)
            self.size += len(data)

    def flush(self):
        """Writes what waits: text to its pipe, and a message that was held."""
        if self.collector or self.chunks or self.held:
            with self.guard:
                if self.collector:
                    self._take_over()
                if not self.busy:
                    self._flush()
                    if self.held:
                        self._frame(b"")

    def settle(self):
        """Waits until text that left in frames is passed on: what C libraries print next comes after it."""
        with self.guard:
            if not self.busy and self.framed:
                self._flush()
                self._sync()

    def barrier(self, fd=BOTH):
        """Makes sure that text from elsewhere (a child process, C), on fd, comes after everything so far."""
        if self.collector or self.chunks or self.unsynced or self.written not in (0, fd):
            with self.guard:
                if self.collector:
                    self._take_over()
                if not self.busy:
                    self._flush()
                    if not self.child and (self.unsynced or self.written not in (0, fd)):
                        self._sync()
        self.written = fd

    def send(self, message, hold=False):
        """Sends one message; with hold together with what leaves next, which saves waking the guest twice. In a forked child it is dropped: the socket is the parent's."""
        if self.child:
            return
        payload = encode(message)
        frame = struct.pack(">IB", len(payload), MESSAGE) + payload
        with self.guard:
            if self.collector:
                self._take_over()
            if self.busy:
                self.deferred.append((None, frame))
                return
            self._flush()
            if hold:
                self.held += frame
            else:
                self._frame(frame)
            self.unsynced, self.written = True, 0
            self._catch_up()

    def _turn(self, fd):
        """Has the next text be fd's."""
        self.turned = True
        if self.chunks:
            if self.framing and self.budget <= 0 and self.size <= FLUSH_BYTES and not self.child:
                self.frames.append(self._text_frame())
            else:
                self.budget -= 1
                self._flush()
        self.fd = fd

    def _text_frame(self):
        data, self.chunks = b"".join(self.chunks), []
        return struct.pack(">IB", len(data), TEXT + self.fd) + data

    def _flush(self):
        if not self.chunks:
            return
        if self.frames or self.framing and self.unsynced and self.budget <= 0 and not self.child:
            frames, self.frames = self.frames, []
            small = self.size < 2 * FLUSH_BYTES
            if small:
                frames.append(self._text_frame())
                self.size = 0
            if frames:
                self._frame(b"".join(frames))
                self.unsynced, self.written, self.framed = True, 0, True
            if small:
                self._catch_up()
                return
        data = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        self.chunks, self.size = [], 0
        if not self.child and (self.unsynced or self.written not in (0, self.fd)):
            self._sync()
        self.busy = True
        try:
            self._emit(self.fd, data)
        finally:
            self.busy = False
        self.written = self.fd
        self._catch_up()

    def _catch_up(self):
        while self.deferred:
            fd, data = self.deferred.pop(0)
            if fd is None:
                self._flush()
                self._frame(data)
                self.unsynced, self.written = True, 0
            else:
                if fd != self.fd:
                    self._turn(fd)
                self.chunks.append(data)
                self.size += len(data)
                self.awake = True
                self.wake.set()

    def _sync(self):
        self._frame(struct.pack(">IB", 0, SYNC))
        try:
            if not _read(self.ack, 1):
                _exit(0)
        except OSError:
            _exit(0)
        self.unsynced, self.framed, self.written = False, False, 0

    def _frame(self, frame):
        self.busy = True
        frame, self.held = self.held + frame, b""
        try:
            write_all(self.sock, frame)
        except OSError:
            _exit(0)  # the guest is gone
        finally:
            self.busy = False

    def _emit(self, fd, data):
        try:
            try:
                write_all(fd, data)
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
                os.dup2(self.spare[fd], fd)  # user code closed it
                write_all(fd, data)
        except OSError:
            pass  # printing must not become an error


class Channel(io.BufferedIOBase):
    """The binary side of sys.stdout or sys.stderr."""

    _collector = None  # what the outlet may have collect what is written here

    def __init__(self, outlet, fd):
        self._outlet, self._fd = outlet, fd

    @property
    def raw(self):
        return self

    @property
    def name(self):
        return self._fd

    mode = "wb"

    def write(self, data):
        if type(data) is not bytes:
            if isinstance(data, str):
                raise TypeError("a bytes-like object is required, not 'str'")
            data = bytes(data)
        if data:
            self._outlet.text(self._fd, data, self._collector)
        return len(data)

    def flush(self):
        self._outlet.flush()

    def fileno(self):
        return self._fd

    def isatty(self):
        return False

    def writable(self):
        return True

    def close(self):
        self.flush()


class Collector(Channel):
    """The channel of a text stream alone, which looks write up and calls it in one step: nothing comes in between, and nothing late."""

    @property
    def _collector(self):
        return self

    def collect(self):
        """Keeps what is written from now on."""
        self._kept = io.BytesIO()
        self.write = self._kept.write  # instead of the method: what is called is a function in C

    def collected(self):
        """Ends that, and returns what was written meanwhile."""
        del self.write
        data, self._kept = self._kept.getvalue(), None
        return data


class TextOut(io.TextIOWrapper):
    """sys.stdout and sys.stderr. Closing them only flushes: the next cell prints as well."""

    def __init__(self, outlet, fd, name):
        super().__init__(Collector(outlet, fd), encoding="utf-8", errors="backslashreplace", newline="\n",
                         write_through=True)
        self.mode = "w"
        self._name, self._channel = name, Channel(outlet, fd)

    @property
    def name(self):
        return self._name

    @property
    def buffer(self):
        return self._channel

    def detach(self):
        super().detach()
        return self._channel

    def close(self):
        self.flush()


# ---------------------------------------------------------------------------------------------------------------------
# Messages


def _plain(value):
    """What json can't encode, made into something that it can."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    for convert in ("item", "tolist"):
        try:
            return getattr(value, convert)()
        except Exception:
            pass
    return str(value)


_fast_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode
_parse = json.JSONDecoder().decode


def _clean(value, depth=0):
    """A copy of value that JSON can hold: finite numbers, string keys, bounded depth."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if depth > 100:
        return None
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(k): _clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean(v, depth + 1) for v in value]
    return _clean(_plain(value), depth + 1)


def _utf8(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Joins surrogate pairs and replaces lone ones.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def to_json(value):
    try:
        text = _fast_json(value)
    except Exception:
        text = _fast_json(_clean(value))
    return _utf8(text)


def encode(message):
    """A message as JSON, within MESSAGE_LIMIT: MIME types that are too big are dropped, with a note."""
    payload = to_json(message)
    if len(payload) <= MESSAGE_LIMIT:
        return payload
    message = dict(message)
    if isinstance(message.get("data"), dict):
        message["data"] = _shrink(message["data"])
        message["metadata"] = {}
    else:
        for key, value in message.items():
            if isinstance(value, str) and len(value) > TEXT_LIMIT:
                message[key] = value[:TEXT_LIMIT] + "..."
            elif isinstance(value, list):
                message[key] = value[:1000]
    payload = to_json(message)
    if len(payload) > MESSAGE_LIMIT:
        payload = to_json({k: v for k, v in message.items() if k in ("type", "id", "name", "count", "status")})
    return payload


def _shrink(data):
    sizes = {mime: len(to_json(value)) for mime, value in data.items()}
    kept, dropped, total = dict(data), [], sum(sizes.values())
    for mime in sorted(sizes, key=sizes.get, reverse=True):
        if total <= MESSAGE_LIMIT - 4096:
            break
        total -= sizes[mime]
        dropped.append("%s (%.1f MB)" % (mime[:200], sizes[mime] / 1e6))
        del kept[mime]
    note = "[not shown, larger than the limit of %.0f MB: %s]" % (MESSAGE_LIMIT / 1e6, ", ".join(dropped[:20]))
    plain = kept.get("text/plain")
    if isinstance(plain, str) and len(plain) < TEXT_LIMIT:
        note = plain + "\n" + note
    if "text/plain" not in kept or plain:
        kept["text/plain"] = note
    return kept


class Inlet:
    """Reads frames from the guest."""

    def __init__(self, outlet, sock):
        self.outlet, self.sock = outlet, sock
        self.data, self.reading = bytearray(), False
        self.messages = deque()
        self.readers = set()  # threads that wait for an answer
        self.poller = self.make_poller()
        self.arrived = self.make_poller()  # used by whoever has the guard
        self.tools = None  # takes in answers to calls

    def make_poller(self):
        poller = _poll()
        poller.register(self.sock, select.POLLIN)
        return poller

    def pump(self):
        """Takes in what has arrived. Nothing may have: a thread that called a tool reads too."""
        with self.outlet.guard:
            if not self.arrived.poll(0):
                return
            self.reading = True
            try:
                data = _read(self.sock, READ_BYTES)
            except OSError:
                data = b""
            if not data:
                _exit(0)  # the guest is gone
            self.data += data
            while len(self.data) >= 5:
                length, kind = struct.unpack_from(">IB", self.data)
                if len(self.data) < 5 + length:
                    break
                if kind == MESSAGE:
                    message = _parse(self.data[5:5 + length].decode("utf-8", "replace"))
                    if message.get("type") == "tool_reply":
                        self.tools.take(message)
                    else:
                        self.messages.append(message)
                del self.data[:5 + length]
            self.reading = False

    def has_request(self):
        """Whether a request has come that is not started yet."""
        return bool(self.reading or self.data or self.messages or self.poller.poll(0))

    def reply(self, kind, request_id, number=None):
        """Waits for the host's answer to what an execution asks. An interrupt ends the wait."""
        wanted = kind, request_id, number
        poller = self.poller if threading.current_thread() is threading.main_thread() else self.make_poller()  # none is for two threads at a time
        self.readers.add(_ident())
        try:
            while True:
                for message in list(self.messages):  # another thread may take one out meanwhile
                    if (message.get("type"), message.get("id"), message.get("number")) == wanted:
                        self.messages.remove(message)
                        return message
                # Another thread, which called a tool or asked for input, may take in what is waited for here.
                poller.poll(POLL_MS if self.tools.waiting or len(self.readers) > 1 else INTERRUPT_MS)
                self.pump()
        finally:
            self.readers.discard(_ident())


# ---------------------------------------------------------------------------------------------------------------------
# Input


class Terminal:
    """input(), getpass() and sys.stdin, answered by the host."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.builtin_input = builtins.input
        self.stdin = TextIn(self)
        self.numbers = itertools.count(1)  # of requests: threads ask at one time, and an interrupted one gets its answer late

    def install(self):
        sys.stdin = sys.__stdin__ = self.stdin
        builtins.input = self.input
        getpass.getpass = self.getpass

    def input(self, prompt="", /):
        """Asks the user for a line of text and returns it without the line end."""
        if sys.stdin is not self.stdin:
            return self.builtin_input(prompt)
        return self.ask(str(prompt), False)

    def getpass(self, prompt="Password: ", stream=None, **kwargs):
        """Asks the user for a line of text that is not shown."""
        return self.ask(str(prompt), True)

    def ask(self, prompt, password):
        reply = self.request(prompt, password)
        if reply is None:
            raise EOFError("input() is not available here: put the values into the code or read them from a file")
        if reply.get("eof"):
            raise EOFError("EOF when reading a line")
        return str(reply.get("value", ""))

    def request(self, prompt, password=False):
        kernel = self.kernel
        if kernel.outlet.child or not kernel.request.get("input"):
            return None
        request_id = kernel.request.get("id", "")
        number = next(self.numbers)
        kernel.outlet.send({"type": "input_request", "id": request_id, "number": number, "prompt": prompt, "password": password})
        return kernel.inlet.reply("input_reply", request_id, number)


class LineSource(io.RawIOBase):
    """sys.stdin's bytes: each read that finds nothing asks for one more line."""

    def __init__(self, terminal):
        self._terminal = terminal
        self._rest = b""

    name, mode = "<stdin>", "rb"

    def readable(self):
        return True

    def fileno(self):
        return 0

    def isatty(self):
        return False

    def readinto(self, buffer):
        if not self._rest:
            reply = self._terminal.request("")
            if reply is None or reply.get("eof"):
                return 0
            self._rest = _utf8(str(reply.get("value", ""))) + b"\n"
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self):
        pass


class TextIn(io.TextIOWrapper):
    def __init__(self, terminal):
        super().__init__(io.BufferedReader(LineSource(terminal)), encoding="utf-8", errors="replace", newline="\n")
        self.mode = "r"

    def close(self):
        pass


# ---------------------------------------------------------------------------------------------------------------------
# Errors


def _is_hidden(filename):
    return filename in OWN_FILES or filename.startswith(IPYTHON_DIR)


def _hide_frames(report, seen):
    """Removes our and IPython's frames from a TracebackException and everything chained to it."""
    if report is None or id(report) in seen:
        return
    seen.add(id(report))
    if report.stack:
        kept = [frame for frame in report.stack if not _is_hidden(frame.filename)]
        # Deleting in place keeps what newer Pythons hang on the summary.
        report.stack[:] = kept
    if not report.stack and report.exc_type is not None and issubclass(report.exc_type, SyntaxError):
        report.stack = None
    _hide_frames(report.__cause__, seen)
    _hide_frames(report.__context__, seen)
    for member in getattr(report, "exceptions", None) or ():
        _hide_frames(member, seen)


def _shorten(trace):
    """Takes the middle out of a very deep traceback: reading a million frames takes minutes."""
    frames, node = [], trace
    while node is not None:
        frames.append(node)
        node = node.tb_next
    if len(frames) > 2 * TRACE_LIMIT:
        frames[TRACE_LIMIT].tb_next = frames[-TRACE_LIMIT]


def _cut(text):
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "... (%d characters)" % len(text)


def _value_of(error):
    try:
        return str(error)
    except BaseException:
        return "<exception str() failed>"


def describe_error(error):
    """The error message for an exception, with the traceback that Python would print."""
    name = type(error).__name__
    value = _value_of(error)
    try:
        if isinstance(error, UsageError):
            lines = ["UsageError: " + value]
        else:
            if isinstance(error, SyntaxError) and error.text is None and error.filename and error.lineno:
                error.text = linecache.getline(error.filename, error.lineno) or None
            _shorten(error.__traceback__)
            report = traceback.TracebackException(type(error), error, error.__traceback__)
            _hide_frames(report, set())
            lines = "".join(report.format()).rstrip("\n").split("\n")
            if not getattr(error, "__notes__", None):
                lines[-1] += suggestion(error)
    except BaseException:
        lines = ["Traceback (most recent call last):", "%s: %s" % (name, value)]
    if len(lines) > 2 * TRACE_LIMIT:
        left_out = "  [%d lines left out]" % (len(lines) - 2 * TRACE_LIMIT)
        lines[TRACE_LIMIT:-TRACE_LIMIT] = [left_out]
    return {"type": "error", "name": name, "value": _cut(value), "traceback": [_cut(line) for line in lines], "hint": hint_of(error) or ""}


def exit_code(error, stderr):
    """The process exit code that a SystemExit stands for."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xFF
    print(_value_of(code), file=stderr)
    return 1


# ---------------------------------------------------------------------------------------------------------------------
# The shell


# In an interpreter that is not cove's, the driver's packages are beside those of the interpreter: before them while the driver loads, behind them for the code.
OWN_PACKAGES = os.environ.pop("COVE_KERNEL_PACKAGES", "")
if OWN_PACKAGES:
    sys.path.insert(0, OWN_PACKAGES)

# What the processes that code starts are told. The backend of the kernel's figures is not among the packages of every interpreter that these may run.
BACKEND_OF_PROCESSES = os.environ.get("MPLBACKEND")


def _import_ipython(state_dir):
    # IPython writes to HOME unless told otherwise, before the first line of ours could stop it.
    os.environ["IPYTHONDIR"] = os.path.join(state_dir, "ipython")
    import IPython
    return os.path.dirname(os.path.abspath(IPython.__file__)) + os.sep


STATE_DIR = tempfile.mkdtemp(prefix="cove-kernel-")
IPYTHON_DIR = _import_ipython(STATE_DIR)
OWN_FILES = frozenset([__file__, codeop.__file__])  # IPython compiles through codeop

import IPython
from IPython.core import page
from IPython.core.autocall import ExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import UsageError
from IPython.core.formatters import BaseFormatter, DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import LSString, SList
from traitlets import ObjectName, Type, Unicode, default
from traitlets.config import Config

if OWN_PACKAGES:
    sys.path.remove(OWN_PACKAGES)
    sys.path.append(OWN_PACKAGES)


def _encode_binary(data):
    return {mime: base64.b64encode(value).decode("ascii") if isinstance(value, (bytes, bytearray)) else value
            for mime, value in data.items()}


class Publisher(DisplayPublisher):
    """display(): sends rich output to the host."""

    kernel = None

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs):
        if self.kernel.outlet.child:
            if "text/plain" in data:
                print(data["text/plain"])
            return
        data, display_id, capture = self.kernel.bundle(data), str((transient or {}).get("display_id") or ""), self.kernel.widgets.capture
        if capture is None or not capture.display(data, metadata, display_id, bool(update)):
            self.kernel.outlet.send({"type": "display", "data": data, "metadata": metadata or {}, "display_id": display_id, "update": bool(update)})

    def clear_output(self, wait=False):
        if self.kernel.widgets.capture is not None:
            self.kernel.widgets.capture.clear(bool(wait))
            return
        self.kernel.outlet.send({"type": "clear_output", "wait": bool(wait)})


class ResultHook(DisplayHook):
    """sys.displayhook: sends the value of a cell's last expression to the host."""

    kernel = None
    last = False  # the value ends the cell, so that nothing but the reply follows

    def __call__(self, result=None):
        caller, shell = sys._getframe(1), self.shell
        self.last = (shell.running == 1 and shell.ast_node_interactivity == "last_expr" and caller.f_lasti >= 0
                     and caller.f_code.co_code[caller.f_lasti] == PRINT_EXPR)
        super().__call__(result)
        figure_type = type(result)
        if figure_type.__name__ == "Figure" and figure_type.__module__ == "matplotlib.figure":
            # It has been shown now; still open, it would be shown again when the cell ends.
            pyplot = sys.modules.get("matplotlib.pyplot")
            if pyplot is not None:
                pyplot.close(result)

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        if self.kernel.outlet.child:
            print(format_dict.get("text/plain", ""))
            return
        self.kernel.outlet.send({"type": "result", "count": self.prompt_count,
                                 "data": self.kernel.bundle(format_dict), "metadata": md_dict or {}}, hold=self.last)

    def log_output(self, format_dict):
        pass  # IPython would keep every output for the life of the kernel

    def finish_displayhook(self):
        self._is_active = False


def whole_lines(code):
    """The lines of code, each with its end: Python marks the wrong columns of a line that has none."""
    lines = code.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    return lines


def blank_beginning(code):
    """The ends of the empty lines that a cell begins with: IPython takes them away, and the numbers of lines are wrong without them."""
    lines = code.splitlines()
    return "\n" * next((n for n, line in enumerate(lines) if line.strip()), 0)


class Compiler(CachingCompiler):
    """Names cells for tracebacks."""

    filename = None  # of the running request

    def __init__(self):
        super().__init__()
        # With it every unfinished cell is "incomplete input", whatever it lacks.
        self.flags &= ~getattr(codeop, "PyCF_ALLOW_INCOMPLETE_INPUT", 0)
        self.transformed = {}  # the Python of cells for which linecache has something else

    def get_code_name(self, raw_code, transformed_code, number):
        return self.filename or "<cell %d>" % number

    def cache(self, transformed_code, number=0, raw_code=None):
        name = super().cache(transformed_code, number, raw_code)
        lines = whole_lines(raw_code or "")
        self.transformed.pop(name, None)
        if lines and (len(transformed_code.lstrip("\n").splitlines()) == 1 or len(transformed_code.splitlines()) == len(lines)):
            # Show `!ls` and `%%bash`, not get_ipython().system('ls').
            linecache.cache[name] = (len(raw_code), None, lines, name)
            if transformed_code.rstrip() != raw_code.rstrip():
                self.transformed[name] = transformed_code
        return name


class Exiter(ExitAutocall):
    """exit and quit: end the cell, not the kernel."""

    def __call__(self, code=None):
        raise SystemExit(code)

    def __repr__(self):
        return "Use exit() to end the cell"


class Formatter(DisplayFormatter):
    """What values look like. Those of Python's own types are text and nothing else; to ask the eleven other formatters takes longer than most such cells run."""

    def format(self, obj, include=None, exclude=None):
        kind, text = type(obj), self.formatters["text/plain"]
        others = (self.ipython_display_formatter, self.mimebundle_formatter, *self.formatters.values())
        if kind not in PLAIN_TYPES or include or exclude or not text.enabled or any(
                kind in f.type_printers or object in f.type_printers for f in others if f is not text):
            teller = Shell.kernel.teller
            teller.showing += 1
            try:
                return super().format(obj, include, exclude)
            finally:
                teller.showing -= 1
        return {"text/plain": text(obj)}, {}


class TableFormatter(BaseFormatter):
    """DataFrames as data, for those who show them better than HTML does: their first rows, and the name by which the rest can be asked for."""

    MIME = "application/vnd.cove.table+json"
    format_type = Unicode(MIME)
    print_method = ObjectName("_repr_cove_table_")
    _return_type = dict


PLAIN_TYPES = frozenset([bool, int, float, complex, str, bytes])
PRINT_EXPR = opcode.opmap.get("PRINT_EXPR", opcode.opmap.get("CALL_INTRINSIC_1"))  # shows the value of an expression that is a statement


class Shell(InteractiveShell):
    displayhook_class = Type(ResultHook)
    display_pub_class = Type(Publisher)
    compiler_class = Type(Compiler)
    kernel = None
    running = 0  # pieces of code inside one another

    def init_display_formatter(self):
        self.display_formatter = Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    @default("exiter")
    def _exiter_default(self):
        return Exiter(self)

    def init_virtualenv(self):
        pass  # the interpreter that runs us is the environment

    def init_user_ns(self):
        super().init_user_ns()
        # IPython puts an open of its own before Python's, which refuses descriptors and cannot be replaced by mock.patch("builtins.open").
        del self.user_ns["open"]
        self.user_ns_hidden.pop("open", None)

    def init_hooks(self):
        super().init_hooks()
        self.set_hook("show_in_pager", page.as_hook(self._show_page), 90)

    def _show_page(self, text, start=0, screen_lines=0, pager_cmd=None):
        data = text if isinstance(text, dict) else {"text/plain": str(text)}
        plain = data.get("text/plain", "")
        if not self.kernel.after_cell({"source": "page", "data": data, "start": int(start)}, plain):
            print(plain)

    def set_next_input(self, s, replace=False):
        """What %load and %recall give; only clients of notebooks can put it into a cell."""
        self.kernel.after_cell({"source": "set_next_input", "text": str(s), "replace": bool(replace)}, str(s))

    def enable_gui(self, gui=None):
        pass  # there is no screen, see enable_matplotlib

    def enable_matplotlib(self, gui=None):
        return super().enable_matplotlib("inline" if gui is None or self.kernel.manners.inline(gui) == INLINE else gui)

    def atexit_operations(self):
        pass  # saves history and resets the cursor of a terminal; there is neither

    async def run_code(self, code_obj, result=None, *, async_=False):
        self.running += 1
        try:
            if async_:
                await eval(code_obj, self.user_global_ns, self.user_ns)
            else:
                exec(code_obj, self.user_global_ns, self.user_ns)
        except BaseException as error:
            if result is not None:
                result.error_in_exec = error
            self.kernel.report(error)
            return True
        finally:
            self.running -= 1
        return False

    runcode = run_code

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        try:
            error = self._get_exc_info(exc_tuple)[1]
        except ValueError:
            print("No traceback available to show.", file=sys.stderr)
            return
        self.kernel.report(error)

    def showsyntaxerror(self, filename=None, *args, **kwargs):
        self.showtraceback()

    def showindentationerror(self):
        self.showtraceback()

    def _format_exception_for_storage(self, *args, **kwargs):
        return {}  # for a history that we don't keep

    def system(self, cmd):
        """Runs a command in a shell that writes to our stdout and stderr."""
        cmd = self.var_expand(cmd, depth=1)
        process = self._spawn(cmd)
        self.user_ns["_exit_code"] = self._wait(process, process.wait)

    system_raw = system_piped = system

    def getoutput(self, cmd, split=True, depth=0):
        """Runs a command and returns what it prints on stdout and stderr."""
        cmd = self.var_expand(cmd, depth=depth + 1)
        process = self._spawn(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = []
        self.user_ns["_exit_code"] = self._wait(
            process, lambda: output.append(process.communicate()[0]) or process.returncode)
        text = output[0].decode("utf-8", "replace") if output else ""
        return SList(text.splitlines()) if split else LSString(text)

    def _spawn(self, cmd, **kwargs):
        shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
        # A session of its own, so that an interrupt can reach all of it.
        process = subprocess.Popen([shell, "-c", cmd], start_new_session=True, **kwargs)
        process._sigint_wait_secs = 0  # the interrupt does not reach it before we pass it on
        return process

    def _wait(self, process, wait):
        try:
            return wait()
        except BaseException:
            for signum, patience in ((signal.SIGINT, 0.2), (signal.SIGKILL, 1)):
                try:
                    os.killpg(process.pid, signum)
                    process.wait(patience)
                except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
                    pass
            self.user_ns["_exit_code"] = -signal.SIGINT
            raise


# ---------------------------------------------------------------------------------------------------------------------
# Libraries that need a word from us, when they are imported


class ImportHooks:
    """Calls functions before and after certain modules are first imported; costs nothing for the others."""

    def __init__(self, hooks):
        self.hooks = hooks  # name -> (before, after)

    def find_spec(self, name, path=None, target=None):
        hook = self.hooks.get(name)
        if hook is None:
            return None
        before, after = hook
        if before:
            self._quietly(before)
        if not after:
            del self.hooks[name]
            return None
        spec = _find_on_path(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            self.hooks.pop(name, None)
            execute(module)
            self._quietly(after, module)

        spec.loader.exec_module = exec_module
        return spec

    @staticmethod
    def _quietly(hook, *args):
        try:
            hook(*args)
        except Exception:
            pass  # a library that changed must still be importable


def prepare_matplotlib():
    """Gives matplotlib a ready font list: building one takes seconds."""
    target, source = os.environ["MPLCONFIGDIR"], os.environ.get("COVE_FONTCACHE")
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source) if source else ():
        if name.startswith("fontlist-") or name == "matplotlibrc":
            if not os.path.exists(os.path.join(target, name)):
                shutil.copyfile(os.path.join(source, name), os.path.join(target, name))


def prepare_axes(module):
    note_axes(module)
    if not PLAIN_PLOTS:
        style_axes(module)


def prepare_plotly(renderers):
    # Plotly refuses to show MIME types when nbformat is missing, but makes no use of it.
    if renderers.nbformat is None:
        renderers.nbformat = types.SimpleNamespace(__version__="5.10.0")


# ---------------------------------------------------------------------------------------------------------------------
# Copies: this process may be restored from a checkpoint, more than once and long after


def renew():
    """Replaces what names and secrets are made from; nobody can want these to repeat."""

    def names(tempfile):
        tempfile._name_sequence = None

    def ids(uuid):
        uuid._node = None
        for name in vars(uuid):
            if name.startswith("_last_timestamp"):
                setattr(uuid, name, None)
        # libuuid keeps a random node of its own, which nothing can reset.
        uuid._generate_time_safe = None

    def key(process):
        process.current_process().authkey = _urandom(32)

    def tls(ssl):
        ssl.RAND_add(_urandom(32), 32.0)

    def sql(sqlite):
        ctypes.CDLL(sqlite.__file__).sqlite3_randomness(0, None)

    _each_imported({"tempfile": names, "uuid": ids, "multiprocessing.process": key, "_ssl": tls, "_sqlite3": sql})


def processors():
    """How many processors this process may use, for os.cpu_count(), which counts those of the machine."""
    return len(os.sched_getaffinity(0)) or None


def fit_pools(module):
    """Has the threads of libraries that are loaded already be as many as there are processors now."""
    module.threadpool_limits(processors())


def fit_arrow(module):
    """As fit_pools, for the threads of Arrow, which threadpoolctl does not know; it counts the processors when it is imported."""
    module.set_cpu_count(processors())


def reseed():
    """Seeds the global random generators of Python and of libraries. Generators that user code made are its own."""
    _seed()
    _each_imported({
        "numpy.random": lambda module: module.seed(),  # pandas, scipy and sklearn use this one too
        "sympy.core.random": lambda module: module.seed(),
        "faker.generator": lambda module: module.random.seed(),
    })


def _each_imported(actions):
    for name, act in actions.items():
        module = sys.modules.get(name)
        if module is not None:
            try:
                act(module)
            except Exception:
                pass  # a library that changed, or that user code patched, must not keep us from going on


reserved_addresses = 0  # bytes that a library reserved above the limit, see vega.py


def limit_address_space(size):
    """Makes absurd allocations a MemoryError. It is the soft limit, which can be raised for a library that reserves far more than it uses."""
    soft, hard = _getrlimit(resource.RLIMIT_AS)
    size += reserved_addresses
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)
    _setrlimit(resource.RLIMIT_AS, (size if soft == resource.RLIM_INFINITY or reserved_addresses else min(size, soft), hard))


def free_of_limit(start, waits=False):
    """A function that starts a program, which does without our limit on addresses: browsers and WebAssembly reserve far more than they use. It returns the process's id, or waits for its end."""

    @functools.wraps(start)
    def started(*args, **kwargs):
        before = _getrlimit(resource.RLIMIT_AS)
        limit = before[1], before[1]
        try:
            _setrlimit(resource.RLIMIT_AS, limit)
            pid = start(*args, **kwargs)
            if pid and not waits:
                try:
                    _prlimit(pid, resource.RLIMIT_AS, limit)  # another thread may have set ours back before the program began
                except (OSError, ValueError):
                    pass  # it has ended
            return pid
        finally:
            if before != limit:
                _setrlimit(resource.RLIMIT_AS, before)

    return started


def free_programs():
    """Has the programs that code starts do without our limit on addresses."""
    import _posixsubprocess

    for module, name in ((_posixsubprocess, "fork_exec"), (subprocess, "_fork_exec"), (os, "posix_spawn"), (os, "posix_spawnp"), (os, "execv"), (os, "execve")):
        if hasattr(module, name):
            setattr(module, name, free_of_limit(getattr(module, name)))
    os.system = free_of_limit(os.system, waits=True)


# ---------------------------------------------------------------------------------------------------------------------
# The kernel


# Events after which text can come from somewhere else, or nothing can come from us any more.
SPAWNING = frozenset(["os.system", "subprocess.Popen", "os.posix_spawn", "os.spawn", "os.exec", "os.forkpty",
                      "pty.spawn", "os.kill", "os.killpg", "signal.pthread_kill"])


class Kernel:
    def __init__(self, sock, ack):
        self.interrupts = Interrupts()
        self.outlet = Outlet(self.interrupts, sock, ack, "text-in-frames" in sys.argv)
        self.processors = processors()  # that the threads of libraries are as many as
        self.inlet = Inlet(self.outlet, sock)
        self.interrupts.is_waiting = self.inlet.has_request
        self.terminal = Terminal(self)
        self.tools = Tools(self)
        self.layers = Layers()
        self.variables = Variables(self)
        self.teller = Teller(self)
        self.manners = Manners(self)
        self.spawn = Spawn(self)
        self.vega = Vega()
        self.comms = Comms(self)
        self.widgets = Widgets(self)
        self.import_hooks = ImportHooks({
            "matplotlib": (prepare_matplotlib, self._adapt_matplotlib),
            "matplotlib.pyplot": (None, self.manners.adapt_pyplot),
            "matplotlib.figure": (None, self.manners.adapt_figure),
            "matplotlib.axes._axes": (None, prepare_axes),
            "matplotlib_inline.backend_inline": (None if PLAIN_PLOTS else prepare_retina, self._prepare_inline),
            "plotly.io._renderers": (None, prepare_plotly),
            "plotly.io": (None, None if PLAIN_PLOTS else style_plotly),
            "altair": (None, self.vega.adapt_altair),
            "vl_convert.vl_convert": (None, self.vega.adapt_converter),
            "pandas.io.formats.format": (None, self.teller.widen),
            "numpy": (None, self.teller.widen_arrays),
            "comm": (None, self.comms.adapt),
            "ipywidgets.widgets.widget_output": (None, self.widgets.adapt_output),
            "multiprocessing.spawn": (None, self.spawn.adapt),
            "tqdm.notebook": (None, self.manners.adapt_tqdm),
            "bokeh.io": (None, self.manners.adapt_bokeh),
            "pyecharts.globals": (None, self.manners.adapt_pyecharts),
            "line_profiler.line_profiler": (None, self.manners.adapt_line_profiler),
        })
        self.home = os.environ.get("HOME") or "/"
        self.request = {}
        self.loop = self.idle_loop = self.idle = None
        self.waiter = None
        self.failed = self.interrupted = False
        self.exit = None  # the SystemExit that ended the execution
        self.scripts = []  # modules of finished scripts: their functions may still be in use
        self.libc = ctypes.CDLL(None)
        self.c_flush = self.libc.fflush
        self.c_streams = [ctypes.c_void_p.in_dll(self.libc, name) for name in ("stdout", "stderr")]

    def start(self):
        self.stdout = sys.stdout = sys.__stdout__ = TextOut(self.outlet, 1, "<stdout>")
        self.stderr = sys.stderr = sys.__stderr__ = TextOut(self.outlet, 2, "<stderr>")
        self.outlet.start()
        self.interrupts.install()
        self._retry_swallowed_interrupts()
        faulthandler.enable(file=2)
        self.terminal.install()
        # Python 3.12 and later complain about every fork beside our flushing thread, which forks survive.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        self._wrap_os()
        free_programs()
        os.cpu_count = posix.cpu_count = functools.wraps(posix.cpu_count)(processors)  # there, too, for pickle
        self._set_environment()
        self.shell = self._make_shell()
        self.pristine = frozenset(self.shell.user_ns)
        self.make_loop()
        sys.path.insert(0, "")
        sys.argv[:] = [""]
        self.layers.hooks = self.import_hooks, MissingModules(self)
        sys.meta_path[:] = [self.layers.hooks[0], *sys.meta_path, self.layers.hooks[1]]

    def _retry_swallowed_interrupts(self):
        original, outlet = sys.unraisablehook, self.outlet

        def hook(unraisable):
            if isinstance(unraisable.exc_value, KeyboardInterrupt) and self.interrupts.enabled and not outlet.child:
                self.interrupts.swallowed = True
                outlet.wake.set()
            else:
                original(unraisable)

        sys.unraisablehook = hook

    def _wrap_os(self):
        outlet, streams = self.outlet, (1, 2)

        def write(fd, data, /):
            if fd in streams:
                outlet.barrier(fd)
            return _write(fd, data)

        def leave(status):
            outlet.flush()
            _exit(status)

        def audit(event, args):
            if event in SPAWNING:
                outlet.barrier()

        os.write, os._exit = write, leave
        sys.addaudithook(audit)

    def _set_environment(self):
        env = os.environ
        env.setdefault("MPLCONFIGDIR", os.path.join(STATE_DIR, "matplotlib"))
        env.setdefault("PLOTLY_RENDERER", "plotly_mimetype")
        env.setdefault("PYTHONBREAKPOINT", "pdb.set_trace")
        if env.get("COVE_DATA_MODULES"):
            sys.path.append(env["COVE_DATA_MODULES"])  # models that are modules, such as spaCy's
        env.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # TensorFlow tells of its optimizations each time

    def _make_shell(self):
        Publisher.kernel = ResultHook.kernel = Shell.kernel = self
        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryAccessor.enabled = False
        config.InteractiveShell.colors = "nocolor"
        config.InteractiveShell.autocall = 0
        config.InteractiveShell.banner1 = ""
        config.InteractiveShell.history_load_length = 0
        config.Completer.use_jedi = False
        config.InlineBackend.figure_formats = {"png" if PLAIN_PLOTS else "retina"}
        shell = Shell.instance(config=config)
        shell.loop_runner = self.run_async
        for program in ("pip", "uv"):
            shell.register_magic_function(pip_magic(shell, program), magic_name=program)
        shell.magics_manager.register_lazy("store", "cove_kernel")
        shell.magics_manager.register_lazy("sql", "sql")  # imported, and so installed, when it is first used
        formatters = shell.display_formatter.formatters
        formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", figure_png)
        tables = formatters[TableFormatter.MIME] = TableFormatter(parent=shell.display_formatter)
        for module in ("pandas", "pandas.core.frame", "polars.dataframe.frame"):
            tables.for_type_by_name(module, "DataFrame", self.variables.shown_table)
        charts = formatters[CHART_MIME] = ChartFormatter(parent=shell.display_formatter)  # after the picture, which lays the figure out
        charts.teller = self.teller
        told = formatters[TOLD_MIME] = ToldFormatter(parent=shell.display_formatter)
        for module in ("pandas", "pandas.core.frame", "polars.dataframe.frame"):
            told.for_type_by_name(module, "DataFrame", self.teller.tell)
        return shell

    def _adapt_matplotlib(self, matplotlib):
        if os.environ.get("MPLBACKEND") == BACKEND_OF_PROCESSES != INLINE:  # code has chosen none
            matplotlib.use(INLINE)
        self.manners.adapt_matplotlib(matplotlib)
        if not PLAIN_PLOTS:
            style_matplotlib(matplotlib)

    def _prepare_inline(self, backend):
        self.manners.adapt_inline(backend)
        # The backend sets itself up only when it finds itself chosen, which is not yet so for the first plt.show().
        backend.configure_inline_support(self.shell, "inline")

    def make_loop(self):
        with LowFdsTaken():
            self.loop = asyncio.new_event_loop()
        self.loop.time = _monotonic  # libraries that freeze time must not freeze us
        asyncio.set_event_loop(self.loop)
        self.loop.add_reader(self.inlet.sock, self._on_readable)
        # A sync cell may start tasks too; they run from the next await and between cells.
        original = asyncio.create_task

        if not hasattr(original, "cove_original"):
            def create_task(coro, **kwargs):
                try:
                    return original(coro, **kwargs)
                except RuntimeError:
                    if _ident() != self.interrupts.main or asyncio._get_running_loop() is not None:
                        raise
                    return self.loop.create_task(coro, **kwargs)
            create_task.cove_original = original
            asyncio.create_task = asyncio.tasks.create_task = create_task

    def _on_readable(self):
        self.inlet.pump()
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    # -- requests

    def serve(self):
        self.outlet.send({"type": "ready", "python": sys.version.split()[0], "ipython": IPython.__version__,
                          "pid": os.getpid(), "tools": True})
        handlers = {"execute": self.execute, "complete": self.complete, "inspect": self.inspect,
                    "is_complete": self.is_complete, "resumed": self.resumed, "trim": self.trim, "freeze": self.freeze, "forget": self.forget,
                    "shutdown": self.shutdown, "survey": self.survey, "add_paths": self.add_paths, "widgets": self.widgets.answer, **self.variables.handlers()}
        while True:
            message = self.next_message()
            handler = handlers.get(message.get("type")) if isinstance(message, dict) else None
            if handler is not None:
                if handler != self.execute:
                    # An interrupt that came until now was meant for code that has ended, perhaps a former owner's.
                    self.interrupts.starting = self.interrupts.pending = False
                handler(message)
            self.interrupts.starting = False

    def next_message(self):
        """Runs the event loop, and with it the tasks that cells left behind, until a request comes."""
        while not self.inlet.messages:
            if self.loop.is_closed():
                self.make_loop()
            if self._nothing_left_behind():
                self.inlet.pump()
                continue
            self.waiter = self.loop.create_future()
            try:
                self.loop.run_until_complete(self.waiter)
            except (SystemExit, KeyboardInterrupt):
                pass  # raised by a background task
            except BaseException:
                # A background task stopped the loop, or user code broke it.
                self.inlet.poller.poll()
                self.inlet.pump()
        self.interrupts.starting = True
        return self.inlet.messages.popleft()

    def _nothing_left_behind(self):
        """Waits for something to read, and says whether it is a request and the event loop has nothing to do; that loop takes longer to begin than small cells to run."""
        loop = self.loop
        try:
            if loop._ready or loop._scheduled or len(loop._selector.get_map()) != 2:
                return False
            if self.idle_loop is not loop:
                self.idle_loop, self.idle = loop, _poll()
                self.idle.register(self.inlet.sock, select.POLLIN)
                self.idle.register(loop._ssock, select.POLLIN)  # a thread has something for the loop
            return [fd for fd, _ in self.idle.poll()] == [self.inlet.sock]
        except (AttributeError, OSError, ValueError):
            return False  # another kind of loop

    def execute(self, request):
        self.request = request
        os.environ.update(request.get("environment") or {})
        self.teller.begin(request)
        self.failed = self.interrupted = False
        self.exit = None
        self._enter_workspace()
        self.layers.refresh()
        if request.get("tools") or self.tools.functions:
            self.tools.begin(request)
        self.interrupts.cancelled = self.interrupts.delivered = False
        run = self.run_script if request.get("mode") == "script" else self.run_cell
        try:
            self.interrupts.enabled = True
            if self.interrupts.pending:
                self.interrupts.pending = False
                self.interrupts.deliver()
            run(request)
            self.shell.events.trigger("post_execute")
            self.interrupts.enabled = False
        except BaseException as error:
            self.interrupts.enabled = False
            self.report(error)
        code = exit_code(self.exit, self.stderr) if self.exit is not None else int(self.failed)
        self.widgets.end()
        if self.tools.open:
            self.tools.end()
        self.flush_c()
        if self.outlet.child:
            os._exit(code)  # a forked child ran off the end of its cell; it must not become a second kernel
        asyncio.set_event_loop(self.loop)
        self.interrupts.restore()
        # Magics such as %%bash turn an interrupt into an error of their own.
        self.interrupted |= self.failed and self.interrupts.delivered
        # From here on an interrupt is meant for the next request.
        self.interrupts.starting = self.interrupts.pending = False
        self.outlet.send({"type": "reply", "id": request.get("id", ""), "status": "error" if code else "ok",
                          "exit_code": code, "interrupted": self.interrupted})
        self.request = {}

    def _enter_workspace(self):
        try:
            _getcwd()
        except OSError:
            try:
                os.makedirs(self.home, exist_ok=True)
                os.chdir(self.home)
            except OSError:
                os.chdir("/")

    def flush_c(self):
        for stream in self.c_streams:
            self.c_flush(stream)

    def report(self, error):
        """Notes how user code ended and tells the host about an exception."""
        if isinstance(error, SystemExit):
            self.exit = error
            return
        if isinstance(error, bdb.BdbQuit):
            return
        if self.interrupts.cancelled and isinstance(error, asyncio.CancelledError):
            self.interrupts.cancelled = False
            error = KeyboardInterrupt().with_traceback(error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            self.interrupted = True
        self.failed = True
        # For %debug and pdb.pm().
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.last_exc = error
        message = describe_error(error)
        if self.outlet.child:
            print("\n".join(message["traceback"]), file=sys.stderr)
        else:
            self.outlet.send(message)

    # -- cells and scripts

    def run_cell(self, request):
        shell, code = self.shell, request.get("code", "")
        sys.argv[:] = [""] + [str(arg) for arg in request.get("args") or ()]
        if request.get("count"):
            shell.execution_count = int(request["count"])
        shell.compile.filename = request.get("filename") or None
        transform_error = None
        try:
            transformed = blank_beginning(code) + shell.transform_cell(code)
        except Exception:
            transformed, transform_error = code, sys.exc_info()
        coroutine = shell.run_cell_async(code, store_history=not request.get("unnumbered"), transformed_cell=transformed,
                                         preprocessing_exc_tuple=transform_error)
        if shell.should_run_async(code, transformed_cell=transformed, preprocessing_exc_tuple=transform_error):
            result = self.run_async(coroutine)
        else:
            result = self.run_sync(coroutine)
        if not result.success and self.exit is None:
            self.failed = True
        shell.events.trigger("post_run_cell", result)

    @staticmethod
    def run_sync(coroutine):
        """Drives a coroutine that never suspends, without an event loop, so that user code may run its own."""
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        raise RuntimeError("the cell suspended outside an event loop")

    def run_async(self, coroutine):
        """Drives a cell that awaits. An interrupt cancels what it waits for."""
        if self.loop.is_closed():
            self.make_loop()
        task = self.loop.create_task(coroutine)
        self.interrupts.task = task
        try:
            while True:
                try:
                    return self.loop.run_until_complete(task)
                except (KeyboardInterrupt, SystemExit):
                    # Raised in some other task, or between two steps of this one; let the cell unwind.
                    if task.done():
                        raise
                    self.interrupts.cancelled = True
                    task.cancel()
        finally:
            self.interrupts.task = None

    def run_script(self, request):
        code = request.get("code", "")
        filename = request.get("filename") or os.path.join(self.home, "script.py")
        module = types.ModuleType("__main__")
        module.__file__ = filename
        module.__builtins__ = builtins
        module.__loader__ = importlib.machinery.SourceFileLoader("__main__", filename)
        saved = sys.modules["__main__"], sys.argv[:], sys.path[:], atexit.register
        exits, threads = [], set(threading.enumerate())
        sys.modules["__main__"] = module
        sys.argv[:] = [filename] + [str(arg) for arg in request.get("args") or ()]
        sys.path[0:1] = [os.path.dirname(os.path.abspath(filename))]
        linecache.cache[filename] = (len(code), None, whole_lines(code), filename)
        register = atexit.register

        def register_of_script(function, /, *args, **kwargs):
            ours = sys._getframe(1).f_globals is module.__dict__ or getattr(function, "__module__", None) == "__main__"
            if not ours:
                return register(function, *args, **kwargs)
            exits.append((function, args, kwargs))
            return function

        atexit.register = register_of_script
        try:
            self._run_whole(code, filename, module, exits, threads)
        finally:
            self.scripts = self.scripts[-3:] + [module]
            sys.modules["__main__"], sys.argv[:], sys.path[:], atexit.register = saved
            self.layers.apply()

    def _run_whole(self, code, filename, module, exits, threads):
        """Runs a script and then what the end of a process would run: its threads and its exit functions."""
        try:
            exec(compile(code, filename, "exec", dont_inherit=True), module.__dict__)
        except BaseException as error:
            self.report(error)
        if self.outlet.child:
            return
        for thread in threading.enumerate():
            if thread not in threads and not thread.daemon:
                thread.join()
        while exits:
            function, args, kwargs = exits.pop()
            try:
                function(*args, **kwargs)
            except Exception as error:
                self.report(error)

    def after_cell(self, payload, text):
        """Tells the client of something to do after the cell, and says whether it takes that."""
        if not self.request.get("payloads") or self.outlet.child:
            return False
        self.outlet.send({"type": "display", "data": {"text/plain": text, PAYLOAD_MIME: payload}, "metadata": {}, "display_id": "", "update": False})
        return True

    def get_parent(self):
        return self.comms.parent()

    # -- everything else

    def bundle(self, data):
        """A MIME bundle as it goes to the host."""
        data = _encode_binary(data)
        if "image/png" in data:
            data.pop("image/jpeg", None)  # Pillow gives both
        figure = data.get("application/vnd.plotly.v1+json")
        if isinstance(figure, dict):
            data.setdefault("text/plain", "<Plotly figure, %d traces>" % len(figure.get("data") or ()))
        if figure is not None and self.request.get("standalone") and "text/html" not in data:
            try:
                from plotly.io import to_html
                data["text/html"] = to_html(figure, include_plotlyjs=True, full_html=True, validate=False)
            except Exception:
                pass
        chart = self.teller.chart_of(data)
        if chart is not None:
            data[CHART_MIME] = chart
        self.widgets.show(data)
        return data

    def complete(self, request):
        code = request.get("code", "")
        cursor = request.get("cursor")
        cursor = len(code) if cursor is None else max(0, min(int(cursor), len(code)))
        matches, start, end = [], cursor, cursor
        try:
            from IPython.core.completer import provisionalcompleter, rectify_completions
            with provisionalcompleter():
                found = list(rectify_completions(code, self.shell.Completer.completions(code, cursor)))
            if found:
                start, end = found[0].start, found[0].end
                matches = list(dict.fromkeys(completion.text for completion in found))[:1000]
                if code[start:start + 1] == "." and all(match[:1] == "." for match in matches):
                    start, matches = start + 1, [match[1:] for match in matches]
        except Exception:
            pass
        self.outlet.send({"type": "complete_reply", "id": request.get("id", ""), "matches": matches,
                          "start": start, "end": end})

    def inspect(self, request):
        code = request.get("code", "")
        cursor = request.get("cursor")
        text = ""
        try:
            from IPython.utils.tokenutil import token_at_cursor
            name = token_at_cursor(code, len(code) if cursor is None else int(cursor))
            text = self.shell.object_inspect_mime(name, detail_level=0)["text/plain"]
        except Exception:
            pass
        self.outlet.send({"type": "inspect_reply", "id": request.get("id", ""), "found": bool(text), "text": text})

    def is_complete(self, request):
        try:
            status, indent = self.shell.input_transformer_manager.check_complete(request.get("code", ""))
        except Exception:
            status, indent = "unknown", 0
        self.outlet.send({"type": "is_complete_reply", "id": request.get("id", ""), "status": status,
                          "indent": " " * (indent or 0)})

    def resumed(self, request):
        """There is a new owner: of this process, or of a copy of it, perhaps days later."""
        renew()
        if request.get("reseed"):
            reseed()
        if self.processors != processors():
            self.processors = processors()
            _each_imported({"threadpoolctl": fit_pools, "pyarrow": fit_arrow})
        self.outlet.budget = EAGER_FLUSHES
        error = ""
        try:
            if request.get("address_space"):
                limit_address_space(int(request["address_space"]))
        except (OSError, ValueError) as failure:
            error = str(failure)
        self.outlet.send({"type": "resumed_reply", "id": request.get("id", ""), "python": sys.version.split()[0],
                          "ipython": IPython.__version__, "error": error, "tools": True})

    def forget(self, request):
        """Takes back what cells have left behind by themselves, for a kernel that has rehearsed: names, history, numbers."""
        shell, names = self.shell, self.shell.user_ns
        history, hook = shell.history_manager, shell.displayhook
        for name in [name for name in names if name not in self.pristine]:
            del names[name]
        for name in ("_", "__", "___", "_i", "_ii", "_iii"):
            names[name] = ""
        hook._ = hook.__ = hook.___ = ""
        history._i = history._ii = history._iii = history._i00 = ""
        history.input_hist_parsed[:] = history.input_hist_raw[:] = [""]
        history.output_hist.clear()
        history.output_hist_reprs.clear()
        shell.execution_count = 1
        shell.last_execution_result = None
        shell.last_execution_succeeded = True
        self.outlet.send({"type": "forget_reply", "id": request.get("id", "")})

    def survey(self, request):
        """Says which modules an import would not find, which are imported already, and whether code is Python, magics aside."""
        missing, loaded, valid = [], [], False
        try:
            valid = is_python(request.get("code") or "")
            missing = self.layers.survey(request.get("modules") or ())
            loaded = self.layers.loaded()
        except BaseException:
            pass  # user code has put something odd into sys.modules or sys.meta_path
        self.outlet.send({"type": "survey_reply", "id": request.get("id", ""), "missing": missing, "loaded": loaded, "valid": valid})

    def add_paths(self, request):
        error = ""
        try:
            self.layers.add(request.get("first") or (), request.get("last") or ())
        except BaseException as failure:
            error = _value_of(failure) or type(failure).__name__
        self.outlet.send({"type": "add_paths_reply", "id": request.get("id", ""), "error": error})

    def trim(self, request):
        """Gives memory back that nobody uses."""
        _collect()
        malloc_trim = getattr(self.libc, "malloc_trim", None)  # glibc's
        if malloc_trim is not None:
            malloc_trim(ctypes.c_size_t(0))
        self.outlet.send({"type": "trim_reply", "id": request.get("id", "")})

    def freeze(self, request):
        """Makes ready for the memory to be replaced by the same memory from a file, or (with done) ends that.

        Objects that exist now are left out of every later collection of garbage, which writes to each object that it looks at. Until it is done, every process of this user may
        stop this one and change its memory."""
        if not request.get("done"):
            self.layers.loaded()  # sessions begin with that look done
            _collect()
            gc.freeze()
            self.fill_holes()
        PR_SET_PTRACER = 0x59616D61
        self.libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(0 if request.get("done") else -1), 0, 0, 0)
        self.outlet.send({"type": "freeze_reply", "id": request.get("id", "")})

    def fill_holes(self):
        """Allocates all memory that is free between what is in use, for good: what is allocated from now on lies together, and not some of it in each page."""
        libc = ctypes.CDLL(None)  # its functions' types are set here
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
        libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, (ctypes.c_ssize_t,)
        end = libc.sbrk(0)
        for size in (*(1 << n for n in range(16, 10, -1)), *range(1008, 0, -16)):
            while (got := libc.malloc(size)) and got + size <= end:
                pass
        # Python's own allocator has pools of blocks of equal size, up to 512 bytes; bytes take 33 more than they hold.
        self.ballast = [bytes(size - 40) for size in range(48, 513, 16) for _ in range(BALLAST_BLOCKS)]

    def shutdown(self, request):
        def give_up():
            time.sleep(SHUTDOWN_SECONDS)
            _exit(0)

        threading.Thread(target=give_up, daemon=True).start()
        try:
            atexit._run_exitfuncs()
        except BaseException:
            pass
        self.flush_c()
        self.outlet.flush()
        shutil.rmtree(STATE_DIR, ignore_errors=True)
        _exit(0)


class LowFdsTaken:
    """Makes descriptors opened inside land above those that os.closerange(3, 256) and the like reach."""

    def __enter__(self):
        self.fds = []
        try:
            while not self.fds or self.fds[-1] < 256:
                self.fds.append(os.dup(0))
        except OSError:
            for fd in self.fds[-16:]:  # a small limit on open files: leave room for what is to be opened
                os.close(fd)
            del self.fds[-16:]

    def __exit__(self, *args):
        for fd in self.fds:
            os.close(fd)


def move_high(fd):
    """Moves a descriptor out of the way of user code that closes what it did not open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    lowest = HIGH_FD if soft == resource.RLIM_INFINITY else max(5, min(HIGH_FD, soft - 16))
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(fd)
    return high


def with_room(run):
    """Calls run with half a megabyte of room for the frames of functions.

    Python keeps frames in chunks of 16 KiB, gets a chunk from the system when a frame does not fit, and gives it back when that frame ends. A function that is called again and again at the end of a chunk has
    this done for each call: during an import of scikit-learn 4,600 times, which is half of the import's time in a sandbox. A frame of more than 512 KiB gets a chunk of 1 MiB, and later frames get what it
    leaves. So this function has such a frame."""
    return run()


try:
    with_room.__code__ = with_room.__code__.replace(co_stacksize=65_000)
except ValueError:
    pass  # another Python, which is only slower


def main():
    kernel = Kernel(move_high(3), move_high(4))
    kernel.start()
    with_room(kernel.serve)
