# Unpack a RAR archive by the program unrar.
import struct
import subprocess
import zlib

def block(kind, flags, body, data=b""):
    head = struct.pack("<BHH", kind, flags, 7 + len(body)) + body
    return struct.pack("<H", zlib.crc32(head) & 0xFFFF) + head + data

content = b"alpha beta"
fields = struct.pack("<IIBIIBBHI", len(content), len(content), 3, zlib.crc32(content), 0x58A26E3C, 20, 0x30, 5, 0o100644) + b"a.txt"
with open("a.rar", "wb") as f:
    f.write(b"Rar!\x1a\x07\x00" + block(0x73, 0, bytes(6)) + block(0x74, 0x8000, fields, content) + block(0x7B, 0x4000, b""))
subprocess.run(["unrar", "x", "-y", "a.rar"], check=True, capture_output=True)
print(open("a.txt").read())
