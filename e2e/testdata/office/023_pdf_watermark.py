# Stamp a watermark over each page, and crop.
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen import canvas

c = canvas.Canvas("base.pdf", pagesize=(400, 400))
for i in (1, 2):
    c.drawString(40, 300, f"body {i}")
    c.showPage()
c.save()
w = canvas.Canvas("mark.pdf", pagesize=(400, 400))
w.setFont("Helvetica", 40)
w.setFillAlpha(0.2)
w.drawString(60, 60, "DRAFT")
w.save()
mark = PdfReader("mark.pdf").pages[0]
writer = PdfWriter(clone_from="base.pdf")
for page in writer.pages:
    page.merge_page(mark)
    page.cropbox.upper_right = (200, 350)
writer.add_outline_item("Second", 1)
writer.add_metadata({"/Author": "Ada"})
writer.write("marked.pdf")
back = PdfReader("marked.pdf")
print([sorted(p.extract_text().split()) for p in back.pages])
print(back.outline[0].title, back.metadata.author, [float(v) for v in back.pages[0].cropbox])
