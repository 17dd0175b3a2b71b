# Fill placeholders in a Word document without losing the formatting.
from docx import Document

doc = Document()
p = doc.add_paragraph("Dear ")
p.add_run("{{name}}").bold = True
p.add_run(", you owe {{amount}}.")
doc.save("letter.docx")

values = {"{{name}}": "Ms Øberg", "{{amount}}": "€ 1,250.00"}
doc = Document("letter.docx")
changed = 0
for paragraph in doc.paragraphs:
    for run in paragraph.runs:
        for key, value in values.items():
            if key in run.text:
                run.text = run.text.replace(key, value)
                changed += 1
doc.save("letter_filled.docx")
out = Document("letter_filled.docx").paragraphs[0]
print(changed, out.text)
print([(r.text, bool(r.bold)) for r in out.runs][1])
