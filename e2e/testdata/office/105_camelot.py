# Tables of a PDF with camelot.
import camelot
from reportlab.lib import colors
from reportlab.platypus import SimpleDocTemplate, Table, TableStyle

t = Table([["City", "Rain"], ["Oslo", "763"], ["Rome", "878"]], colWidths=120)
t.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 1, colors.black)]))
SimpleDocTemplate("rain.pdf").build([t])
tables = camelot.read_pdf("rain.pdf", pages="1", flavor="lattice")
print(tables.n, tables[0].df.values.tolist())
