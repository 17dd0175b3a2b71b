# Resize, crop, rotate and convert pictures.
from PIL import Image, ImageFilter, ImageOps

image = Image.new("RGB", (800, 600), "navy")
image.paste((255, 200, 0), (0, 0, 400, 600))
thumb = image.copy()
thumb.thumbnail((200, 200))
fit = ImageOps.fit(image, (100, 100))
turned = image.rotate(90, expand=True)
print(thumb.size, fit.size, turned.size)
print(fit.getpixel((5, 50)), fit.getpixel((95, 50)), ImageOps.mirror(image).getpixel((10, 10)))
for fmt in ("JPEG", "WEBP", "BMP", "TIFF"):
    image.filter(ImageFilter.GaussianBlur(2)).save(f"out.{fmt.lower()}", fmt)
    with Image.open(f"out.{fmt.lower()}") as back:
        print(back.format, back.size, back.mode)
