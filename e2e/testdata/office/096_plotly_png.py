# An interactive chart as a picture.
import plotly.graph_objects as go
from PIL import Image

fig = go.Figure(go.Scatter(x=[1, 2, 3], y=[4, 1, 2]))
fig.write_image("chart.png", width=600, height=400)
print(Image.open("chart.png").size)
