# HTML and CSS to PDF.
from pypdf import PdfReader
from weasyprint import CSS, HTML

html = """<h1>Invoice 77</h1><table><tr><th>Item</th><th>Price</th></tr><tr><td>Chair</td><td>49.90</td></tr></table>
<p class="cn">合计：四十九元</p><div style="page-break-before: always">Terms</div>"""
HTML(string=html).write_pdf("invoice.pdf", stylesheets=[CSS(string="@page { size: A5; margin: 1cm } th { background: #eee }")])
reader = PdfReader("invoice.pdf")
text = reader.pages[0].extract_text()
print(len(reader.pages), [round(float(v)) for v in reader.pages[0].mediabox[2:]])
print(all(w in text for w in ("Invoice 77", "Chair", "49.90", "合计：四十九元")), reader.pages[1].extract_text().strip())
