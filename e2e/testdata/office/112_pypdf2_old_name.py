# Merge PDFs by the name that the library had before.
from PyPDF2 import PdfMerger, PdfReader
from reportlab.pdfgen import canvas

merger = PdfMerger()
for i in range(3):
    c = canvas.Canvas(f"{i}.pdf")
    c.drawString(100, 700, f"file {i}")
    c.save()
    merger.append(f"{i}.pdf")
merger.write("all.pdf")
merger.close()
print([page.extract_text().strip() for page in PdfReader("all.pdf").pages])
