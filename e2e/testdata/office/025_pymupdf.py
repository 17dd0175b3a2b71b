# PyMuPDF: text with positions, pictures out of a PDF, a page as PNG, a redaction.
import fitz

doc = fitz.open()
page = doc.new_page(width=400, height=300)
page.insert_text((50, 80), "Account 12345", fontsize=16)
pix = fitz.Pixmap(fitz.csRGB, fitz.IRect(0, 0, 30, 20))
pix.set_rect(pix.irect, (0, 128, 0))
page.insert_image(fitz.Rect(50, 120, 110, 160), pixmap=pix)
doc.save("m.pdf")

doc = fitz.open("m.pdf")
page = doc[0]
found = page.search_for("12345")
print(len(found), page.get_text().strip())
xref = page.get_images()[0][0]
image = fitz.Pixmap(doc, xref)
print(image.width, image.height, image.pixel(3, 3))
page.get_pixmap(dpi=144).save("page.png")
from PIL import Image
print(Image.open("page.png").size)
page.add_redact_annot(found[0], fill=(0, 0, 0))
page.apply_redactions()
print(page.get_text().strip())
