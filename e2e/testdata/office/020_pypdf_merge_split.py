# Merge PDFs, take pages out, rotate them.
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen import canvas

for name, pages in (("a", 2), ("b", 3)):
    c = canvas.Canvas(f"{name}.pdf", pagesize=(300, 200))
    for i in range(pages):
        c.drawString(50, 100, f"{name}{i + 1}")
        c.showPage()
    c.save()

merged = PdfWriter()
for name in ("a.pdf", "b.pdf"):
    merged.append(name)
merged.write("merged.pdf")
odd = PdfWriter()
for i, page in enumerate(PdfReader("merged.pdf").pages):
    if i % 2 == 0:
        odd.add_page(page.rotate(90))
odd.write("odd.pdf")
print([p.extract_text().strip() for p in PdfReader("merged.pdf").pages])
print([(p.extract_text().strip(), p.rotation) for p in PdfReader("odd.pdf").pages])
