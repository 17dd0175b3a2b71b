# Repair, split and read the metadata of a PDF with pikepdf.
import pikepdf
from reportlab.pdfgen import canvas

c = canvas.Canvas("in.pdf")
for i in range(4):
    c.drawString(100, 700, f"p{i}")
    c.showPage()
c.save()
with pikepdf.open("in.pdf") as pdf:
    with pdf.open_metadata() as meta:
        meta["dc:title"] = "Vier Seiten"
    del pdf.pages[1]
    pdf.pages.reverse()
    pdf.save("out.pdf", linearize=True)
with pikepdf.open("out.pdf") as pdf:
    print(len(pdf.pages), pdf.is_linearized, pdf.open_metadata()["dc:title"])
