# Compress a PDF with Ghostscript.
import subprocess
from pypdf import PdfReader
from reportlab.pdfgen import canvas

c = canvas.Canvas("big.pdf")
for i in range(3):
    c.drawString(100, 700, f"page {i}")
    c.showPage()
c.save()
subprocess.run(["gs", "-sDEVICE=pdfwrite", "-dPDFSETTINGS=/ebook", "-dNOPAUSE", "-dQUIET", "-dBATCH", "-sOutputFile=small.pdf", "big.pdf"], check=True)
print(len(PdfReader("small.pdf").pages))
