# The table of a PDF as a DataFrame.
import pandas as pd
import pdfplumber
from reportlab.lib import colors
from reportlab.platypus import SimpleDocTemplate, Table, TableStyle

data = [["Product", "Units", "Price"], ["Tea", "14", "3.20"], ["Coffee", "9", "5.75"], ["Milk", "30", "0.99"]]
table = Table(data)
table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 1, colors.black)]))
SimpleDocTemplate("table.pdf").build([table])

with pdfplumber.open("table.pdf") as pdf:
    rows = pdf.pages[0].extract_table()
    words = [w["text"] for w in pdf.pages[0].extract_words()]
df = pd.DataFrame(rows[1:], columns=rows[0]).astype({"Units": int, "Price": float})
print(rows)
print(len(words), (df.Units * df.Price).sum().round(2))
