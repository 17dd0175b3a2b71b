# An old .xls file, written with xlwt and read with xlrd and pandas.
import datetime
import pandas as pd
import xlrd
import xlwt

book = xlwt.Workbook(encoding="utf-8")
sheet = book.add_sheet("名单")
date_style = xlwt.easyxf(num_format_str="YYYY-MM-DD")
for col, title in enumerate(["name", "born", "score"]):
    sheet.write(0, col, title, xlwt.easyxf("font: bold on"))
for row, (name, born, score) in enumerate([("王芳", datetime.date(1990, 5, 17), 91.5), ("李雷", datetime.date(1988, 12, 1), 78)], start=1):
    sheet.write(row, 0, name)
    sheet.write(row, 1, born, date_style)
    sheet.write(row, 2, score)
book.save("old.xls")

read = xlrd.open_workbook("old.xls", formatting_info=True).sheet_by_index(0)
print(read.name, read.nrows, read.ncols, read.row_values(1)[0], read.cell_value(1, 2))
frame = pd.read_excel("old.xls")
print(frame["name"].tolist(), [str(d.date()) for d in frame["born"]], frame["score"].sum())
