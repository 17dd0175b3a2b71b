# Markdown to docx, to HTML and back by pandoc.
import pypandoc
from docx import Document

text = "# Title\n\nSome *text* with a [link](https://example.org).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
pypandoc.convert_text(text, "docx", format="md", outputfile="out.docx")
doc = Document("out.docx")
print(doc.paragraphs[0].text, doc.paragraphs[0].style.name, [[c.text for c in r.cells] for r in doc.tables[0].rows])
html = pypandoc.convert_file("out.docx", "html")
print("<em>text</em>" in html, 'href="https://example.org"' in html)
print(pypandoc.convert_text("<ul><li>x</li></ul>", "rst", format="html").strip())
