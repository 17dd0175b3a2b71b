# A table for publication with great_tables.
import pandas as pd
from bs4 import BeautifulSoup
from great_tables import GT

df = pd.DataFrame({"fruit": ["apple", "pear"], "price": [1234.5, 2.25], "share": [0.125, 0.875]})
table = GT(df).tab_header(title="Fruit").fmt_currency(columns="price", currency="EUR").fmt_percent(columns="share", decimals=1)
soup = BeautifulSoup(table.as_raw_html(), "html.parser")
print(soup.select_one(".gt_title").text, [td.text for td in soup.select("tbody td")])
