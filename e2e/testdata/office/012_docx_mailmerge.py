# Mail merge fields in a Word document.
from docx import Document
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from mailmerge import MailMerge

doc = Document()
p = doc.add_paragraph("Hello ")
for name in ("first", "city"):
    field = OxmlElement("w:fldSimple")
    field.set(qn("w:instr"), f" MERGEFIELD {name} ")
    run = OxmlElement("w:r")
    text = OxmlElement("w:t")
    text.text = f"«{name}»"
    run.append(text)
    field.append(run)
    p._p.append(field)
    p.add_run(" / ")
doc.save("merge.docx")

with MailMerge("merge.docx") as document:
    print(sorted(document.get_merge_fields()))
    document.merge(first="Zoë", city="Genève")
    document.write("merged.docx")
print(Document("merged.docx").paragraphs[0].text.strip(" /"))
