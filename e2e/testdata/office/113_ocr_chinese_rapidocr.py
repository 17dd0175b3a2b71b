# Read Chinese in a picture.
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

image = Image.new("RGB", (800, 200), "white")
ImageDraw.Draw(image).text((40, 40), "发票金额三百元", fill="black", font=ImageFont.truetype("simhei.ttf", 80))
image.save("bill.png")
result, _ = RapidOCR()("bill.png")
print([row[1] for row in result])
