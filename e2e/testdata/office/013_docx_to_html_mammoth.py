# A Word document as HTML and as Markdown.
import mammoth
from docx import Document
from markdownify import markdownify

doc = Document()
doc.add_heading("Plan", level=1)
p = doc.add_paragraph("We ")
p.add_run("must").bold = True
p.add_run(" ship.")
doc.add_paragraph("one", style="List Bullet")
doc.add_paragraph("two", style="List Bullet")
doc.save("plan.docx")

with open("plan.docx", "rb") as f:
    html = mammoth.convert_to_html(f).value
print(html)
print(markdownify(html, heading_style="ATX", bullets="-").strip())
