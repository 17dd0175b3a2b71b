# EXIF of a photo: write, read, and turn the picture the right way.
from PIL import Image, ImageOps
from PIL.ExifTags import Base

photo = Image.new("RGB", (400, 200), "green")
exif = Image.Exif()
exif[Base.Make] = "Acme"
exif[Base.DateTime] = "2024:05:01 10:20:30"
exif[Base.Orientation] = 6
exif.get_ifd(0x8825)[1] = "N"
photo.save("photo.jpg", exif=exif)

read = Image.open("photo.jpg")
tags = {Base(k).name: v for k, v in read.getexif().items() if k in (Base.Make, Base.DateTime, Base.Orientation)}
print(tags["Make"], tags["DateTime"], tags["Orientation"])
print(ImageOps.exif_transpose(read).size)
