# What is in an Outlook .msg: here that a file which only has its name is not one.
import extract_msg
import olefile

open("note.msg", "wb").write(b"not an Outlook file")
print(olefile.isOleFile("note.msg"))
try:
    extract_msg.openMsg("note.msg")
except extract_msg.exceptions.InvalidFileFormatError:
    print("not a msg file")
