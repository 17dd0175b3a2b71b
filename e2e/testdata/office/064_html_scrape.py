# Links and a price list out of a page.
from urllib.parse import urljoin
import requests
from bs4 import BeautifulSoup

page = """<html><body><div class="item"><a href="/p/1">Lamp</a><span class="price">€19,90</span></div>
<div class="item"><a href="/p/2">Sofa</a><span class="price">€1.299,00</span></div></body></html>"""
soup = BeautifulSoup(page, "lxml")
items = []
for div in soup.select("div.item"):
    price = float(div.select_one(".price").get_text().lstrip("€").replace(".", "").replace(",", "."))
    items.append((div.a.text, urljoin("https://shop.example/x/", div.a["href"]), price))
print(items)
print(sum(p for _, _, p in items))
