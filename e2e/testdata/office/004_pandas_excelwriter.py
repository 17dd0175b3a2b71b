# Several DataFrames to one workbook, with an xlsxwriter chart beside the data.
import zipfile
import pandas as pd

sales = pd.DataFrame({"city": ["Paris", "Lyon", "Paris", "Nice"], "amount": [10, 20, 30, 40]})
totals = sales.groupby("city", as_index=False)["amount"].sum()
with pd.ExcelWriter("book.xlsx", engine="xlsxwriter") as writer:
    sales.to_excel(writer, sheet_name="Data", index=False)
    totals.to_excel(writer, sheet_name="Totals", index=False, startrow=2)
    chart = writer.book.add_chart({"type": "pie"})
    chart.add_series({"categories": "=Totals!$A$4:$A$6", "values": "=Totals!$B$4:$B$6"})
    writer.sheets["Totals"].insert_chart("E2", chart)

sheets = pd.read_excel("book.xlsx", sheet_name=None)
print(list(sheets), sheets["Data"].shape)
print(pd.read_excel("book.xlsx", sheet_name="Totals", header=2).to_dict("list"))
print(b"pieChart" in zipfile.ZipFile("book.xlsx").read("xl/charts/chart1.xml"))
