# A pivot table with totals as Markdown, LaTeX and HTML.
import pandas as pd

df = pd.DataFrame({"region": ["N", "N", "S", "S"], "year": [2023, 2024, 2023, 2024], "sales": [1, 2, 3, 4]})
pivot = df.pivot_table(index="region", columns="year", values="sales", aggfunc="sum", margins=True, margins_name="Total")
print(pivot.to_markdown().splitlines()[-1].replace(" ", ""))
print(pivot.to_latex().count(r"\\"), pivot.to_html().count("<tr"))
print(pivot.loc["Total", "Total"])
