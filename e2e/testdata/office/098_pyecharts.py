# A bar and a pie with pyecharts.
import json
from pyecharts import options as opts
from pyecharts.charts import Bar, Page, Pie

bar = Bar().add_xaxis(["衬衫", "毛衣", "领带"]).add_yaxis("商家A", [114, 55, 27]).set_global_opts(title_opts=opts.TitleOpts(title="销售"))
pie = Pie().add("", [("苹果", 3), ("梨", 7)])
Page().add(bar, pie).render("charts.html")
page = open("charts.html", encoding="utf-8").read()
dumped = json.loads(bar.dump_options_with_quotes())
print(page.count("echarts.init("), dumped["xAxis"][0]["data"], dumped["series"][0]["data"], dumped["title"][0]["text"])
