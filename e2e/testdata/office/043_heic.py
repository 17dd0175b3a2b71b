# An iPhone's photo (HEIC) as JPEG.
from PIL import Image
from pillow_heif import register_heif_opener

register_heif_opener()
Image.new("RGB", (320, 240), (10, 120, 200)).save("photo.heic", quality=90)
image = Image.open("photo.heic")
print(image.format, image.size)
image.convert("RGB").save("photo.jpg")
r, g, b = Image.open("photo.jpg").getpixel((100, 100))
print(abs(r - 10) < 8 and abs(g - 120) < 8 and abs(b - 200) < 8)
