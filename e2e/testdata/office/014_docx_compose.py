# Join Word documents into one.
from docx import Document
from docxcompose.composer import Composer

for i in (1, 2, 3):
    part = Document()
    part.add_heading(f"Chapter {i}", level=1)
    part.add_paragraph(f"Text of chapter {i}.")
    part.save(f"part{i}.docx")
composer = Composer(Document("part1.docx"))
for i in (2, 3):
    composer.append(Document(f"part{i}.docx"))
composer.save("book.docx")
print([p.text for p in Document("book.docx").paragraphs if p.style.name == "Heading 1"])
print(len([p for p in Document("book.docx").paragraphs if p.text.startswith("Text")]))
