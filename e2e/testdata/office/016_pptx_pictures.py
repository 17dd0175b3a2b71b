# One slide for each picture, on widescreen slides, and the pictures out of the file again.
import io
from PIL import Image
from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.util import Inches

prs = Presentation()
prs.slide_width, prs.slide_height = Inches(13.333), Inches(7.5)
for name, color, size in (("red", (255, 0, 0), (400, 300)), ("blue", (0, 0, 255), (200, 500))):
    Image.new("RGB", size, color).save(f"{name}.png")
    slide = prs.slides.add_slide(prs.slide_layouts[6])
    slide.shapes.add_picture(f"{name}.png", Inches(1), Inches(1), height=Inches(4))
prs.save("pictures.pptx")

for slide in Presentation("pictures.pptx").slides:
    for shape in slide.shapes:
        if shape.shape_type == MSO_SHAPE_TYPE.PICTURE:
            image = Image.open(io.BytesIO(shape.image.blob))
            print(image.size, image.getpixel((5, 5)), round(shape.width / shape.height, 2))
