# Read the text of a picture.
import pytesseract
from PIL import Image, ImageDraw, ImageFont

image = Image.new("RGB", (900, 260), "white")
draw = ImageDraw.Draw(image)
font = ImageFont.truetype("DejaVuSans.ttf", 48)
draw.text((40, 30), "Invoice number 2041", fill="black", font=font)
draw.text((40, 130), "Total 358.20 EUR", fill="black", font=font)
image.save("scan.png")
print([line for line in pytesseract.image_to_string(Image.open("scan.png")).splitlines() if line.strip()])
data = pytesseract.image_to_data(image, output_type=pytesseract.Output.DICT)
print([t for t in data["text"] if t.strip()][:3])
