# A Word document as PDF by LibreOffice.
import subprocess
from docx import Document
from pypdf import PdfReader

doc = Document()
doc.add_heading("Offer", level=1)
doc.add_paragraph("Valid until May.")
doc.save("offer.docx")
subprocess.run(["soffice", "--headless", "--convert-to", "pdf", "offer.docx"], check=True, capture_output=True)
reader = PdfReader("offer.pdf")
print(len(reader.pages), reader.pages[0].extract_text().split())
