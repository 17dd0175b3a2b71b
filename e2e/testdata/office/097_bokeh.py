# A Bokeh chart as a file of its own.
from bokeh.embed import json_item
from bokeh.models import HoverTool
from bokeh.plotting import figure, output_file, save
from bokeh.resources import INLINE

p = figure(title="Squares", width=400, height=300)
p.line([1, 2, 3], [1, 4, 9], line_width=2)
p.add_tools(HoverTool(tooltips=[("y", "@y")]))
output_file("squares.html")
save(p, resources=INLINE, title="Squares")
page = open("squares.html").read()
item = json_item(p)
print("<title>Squares</title>" in page, len(page) > 500_000)
print(item["root_id"] == p.id, p.title.text, p.renderers[0].data_source.data["y"])
