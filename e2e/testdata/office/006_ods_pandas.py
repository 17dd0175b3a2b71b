# An OpenDocument spreadsheet with two sheets.
import pandas as pd

with pd.ExcelWriter("table.ods", engine="odf") as writer:
    pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}).to_excel(writer, sheet_name="first", index=False)
    pd.DataFrame({"total": [6.5]}).to_excel(writer, sheet_name="second", index=False)

sheets = pd.read_excel("table.ods", sheet_name=None)
print({name: frame.values.tolist() for name, frame in sheets.items()})
print(open("table.ods", "rb").read(2), b"opendocument.spreadsheet" in open("table.ods", "rb").read(200))
