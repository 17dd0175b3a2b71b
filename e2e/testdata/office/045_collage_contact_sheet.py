# A contact sheet of pictures with captions.
from pathlib import Path
from PIL import Image, ImageDraw, ImageFont

Path("photos").mkdir()
for i, color in enumerate(["red", "green", "blue", "white", "black"]):
    Image.new("RGB", (300 + 10 * i, 200), color).save(f"photos/{i}_{color}.jpg", quality=95)
files = sorted(Path("photos").glob("*.jpg"))
cols, cell = 3, 110
rows = -(-len(files) // cols)
sheet = Image.new("RGB", (cols * cell, rows * cell), "gray")
draw = ImageDraw.Draw(sheet)
font = ImageFont.load_default(size=12)
for i, file in enumerate(files):
    image = Image.open(file)
    image.thumbnail((100, 80))
    sheet.paste(image, ((i % cols) * cell + 5, (i // cols) * cell + 5))
    draw.text(((i % cols) * cell + 5, (i // cols) * cell + 92), file.stem, fill="white", font=font)
sheet.save("sheet.png")
print(sheet.size, [round(v / 255) for v in sheet.getpixel((30, 30))], [round(v / 255) for v in sheet.getpixel((cell * 2 + 30, 30))])
