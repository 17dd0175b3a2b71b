# A PDF in Chinese with a TrueType font, as code on the web has it.
from pypdf import PdfReader
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate

pdfmetrics.registerFont(TTFont("SimHei", "simhei.ttf"))
c = canvas.Canvas("cn.pdf")
c.setFont("SimHei", 24)
c.drawString(80, 700, "销售报告：华东区")
c.showPage()
c.save()
style = ParagraphStyle("cn", fontName="SimHei", fontSize=14)
SimpleDocTemplate("cn2.pdf").build([Paragraph("总计 3,500 元", style)])
print(PdfReader("cn.pdf").pages[0].extract_text().strip())
print(PdfReader("cn2.pdf").pages[0].extract_text().strip())
