# An Altair chart as PNG, SVG and JSON.
import json
import altair as alt
import pandas as pd
from PIL import Image

df = pd.DataFrame({"x": ["a", "b", "c"], "y": [2, 7, 4]})
chart = alt.Chart(df, width=200, height=100).mark_bar().encode(x="x", y="y", tooltip=["x", "y"])
chart.save("bars.png", scale_factor=2)
chart.save("bars.svg")
chart.save("bars.json")
spec = json.load(open("bars.json"))
image = Image.open("bars.png")
print(spec["mark"]["type"], list(spec["datasets"].values())[0][1], image.format, image.width > 400)
print(open("bars.svg").read().count('aria-roledescription="bar"'))
