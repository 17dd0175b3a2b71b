# Scans to one PDF, and the pictures out of it again.
import img2pdf
from PIL import Image
from pypdf import PdfReader

for i, color in enumerate(["red", "lime", "blue"]):
    Image.new("RGB", (620, 877), color).save(f"scan{i}.png")
with open("scans.pdf", "wb") as f:
    f.write(img2pdf.convert(["scan0.png", "scan1.png", "scan2.png"], layout_fun=img2pdf.get_layout_fun((img2pdf.mm_to_pt(210), img2pdf.mm_to_pt(297)))))
reader = PdfReader("scans.pdf")
print(len(reader.pages), [round(float(v)) for v in reader.pages[0].mediabox[2:]])
print([(p.images[0].image.size, p.images[0].image.convert("RGB").getpixel((9, 9))) for p in reader.pages])
