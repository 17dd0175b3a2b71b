# The text of a Word document, in the order in which it stands, by two libraries.
import docx
import docx2txt
from docx.table import Table
from docx.text.paragraph import Paragraph

doc = docx.Document()
doc.add_paragraph("First paragraph.")
table = doc.add_table(rows=2, cols=2)
for i, text in enumerate(["a1", "b1", "a2", "b2"]):
    table.cell(i // 2, i % 2).text = text
doc.add_paragraph("Last paragraph.", style="List Bullet")
doc.save("in.docx")

for block in docx.Document("in.docx").iter_inner_content():
    if isinstance(block, Paragraph):
        print("P", block.text)
    elif isinstance(block, Table):
        for row in block.rows:
            print("T", " | ".join(cell.text for cell in row.cells))
print(docx2txt.process("in.docx").split())
