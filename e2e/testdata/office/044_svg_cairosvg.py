# An SVG made and drawn as PNG.
import cairosvg
import svgwrite
from PIL import Image

drawing = svgwrite.Drawing("logo.svg", size=("100px", "60px"))
drawing.add(drawing.rect((0, 0), (50, 60), fill="#ff0000"))
drawing.add(drawing.circle((75, 30), 20, fill="#0000ff"))
drawing.save()
cairosvg.svg2png(url="logo.svg", write_to="logo.png", scale=2)
image = Image.open("logo.png").convert("RGBA")
print(image.size, image.getpixel((10, 10)), image.getpixel((150, 60)), image.getpixel((199, 0))[3])
