# A PDF with fpdf2: header, table, Unicode text.
from fpdf import FPDF
from pypdf import PdfReader

class Report(FPDF):
    def header(self):
        self.set_font("Helvetica", "B", 15)
        self.cell(0, 10, "Monthly report", align="C", new_x="LMARGIN", new_y="NEXT")

pdf = Report(format="A4")
pdf.add_page()
pdf.set_font("Helvetica", size=12)
with pdf.table() as table:
    for data_row in (("Name", "Age"), ("Ann", "31"), ("Bob", "27")):
        row = table.row()
        for datum in data_row:
            row.cell(datum)
pdf.add_page()
pdf.add_font("hei", fname="/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc")
pdf.set_font("hei", size=16)
pdf.cell(text="你好，世界")
pdf.output("out.pdf")
pages = PdfReader("out.pdf").pages
print(len(pages), pages[0].extract_text().split())
print("你好，世界" in pages[1].extract_text())
