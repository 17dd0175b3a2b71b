# A workbook with a picture, a comment, a link and a protected sheet.
from openpyxl import Workbook, load_workbook
from openpyxl.comments import Comment
from openpyxl.drawing.image import Image as SheetImage
from PIL import Image

Image.new("RGB", (120, 60), "teal").save("logo.png")
wb = Workbook()
ws = wb.active
ws.add_image(SheetImage("logo.png"), "C3")
ws["A1"] = "docs"
ws["A1"].hyperlink = "https://example.org/"
ws["A2"] = 5
ws["A2"].comment = Comment("checked", "Ann")
ws.protection.sheet = True
wb.create_sheet("hidden").sheet_state = "hidden"
wb.save("rich.xlsx")
back = load_workbook("rich.xlsx")
sheet = back.worksheets[0]
print(len(sheet._images), sheet._images[0].width, sheet["A1"].hyperlink.target, sheet["A2"].comment.text)
print(sheet.protection.sheet, [(s.title, s.sheet_state) for s in back.worksheets])
