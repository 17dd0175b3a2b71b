"""Replaces the memory of an interpreter by the same memory from files, so that every sandbox that is restored from its checkpoint has the files' pages in common.

    memory_map.py save PID PATH     writes the files PATH.0, PATH.1, ... and says how many there are
    memory_map.py map PID PATH...   maps what of them still is as it was saved
    memory_map.py keep PID PATH...  makes what was written to since then memory of the interpreter's own again, piece by piece

The interpreter is stopped with all its threads meanwhile, whatever they are doing. It takes no part: the system calls are made in its main thread by ptrace(2).
A file has pages, then JSON [[address, bytes], ...] that says where they belong in this order, then the length of that in 8 bytes, little-endian.
"""

import ctypes
import itertools
import json
import os
import platform
import struct
import sys

PAGE = 4096
CHUNK = 1 << 20
# What a file has at most. To save a sandbox, gVisor looks at every piece of a file that is mapped, once for every piece of it: with all memory in one file that took half of a save.
PART = 4 << 20
GAP = 8  # pages that "keep" includes between two that it has to keep, for fewer pieces: each costs a fault in every sandbox

# Of ptrace.h, wait.h, mman.h and elf.h.
PTRACE_DETACH, PTRACE_SYSCALL, PTRACE_GETREGSET, PTRACE_SETREGSET, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 24, 0x4204, 0x4205, 0x4206, 0x4207
WALL = 0x40000000
PROT_READ, PROT_WRITE, PROT_ALL, MAP_PRIVATE_FIXED, MAP_ANONYMOUS, MADV_DONTNEED = 1, 3, 7, 0x12, 0x20, 4
NT_PRSTATUS = 1
STACK_ROOM = 128 << 10  # what is left of the stack below its end
RELOCATED = 64  # kilobytes that were written to when a library was linked, from which on they are worth a mapping
RESERVE = 4096  # kilobytes; below that, a region is worth being looked at
ARENA = 64 << 20  # glibc aligns the heaps of other arenas than the first to this

NONE = (1 << 64) - 1


class X86:
    """Registers by their place in user_regs_struct."""

    size, number, arguments, result, pc, sp = 27, 10, (14, 13, 12, 7, 9, 8), 10, 16, 19
    before = {15: NONE}  # orig_rax: no system call is to be restarted
    code, openat, mmap, close, madvise = b"\x0f\x05", 257, 9, 3, 28


class Arm64:
    """Registers by their place in user_pt_regs."""

    size, number, arguments, result, pc, sp = 34, 8, (0, 1, 2, 3, 4, 5), 0, 32, 31
    before = {}
    code, openat, mmap, close, madvise = b"\x01\x00\x00\xd4", 56, 222, 57, 233


CPU = {"x86_64": X86, "aarch64": Arm64}.get(platform.machine())

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


class Failure(Exception):
    pass


def ptrace(request, thread, address=None, data=None):
    if libc.ptrace(request, thread, address, data) < 0:
        number = ctypes.get_errno()
        raise Failure("ptrace %#x: %s" % (request, os.strerror(number)))


class Region:
    """A run of addresses with the same rights, with the kilobytes of it that are in memory and those of them that are not simply a file's."""

    def __init__(self, line):
        fields = line.split(None, 5)
        self.start, self.end = (int(part, 16) for part in fields[0].split("-"))
        self.rights, self.offset = fields[1], int(fields[2], 16)
        self.name = fields[5].strip() if len(fields) > 5 else ""
        self.resident = self.own = 0

    def reserved(self):
        size = (self.end - self.start) // 1024
        return not self.resident or size >= RESERVE and 2 * self.resident < size


def regions_of(pid):
    found = []
    with open("/proc/%d/smaps" % pid) as maps:
        for line in maps:
            if line.startswith("Rss:"):
                found[-1].resident = int(line.split()[1])
            elif line.startswith("Anonymous:"):
                found[-1].own = int(line.split()[1])
            elif not line.split(None, 1)[0].endswith(":"):
                found.append(Region(line))
    return found


