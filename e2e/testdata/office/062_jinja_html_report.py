# An HTML report by a template, with escaping.
import pandas as pd
from bs4 import BeautifulSoup
from jinja2 import Environment

df = pd.DataFrame({"name": ["Ann <b>", "Bob"], "points": [10, 7]})
template = Environment(autoescape=True).from_string("""<h1>{{ title }}</h1>
<ul>{% for row in rows %}<li class="{{ loop.cycle('odd', 'even') }}">{{ row.name }}: {{ "%03d"|format(row.points) }}</li>{% endfor %}</ul>{{ table|safe }}""")
html = template.render(title="Results & more", rows=df.itertuples(), table=df.to_html(index=False))
open("report.html", "w").write(html)
soup = BeautifulSoup(open("report.html").read(), "html.parser")
print(soup.h1.text, [li.text for li in soup.find_all("li")], soup.find_all("li")[1]["class"])
print(pd.read_html("report.html")[0].values.tolist())
