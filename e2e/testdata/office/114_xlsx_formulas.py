# Work out the formulas of a workbook without Excel.
import logging
import formulas
from openpyxl import Workbook, load_workbook

logging.disable(logging.WARNING)
wb = Workbook()
ws = wb.active
ws["A1"], ws["A2"], ws["A3"] = 2, 40, "=SUM(A1:A2)"
ws["B1"] = '=IF(A3>41,"big","small")'
wb.save("in.xlsx")
model = formulas.ExcelModel().loads("in.xlsx").finish()
model.calculate()
model.write(dirpath="calculated")
sheet = load_workbook("calculated/IN.XLSX").active
print(sheet["A3"].value, sheet["B1"].value)