class Process:
    """A process that is stopped."""

    def __init__(self, pid):
        self.pid, self.threads = pid, []
        self.memory = os.open("/proc/%d/mem" % pid, os.O_RDWR)
        while True:
            new = [int(t) for t in os.listdir("/proc/%d/task" % pid) if int(t) not in self.threads]
            if not new:
                break
            for thread in new:  # a thread that runs may have started others meanwhile
                ptrace(PTRACE_SEIZE, thread)
                ptrace(PTRACE_INTERRUPT, thread)
                self.wait(thread)
                self.threads.append(thread)
        self.regions = regions_of(pid)

    def go_on(self):
        for thread in self.threads:
            ptrace(PTRACE_DETACH, thread)

    def wait(self, thread):
        _, status = os.waitpid(thread, WALL)
        if not os.WIFSTOPPED(status):
            raise Failure("a thread has ended: %#x" % status)

    def read(self, address, size):
        data = os.pread(self.memory, size, address)
        if len(data) != size:
            raise Failure("%#x cannot be read" % address)
        return data

    def write(self, address, data):
        if os.pwrite(self.memory, data, address) != len(data):
            raise Failure("%#x cannot be written to" % address)

    def shareable(self):
        """Regions of memory that belong to the process alone, also those that it has written to when it linked a library and only reads since.

        Not the main thread's stack, which is in use, and none that an allocator takes to be zero after it has given pages back with madvise(2): from a file they come back as they
        were. Of glibc's those are the heaps of its further arenas. Nor what is reserved and hardly used, as allocators do by the gigabyte: to look at it makes the system provide it."""
        for region, following in itertools.zip_longest(self.regions, self.regions[1:]):
            if region.reserved() or region.name.startswith(("[stack", "[v")) or region.rights != "rw-p" and (region.rights != "r--p" or region.own < RELOCATED):
                continue
            if not region.name and region.start % ARENA == 0 and following and following.start == region.end and following.rights == "---p":
                continue
            yield region

    def runs(self):
        """Yields runs of pages that are not zero: their region, address and content."""
        for region in self.shareable():
            yield from self.runs_of(region)

    def runs_of(self, region):
        for start in range(region.start, region.end, CHUNK):
            data = self.read(start, min(CHUNK, region.end - start))
            if data.count(0) == len(data):
                continue
            used = ((p, data.count(0, p, p + PAGE) < PAGE) for p in range(0, len(data), PAGE))
            for kept, group in itertools.groupby(used, lambda pair: pair[1]):
                group = list(group)
                if kept:
                    yield region, start + group[0][0], data[group[0][0] : group[-1][0] + PAGE]

    def unused(self):
        """Yields runs of pages that are zero as if nothing had ever been written there: address and size. To read them has made the system set memory aside for them."""
        for region in self.shareable():
            if region.name not in ("", "[heap]") or region.rights != "rw-p":
                continue
            at = region.start
            for _, address, data in itertools.chain(self.runs_of(region), [(region, region.end, b"")]):
                if address > at:
                    yield at, address - at
                at = address + len(data)
        for region in self.regions:  # the part of the stack that nothing lies on any more
            low = (self.registers()[CPU.sp] - STACK_ROOM) & ~(PAGE - 1)
            if region.name == "[stack]" and low > region.start:
                yield region.start, low - region.start

    def registers(self, values=None):
        """Returns the main thread's registers, or sets them."""
        words = (ctypes.c_uint64 * CPU.size)(*(values or ()))
        vector = (ctypes.c_uint64 * 2)(ctypes.addressof(words), ctypes.sizeof(words))
        ptrace(PTRACE_GETREGSET if values is None else PTRACE_SETREGSET, self.pid, NT_PRSTATUS, ctypes.addressof(vector))
        return list(words)

    def gate(self):
        """The address of an instruction that makes a system call."""
        for region in self.regions:
            if region.rights == "r-xp" and "libc" in region.name:
                at = self.read(region.start, region.end - region.start).find(CPU.code)
                if at >= 0:
                    return region.start + at
        raise Failure("the C library makes no system calls")


class Calls:
    """System calls in the main thread of a stopped process, whose registers are as they were afterwards."""

    def __init__(self, process):
        self.process, self.saved, self.gate = process, process.registers(), process.gate()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.registers(self.saved)

    def __call__(self, number, *arguments):
        registers = list(self.saved)
        for register, value in {CPU.pc: self.gate, CPU.number: number, **CPU.before, **dict(zip(CPU.arguments, arguments))}.items():
            registers[register] = value & NONE
        self.process.registers(registers)
        for _ in ("into the system call", "out of it"):
            ptrace(PTRACE_SYSCALL, self.process.pid)
            self.process.wait(self.process.pid)
        registers = self.process.registers()
        if registers[CPU.pc] != self.gate + len(CPU.code):
            raise Failure("a system call did not return")
        result = ctypes.c_int64(registers[CPU.result]).value
        if -PAGE < result < 0:
            raise Failure("system call %d: %s" % (number, os.strerror(-result)))
        return result

    def open(self, path):
        """Opens a file for reading. The path stands below the stack, and below what a function may have there, for that long."""
        text = os.fsencode(path) + b"\0"
        place = (self.saved[CPU.sp] - PAGE) & ~15
        there = self.process.read(place, len(text))
        self.process.write(place, text)
        try:
            return self(CPU.openat, -100, place, os.O_RDONLY | os.O_CLOEXEC, 0)
        finally:
            self.process.write(place, there)


