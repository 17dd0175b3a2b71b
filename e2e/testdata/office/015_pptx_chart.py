# A presentation with a title, bullets, a table, a chart and speaker notes.
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

prs = Presentation()
first = prs.slides.add_slide(prs.slide_layouts[0])
first.shapes.title.text = "年度总结"
first.placeholders[1].text = "2024"
second = prs.slides.add_slide(prs.slide_layouts[1])
second.shapes.title.text = "Agenda"
frame = second.placeholders[1].text_frame
frame.text = "Results"
frame.add_paragraph().text = "Outlook"
third = prs.slides.add_slide(prs.slide_layouts[5])
third.shapes.title.text = "Sales"
data = CategoryChartData()
data.categories = ["Q1", "Q2", "Q3"]
data.add_series("2024", (19.2, 21.4, 16.7))
third.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(2), Inches(6), Inches(4), data)
table = third.shapes.add_table(2, 2, Inches(1), Inches(6), Inches(4), Inches(0.8)).table
table.cell(0, 0).text = "best"
table.cell(1, 0).text = "Q2"
third.notes_slide.notes_text_frame.text = "Mention the launch."
prs.save("deck.pptx")

back = Presentation("deck.pptx")
print([s.shapes.title.text for s in back.slides])
chart = next(s.chart for s in back.slides[2].shapes if s.has_chart)
print(list(chart.plots[0].categories), list(chart.plots[0].series[0].values))
print(next(s.table for s in back.slides[2].shapes if s.has_table).cell(1, 0).text, back.slides[2].notes_slide.notes_text_frame.text)
