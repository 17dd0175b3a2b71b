# Markdown to HTML with tables, code and a table of contents.
import markdown
from lxml import html

text = """[TOC]

# One

| a | b |
|---|---|
| 1 | 2 |

## Two

```python
print(1)
```
"""
page = markdown.markdown(text, extensions=["tables", "fenced_code", "toc"])
tree = html.fromstring(page)
print(tree.xpath("//td/text()"), tree.xpath("//h2/@id"), tree.xpath("//code/@class"))
print([a.text for a in tree.xpath("//div[@class='toc']//a")])