def save(process, path):
    runs, parts = process.runs(), 0
    while save_part(runs, "%s.%d" % (path, parts)):
        parts += 1
    os.unlink("%s.%d" % (path, parts))
    print(parts)


def save_part(runs, path):
    """Writes a file with the next runs, and returns how many bytes of them it has."""
    index, before, size = [], None, 0
    with open(path, "wb") as file:
        for region, address, data in runs:
            file.write(data)
            size += len(data)
            if region is before and sum(index[-1]) == address:
                index[-1][1] += len(data)
            else:
                index.append([address, len(data)])
            before = region
            if size > PART - CHUNK:
                break
        text = json.dumps(index).encode()
        file.write(text + struct.pack("<Q", len(text)))
    return size


def saved(path):
    """Yields what a file has: the address, the content and the place in the file of each run."""
    with open(path, "rb") as file:
        end = file.seek(-8, os.SEEK_END)
        (length,) = struct.unpack("<Q", file.read(8))
        file.seek(end - length)
        index, offset = json.loads(file.read(length)), 0
        for address, size in index:
            file.seek(offset)
            yield address, file.read(size), offset
            offset += size


def compare(before, now):
    """Yields the runs of pages in which two contents are equal, or are not: whether, where and how long."""
    if before == now:
        yield True, 0, len(now)
        return
    for equal, group in itertools.groupby(range(0, len(now), PAGE), lambda p: before[p : p + PAGE] == now[p : p + PAGE]):
        group = list(group)
        yield equal, group[0], len(group) * PAGE


def unchanged(process, path):
    """Yields what of a file can be mapped: address, size, rights and the place in the file."""
    regions = list(process.shareable())
    for address, content, offset in saved(path):
        for region in regions:
            if region.start <= address and address + len(content) <= region.end:
                # Of memory that may be executed, gVisor copies a single page at the first write, of any other up to 2 MiB.
                rights = PROT_ALL if region.rights == "rw-p" else PROT_READ
                yield from ((address + at, size, rights, offset + at) for equal, at, size in compare(content, process.read(address, len(content))) if equal)


def map_from(process, *paths):
    found = [(path, list(unchanged(process, path))) for path in paths]
    unused = list(process.unused())
    with Calls(process) as call:
        for path, pieces in found:
            file = call.open(path)
            for address, size, rights, offset in pieces:
                call(CPU.mmap, address, size, rights, MAP_PRIVATE_FIXED, file, offset)
            call(CPU.close, file)
        for address, size in unused:
            call(CPU.madvise, address, size, MADV_DONTNEED)


def changed(process, path):
    """Yields the pieces of what is mapped that were written to, with what lies between them where that is little: address and size."""
    with open(path, "rb") as file:
        for region in process.regions:
            if region.name != path:
                continue
            file.seek(region.offset)
            content = file.read(region.end - region.start)
            found = [(at, at + size) for equal, at, size in compare(content, process.read(region.start, len(content))) if not equal]
            pieces = []
            for start, end in found:
                if pieces and start - pieces[-1][1] <= GAP * PAGE:
                    start, _ = pieces.pop()
                pieces.append((0 if start <= GAP * PAGE else start, len(content) if len(content) - end <= GAP * PAGE else end))
            for start, end in pieces:
                yield region.start + start, end - start


def keep(process, *paths):
    pieces = [piece for path in paths for piece in changed(process, path)]
    with Calls(process) as call:
        for address, size in pieces:
            content = process.read(address, size)
            call(CPU.mmap, address, size, PROT_WRITE, MAP_PRIVATE_FIXED | MAP_ANONYMOUS, NONE, 0)
            process.write(address, content)


def main(deed, pid, *paths):
    if CPU is None:
        raise Failure("no registers are known of " + platform.machine())
    process = Process(int(pid))
    try:
        {"save": save, "map": map_from, "keep": keep}[deed](process, *paths)
    finally:
        process.go_on()


try:
    main(*sys.argv[1:])
except (Failure, OSError) as failure:
    sys.exit("mold: %s" % failure)
