# Office files as Markdown for a model.
import pandas as pd
from docx import Document
from markitdown import MarkItDown

pd.DataFrame({"k": ["a", "b"], "v": [1, 2]}).to_excel("t.xlsx", index=False, sheet_name="S")
doc = Document()
doc.add_heading("Head", level=2)
doc.add_paragraph("Body")
doc.save("d.docx")
md = MarkItDown()
print([line for line in md.convert("d.docx").text_content.splitlines() if line])
print([line.replace(" ", "") for line in md.convert("t.xlsx").text_content.splitlines() if line][-2:])
