"""Takes the variables of an interpreter to another one, of another sandbox. Both ends run as code of the session, with its rights.

The file has one pickle after the other, then a JSON object that says what is where, then the length of that in eight bytes.
"""

import importlib
import io
import json
import os
import pickle
import signal
import types


class Packer(pickle.Pickler):
    """Refuses what another interpreter would look for in vain: what was defined in the session itself."""

    def reducer_override(self, thing):
        if isinstance(thing, types.ModuleType) and thing.__name__ != "__main__":
            return importlib.import_module, (thing.__name__,)
        if isinstance(thing, (type, types.FunctionType)) and getattr(thing, "__module__", None) == "__main__":
            raise pickle.PicklingError("it is defined in the session")
        return NotImplemented


class Bounded(io.RawIOBase):
    """Writes to a file as long as there is room."""

    def __init__(self, file, end):
        self.file, self.end = file, end

    def writable(self):
        return True

    def write(self, data):
        view = memoryview(data)
        if self.file.tell() + view.nbytes > self.end:
            raise OverflowError("there is no room for it")
        return self.file.write(view)


class Late(BaseException):
    pass


def late(*_):
    raise Late


class Deadline:
    """Ends what takes too long, once; whoever catches that goes on without more of it."""

    def __init__(self, seconds):
        self.over = False
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def check(self):
        if self.over:
            raise Late

    def met(self, failure):
        self.over = self.over or isinstance(failure, (Late, KeyboardInterrupt))

    def end(self):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def named_by_user(space, hidden):
    return [name for name in space if isinstance(name, str) and name.isidentifier() and not name.startswith("_") and name not in hidden]


def pack(space, hidden, path, room, seconds):
    """Writes what can be pickled of a namespace to path, in at most room bytes and about as many seconds. What two variables have in common becomes two
    things, unless they are the same."""
    deadline = Deadline(seconds)
    packed, left, of = [], [], {}
    with open(path, "xb") as file:
        for name in named_by_user(space, hidden):
            known = of.get(id(space[name]))
            if known:
                known["names"].append(name)
                continue
            start = file.tell()
            try:
                deadline.check()
                Packer(Bounded(file, room), 5).dump(space[name])
                of[id(space[name])] = entry = {"names": [name], "start": start}
                packed.append(entry)
            except BaseException as failure:
                deadline.met(failure)
                left.append(name)
                file.seek(start)
                file.truncate()
        deadline.end()
        told = json.dumps({"packed": packed, "left": left}).encode()
        file.write(told + len(told).to_bytes(8, "little"))


def unpack(space, path, seconds):
    """Makes variables of what pack has written, but for names that are taken, and prints as JSON how many and which are not there."""
    deadline = Deadline(seconds)
    taken = 0
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(8), "little")
        file.seek(-8 - length, os.SEEK_END)
        told = json.loads(file.read(length))
        left = told["left"]
        for entry in told["packed"]:
            try:
                deadline.check()
                file.seek(entry["start"])
                thing = pickle.load(file)
                for name in entry["names"]:
                    space.setdefault(name, thing)
                taken += len(entry["names"])
            except BaseException as failure:
                deadline.met(failure)
                left += entry["names"]
    deadline.end()
    print(json.dumps({"taken": taken, "left": left[:100], "more": max(0, len(left) - 100)}))
