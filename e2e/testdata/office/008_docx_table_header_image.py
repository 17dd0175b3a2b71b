# A Word document with heading, table, header, footer and a picture.
import matplotlib.pyplot as plt
from docx import Document
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.shared import Inches, Pt, RGBColor

plt.figure(figsize=(3, 2))
plt.bar(["A", "B"], [3, 5])
plt.savefig("bar.png", dpi=100)
plt.close()

doc = Document()
doc.sections[0].header.paragraphs[0].text = "Quarterly report"
doc.sections[0].footer.paragraphs[0].text = "Confidential"
title = doc.add_heading("季度报告", level=1)
title.alignment = WD_ALIGN_PARAGRAPH.CENTER
run = doc.add_paragraph("Revenue grew by ").add_run("12 %")
run.bold = True
run.font.size = Pt(14)
run.font.color.rgb = RGBColor(0xC0, 0, 0)
table = doc.add_table(rows=1, cols=2, style="Light Grid Accent 1")
table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Region", "Sales"
for region, sales in (("North", 120), ("South", 95)):
    cells = table.add_row().cells
    cells[0].text, cells[1].text = region, str(sales)
doc.add_picture("bar.png", width=Inches(3))
doc.add_page_break()
doc.save("report.docx")

back = Document("report.docx")
print([p.text for p in back.paragraphs if p.text])
print([[c.text for c in r.cells] for r in back.tables[0].rows])
print(back.sections[0].header.paragraphs[0].text, back.sections[0].footer.paragraphs[0].text)
print(len(back.inline_shapes), back.inline_shapes[0].width.inches, back.paragraphs[1].runs[1].bold)
