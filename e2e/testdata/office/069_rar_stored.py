# List and read a RAR archive whose files are not compressed.
import struct
import zlib
import rarfile

def block(kind, flags, body, data=b""):
    head = struct.pack("<BHH", kind, flags, 7 + len(body)) + body
    return struct.pack("<H", zlib.crc32(head) & 0xFFFF) + head + data

content = b"name,qty\ntea,3\n"
fields = struct.pack("<IIBIIBBHI", len(content), len(content), 3, zlib.crc32(content), 0x58A26E3C, 20, 0x30, 8, 0o100644) + b"list.csv"
with open("a.rar", "wb") as f:
    f.write(b"Rar!\x1a\x07\x00" + block(0x73, 0, bytes(6)) + block(0x74, 0x8000, fields, content) + block(0x7B, 0x4000, b""))
with rarfile.RarFile("a.rar") as archive:
    print(archive.namelist(), archive.read("list.csv").decode().split())
