# What kinds of files are these?
import magic
from PIL import Image

Image.new("RGB", (5, 5)).save("a.png")
open("b.pdf", "wb").write(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
open("c.txt", "w").write("hello\n")
print([magic.from_file(name, mime=True) for name in ("a.png", "b.pdf", "c.txt")])
