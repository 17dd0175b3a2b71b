# Text of a PDF with its layout, by the program pdftotext.
import subprocess
from reportlab.pdfgen import canvas

c = canvas.Canvas("in.pdf")
c.drawString(72, 750, "Left")
c.drawString(400, 750, "Right")
c.drawString(72, 730, "Below")
c.save()
subprocess.run(["pdftotext", "-layout", "in.pdf", "out.txt"], check=True)
lines = [line for line in open("out.txt").read().splitlines() if line.strip()]
print(len(lines), lines[0].split(), lines[1].split())
info = subprocess.run(["pdfinfo", "in.pdf"], capture_output=True, text=True).stdout
print([line.split()[1] for line in info.splitlines() if line.startswith("Pages")])
