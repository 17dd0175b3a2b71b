# A web page as PDF by wkhtmltopdf.
import pdfkit
from pypdf import PdfReader

pdfkit.from_string("<h1>Hello page</h1>", "page.pdf")
print(PdfReader("page.pdf").pages[0].extract_text().split())
