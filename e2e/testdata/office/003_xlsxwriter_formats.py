# A styled report with xlsxwriter: number formats, a conditional format, a formula with its value.
import xlsxwriter
from openpyxl import load_workbook

with xlsxwriter.Workbook("report.xlsx") as book:
    sheet = book.add_worksheet("Budget")
    money = book.add_format({"num_format": "$#,##0.00", "bold": True})
    percent = book.add_format({"num_format": "0.0%"})
    sheet.write_row(0, 0, ["Item", "Cost", "Share"])
    for i, (item, cost) in enumerate([("Rent", 1500), ("Food", 500), ("Fun", 250)], start=1):
        sheet.write(i, 0, item)
        sheet.write(i, 1, cost, money)
        sheet.write_formula(i, 2, f"=B{i + 1}/SUM(B$2:B$4)", percent, cost / 2250)
    sheet.conditional_format("B2:B4", {"type": "data_bar"})
    sheet.data_validation("D2", {"validate": "list", "source": ["yes", "no"]})
    sheet.set_column("A:A", 22)

formulas = load_workbook("report.xlsx")["Budget"]
values = load_workbook("report.xlsx", data_only=True)["Budget"]
print(formulas["C2"].value, round(values["C2"].value, 4), formulas["B2"].number_format)
print(len(formulas.conditional_formatting), formulas.data_validations.dataValidation[0].formula1)
print([c.value for c in values["B"]])
