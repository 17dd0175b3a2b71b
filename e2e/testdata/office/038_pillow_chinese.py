# Chinese text in a picture, with the fonts that code usually names.
from PIL import Image, ImageDraw, ImageFont

for name in ("simhei.ttf", "msyh.ttc", "/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc"):
    font = ImageFont.truetype(name, 100)
    boxes = []
    for char in "一口":
        image = Image.new("L", (160, 160), 0)
        ImageDraw.Draw(image).text((20, 10), char, fill=255, font=font)
        left, top, right, bottom = image.getbbox()
        boxes.append((right - left) / (bottom - top))
    # The sign for one is a flat stroke, the one for mouth about a square.
    print(boxes[0] > 4, 0.7 < boxes[1] < 1.5)
card = Image.new("RGB", (400, 120), "white")
ImageDraw.Draw(card).text((20, 20), "生日快乐", fill="red", font=font)
card.save("card.png")
print(Image.open("card.png").size)
