# A Word template with loops, filled by docxtpl.
from docx import Document
from docxtpl import DocxTemplate

template = Document()
template.add_paragraph("Invoice {{ number }} for {{ customer }}")
template.add_paragraph("{%p for item in items %}")
template.add_paragraph("{{ item.name }}: {{ '%.2f' % item.price }}")
template.add_paragraph("{%p endfor %}")
template.add_paragraph("Total {{ items | sum(attribute='price') }}")
template.save("template.docx")

doc = DocxTemplate("template.docx")
doc.render({"number": 2041, "customer": "Müller & Co", "items": [{"name": "Pen", "price": 1.5}, {"name": "Desk", "price": 250}]}, autoescape=True)
doc.save("invoice.docx")
for p in Document("invoice.docx").paragraphs:
    print(p.text)
