# OCR of a scanned German PDF.
import pytesseract
from pdf2image import convert_from_path
from PIL import Image, ImageDraw, ImageFont

page = Image.new("RGB", (1240, 600), "white")
ImageDraw.Draw(page).text((80, 100), "Größe und Gewicht\nStraße 17, München", fill="black", font=ImageFont.truetype("DejaVuSans.ttf", 60), spacing=40)
page.save("scan.pdf", resolution=150)
text = ""
for image in convert_from_path("scan.pdf", dpi=150):
    text += pytesseract.image_to_string(image, lang="deu")
print([line for line in text.splitlines() if line.strip()])
print("deu" in pytesseract.get_languages())
