# A 7z archive with a password.
import py7zr

open("note.txt", "w").write("hello 7z")
with py7zr.SevenZipFile("box.7z", "w", password="pw") as archive:
    archive.write("note.txt")
with py7zr.SevenZipFile("box.7z", password="pw") as archive:
    print(archive.getnames(), archive.needs_password())
    archive.extractall("out")
print(open("out/note.txt").read(), open("box.7z", "rb").read(2))
