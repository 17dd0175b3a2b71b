# A text document in OpenDocument format.
from odf import teletype
from odf.opendocument import OpenDocumentText, load
from odf.style import Style, TextProperties
from odf.table import Table, TableCell, TableRow
from odf.text import H, P

doc = OpenDocumentText()
bold = Style(name="Bold", family="paragraph")
bold.addElement(TextProperties(fontweight="bold"))
doc.automaticstyles.addElement(bold)
doc.text.addElement(H(outlinelevel=1, text="Minutes"))
doc.text.addElement(P(stylename=bold, text="Present: Ana, Bö, 陈"))
table = Table(name="T")
for row in (("task", "who"), ("slides", "Ana")):
    tr = TableRow()
    for text in row:
        cell = TableCell()
        cell.addElement(P(text=text))
        tr.addElement(cell)
    table.addElement(tr)
doc.text.addElement(table)
doc.save("minutes.odt")

back = load("minutes.odt")
print([teletype.extractText(h) for h in back.getElementsByType(H)])
print([teletype.extractText(p) for p in back.getElementsByType(P)])
print(len(back.getElementsByType(TableRow)))
