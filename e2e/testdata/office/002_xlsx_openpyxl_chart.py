# Add a bar chart and a line chart to a workbook.
import zipfile
from openpyxl import Workbook, load_workbook
from openpyxl.chart import BarChart, LineChart, Reference

wb = Workbook()
ws = wb.active
ws.append(["Quarter", "North", "South"])
for q, (n, s) in enumerate([(10, 7), (12, 9), (15, 4), (11, 13)], start=1):
    ws.append([f"Q{q}", n, s])
categories = Reference(ws, min_col=1, min_row=2, max_row=5)
for kind, anchor in ((BarChart(), "E2"), (LineChart(), "E18")):
    kind.title = "Regions"
    kind.add_data(Reference(ws, min_col=2, max_col=3, min_row=1, max_row=5), titles_from_data=True)
    kind.set_categories(categories)
    ws.add_chart(kind, anchor)
wb.save("charts.xlsx")

names = sorted(n for n in zipfile.ZipFile("charts.xlsx").namelist() if n.startswith("xl/charts/"))
text = zipfile.ZipFile("charts.xlsx").read(names[0]).decode()
print(names)
print("barChart" in text, text.count("<ser>"))
print(len(load_workbook("charts.xlsx").active._charts))
