# A report with a table, in PDF, with page numbers.
from pypdf import PdfReader
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

styles = getSampleStyleSheet()
def number(canvas, doc):
    canvas.drawRightString(A4[0] - 40, 30, f"Page {doc.page}")

table = Table([["Item", "Qty"], ["Paper", 12], ["Ink", 3]], colWidths=[120, 60])
table.setStyle(TableStyle([("BACKGROUND", (0, 0), (-1, 0), colors.grey), ("GRID", (0, 0), (-1, -1), 0.5, colors.black)]))
doc = SimpleDocTemplate("report.pdf", pagesize=A4, title="Stock")
doc.build([Paragraph("Stock report", styles["Title"]), Spacer(1, 12), table, PageBreak(), Paragraph("Second page", styles["Normal"])],
          onFirstPage=number, onLaterPages=number)

reader = PdfReader("report.pdf")
print(len(reader.pages), reader.metadata.title, [round(float(v)) for v in reader.pages[0].mediabox[2:]])
first = reader.pages[0].extract_text()
print(all(word in first for word in ("Stock report", "Paper", "12", "Page 1")), "Page 2" in reader.pages[1].extract_text())
