# One PDF with several figures, and an SVG with its text.
import datetime
import matplotlib.pyplot as plt
from matplotlib.backends.backend_pdf import PdfPages
from pypdf import PdfReader

plt.rcParams["font.sans-serif"] = ["SimHei"]
plt.rcParams["axes.unicode_minus"] = False
plt.rcParams["svg.fonttype"] = "none"
with PdfPages("figures.pdf") as pdf:
    for title in ("收入", "支出", "利润"):
        fig, ax = plt.subplots(figsize=(4, 3))
        ax.plot([-1, 0, 2])
        ax.set_title(title)
        pdf.savefig(fig)
        if title == "利润":
            fig.savefig("profit.svg")
        plt.close(fig)
    pdf.infodict()["Title"] = "Figures"
reader = PdfReader("figures.pdf")
print(len(reader.pages), reader.metadata.title, [float(v) for v in reader.pages[0].mediabox[2:]])
print("利润" in open("profit.svg").read())
