# A PDF as a Word document.
import logging
from docx import Document
from pdf2docx import Converter
from reportlab.pdfgen import canvas

logging.disable(logging.INFO)
c = canvas.Canvas("in.pdf")
c.drawString(100, 700, "Paragraph of the contract")
c.save()
converter = Converter("in.pdf")
converter.convert("out.docx")
converter.close()
print([p.text for p in Document("out.docx").paragraphs if p.text])
