# Encrypt a PDF with AES and open it again.
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen import canvas

c = canvas.Canvas("plain.pdf")
c.drawString(100, 700, "secret 4711")
c.save()
writer = PdfWriter(clone_from="plain.pdf")
writer.encrypt("open sesame", algorithm="AES-256")
writer.write("locked.pdf")

reader = PdfReader("locked.pdf")
print(reader.is_encrypted, reader.decrypt("wrong").name)
print(reader.decrypt("open sesame").name in ("OWNER_PASSWORD", "USER_PASSWORD"), reader.pages[0].extract_text().strip())
print(b"4711" in open("locked.pdf", "rb").read())
