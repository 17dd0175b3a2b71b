# An interactive chart as a file.
import plotly.graph_objects as go
import plotly.io as pio

fig = go.Figure(go.Bar(x=["Jan", "Feb", "Mar"], y=[3, 5, 4]))
fig.update_layout(title="销量", xaxis_title="month")
fig.write_html("chart.html", include_plotlyjs="cdn")
fig.write_json("chart.json")
page = open("chart.html").read()
print("Plotly.newPlot" in page, len(page) < 50000)
back = pio.read_json("chart.json")
print(list(back.data[0].x), list(back.data[0].y), back.layout.title.text)
