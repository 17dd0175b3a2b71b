# Build a monthly sales workbook with formatting and read it back.
from openpyxl import Workbook, load_workbook
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter

rows = [("Month", "Units", "Price"), ("Jan", 120, 9.5), ("Feb", 80, 10.0), ("Mar", 200, 8.75)]
wb = Workbook()
ws = wb.active
ws.title = "Sales"
for row in rows:
    ws.append(row)
for cell in ws[1]:
    cell.font = Font(bold=True, color="FFFFFF")
    cell.fill = PatternFill("solid", fgColor="4472C4")
    cell.alignment = Alignment(horizontal="center")
ws["D1"] = "Revenue"
for r in range(2, 5):
    ws[f"D{r}"] = f"=B{r}*C{r}"
ws.freeze_panes = "A2"
ws.column_dimensions[get_column_letter(1)].width = 18
ws.merge_cells("A6:D6")
ws["A6"] = "合计 2024"
wb.save("sales.xlsx")

back = load_workbook("sales.xlsx")
sheet = back["Sales"]
print(back.sheetnames, sheet.dimensions, sheet.freeze_panes)
print(sheet["D3"].value, sheet["A1"].font.bold, sheet["A1"].fill.fgColor.rgb)
print(sheet["A6"].value, [str(m) for m in sheet.merged_cells.ranges])
print(sum(sheet.cell(r, 2).value * sheet.cell(r, 3).value for r in range(2, 5)))
