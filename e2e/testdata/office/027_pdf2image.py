# Pages of a PDF as pictures, by poppler.
from pdf2image import convert_from_path, pdfinfo_from_path
from reportlab.lib.colors import red
from reportlab.pdfgen import canvas

c = canvas.Canvas("pages.pdf", pagesize=(360, 216))
for _ in range(3):
    c.setFillColor(red)
    c.rect(0, 0, 180, 216, stroke=0, fill=1)
    c.showPage()
c.save()
images = convert_from_path("pages.pdf", dpi=100)
images[0].save("page1.jpg", quality=90)
print(len(images), images[0].size, images[0].getpixel((10, 150)), images[0].getpixel((400, 150)))
print(pdfinfo_from_path("pages.pdf")["Pages"])
