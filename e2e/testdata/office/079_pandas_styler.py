# A styled table as HTML and as a workbook.
import pandas as pd
from bs4 import BeautifulSoup
from openpyxl import load_workbook

df = pd.DataFrame({"name": ["a", "b", "c"], "change": [0.125, -0.05, 0.3]})
styler = (df.style.format({"change": "{:+.1%}"}).map(lambda v: "color: red" if v < 0 else "", subset=["change"])
          .highlight_max(subset=["change"], color="yellow").hide(axis="index").set_caption("Changes"))
html = styler.to_html()
soup = BeautifulSoup(html, "html.parser")
print(soup.caption.text, [td.text for td in soup.select("td.col1")], "color: red" in html)
styler.to_excel("styled.xlsx", engine="openpyxl", index=False)
sheet = load_workbook("styled.xlsx").active
print(sheet["B4"].value, sheet["B4"].fill.fgColor.rgb, sheet["B3"].font.color.rgb)
