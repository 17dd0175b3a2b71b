package eval

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"
)

// The plots of the page: SVG with a title for each mark, whose colours are classes of the page's style.

const (
	plotWidth = 760
	plotLeft  = 210 // where marks begin
	plotRight = plotWidth - 70
	rowHeight = 15
)

// drawing is an SVG in the making.
type drawing struct {
	strings.Builder
	y int
}

func (d *drawing) text(x float64, y int, class, anchor, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%d" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, html.EscapeString(text))
}

func (d *drawing) bar(x, width float64, class, title string) {
	fmt.Fprintf(d, `<rect x="%.1f" y="%d" width="%.1f" height="%d" class="%s"><title>%s</title></rect>`, x, d.y, max(width, 0), rowHeight-4, class, html.EscapeString(title))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// done is the drawing with its height.
func (d *drawing) done(label string, height int) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>`, plotWidth, height, html.EscapeString(label), d.String())) //nolint:gosec // every text in it is escaped
}

// short is a run's name where there is little room.
func (c Column) short() string {
	name := []rune(c.Name())
	if len(name) > 26 {
		name = append(name[:25], '…')
	}
	return string(name)
}

// sharesPlot draws each share of each run with its interval.
func (r Report) sharesPlot() template.HTML {
	var d drawing
	scale := func(share float64) float64 { return plotLeft + share*(plotRight-plotLeft) }
	for _, name := range ShareNames() {
		if !slices.ContainsFunc(r.columns(), func(c Column) bool { return c.Figures.Shares[name].Of > 0 }) {
			continue
		}
		d.y += 10
		for n, c := range r.columns() {
			s := c.Figures.Shares[name]
			label := ""
			if n == 0 {
				label = labels[name]
			}
			d.text(plotLeft-8, d.y+9, "label", "end", label)
			if s.Of > 0 {
				title := fmt.Sprintf("%s, %s: %s", c.Name(), labels[name], s)
				d.bar(plotLeft, scale(s.Share)-plotLeft, fmt.Sprintf("run%d", n%7), title)
				middle := float64(d.y) + (rowHeight-4)/2.0
				d.line(scale(s.Low), middle, scale(s.High), middle, "whisker")
				d.line(scale(s.Low), middle-3, scale(s.Low), middle+3, "whisker")
				d.line(scale(s.High), middle-3, scale(s.High), middle+3, "whisker")
				d.text(plotRight+8, d.y+9, "value", "start", fmt.Sprintf("%.1f %%", 100*s.Share))
			}
			d.y += rowHeight
		}
	}
	for n, c := range r.columns() {
		d.y += 6
		d.bar(plotLeft, 12, fmt.Sprintf("run%d", n%7), c.Name())
		d.text(plotLeft+18, d.y+9, "label", "start", c.short()+", "+c.Day())
		d.y += rowHeight
	}
	return d.done("Shares with their intervals", d.y+8)
}

// timesPlot draws what a task takes on average, part by part.
func (r Report) timesPlot() template.HTML {
	var d drawing
	most := 0.0
	for _, c := range r.columns() {
		most = max(most, mean(c.Figures, PartTotal))
	}
	if most == 0 {
		return ""
	}
	for _, c := range r.columns() {
		d.y += 8
		d.text(plotLeft-8, d.y+9, "label", "end", c.short())
		x := float64(plotLeft)
		for _, part := range PartNames()[1:] {
			width := mean(c.Figures, part) / most * (plotRight - plotLeft)
			d.bar(x, width, "part-"+part, fmt.Sprintf("%s: %s s a task", part, seconds(mean(c.Figures, part))))
			x += width
		}
		d.text(x+8, d.y+9, "value", "start", seconds(mean(c.Figures, PartTotal))+" s")
		d.y += rowHeight
	}
	d.y += 8
	for n, part := range PartNames()[1:] {
		x := float64(plotLeft + n*110)
		d.bar(x, 12, "part-"+part, part)
		d.text(x+18, d.y+9, "label", "start", part)
	}
	return d.done("Mean seconds of a task, by part", d.y+rowHeight+8)
}

func mean(f Figures, part string) float64 {
	if f.Judged == 0 {
		return 0
	}
	return f.Seconds[part].Sum / float64(f.Judged)
}

// spreadPlot draws which share of the tasks took at most how long, with a logarithmic axis.
func (r Report) spreadPlot() template.HTML {
	var times []float64
	for _, record := range r.Records {
		if record.Judged && record.Seconds.Total > 0 {
			times = append(times, record.Seconds.Total)
		}
	}
	if len(times) < 2 {
		return ""
	}
	slices.Sort(times)
	const height, bottom = 200, 170
	low, high := math.Floor(math.Log10(times[0])), math.Ceil(math.Log10(times[len(times)-1])+1e-9)
	if high <= low {
		high = low + 1
	}
	x := func(s float64) float64 {
		return plotLeft + (math.Log10(s)-low)/(high-low)*(plotRight-plotLeft)
	}
	var d drawing
	for decade := low; decade <= high; decade++ {
		s := math.Pow(10, decade)
		d.line(x(s), 10, x(s), bottom, "grid")
		d.text(x(s), bottom+16, "label", "middle", fmt.Sprintf("%g s", s))
	}
	for _, share := range []float64{0, 0.5, 0.95, 1} {
		y := bottom - share*(bottom-10)
		d.line(plotLeft, y, plotRight, y, "grid")
		if share < 1 { // 95 % has the place
			d.text(plotLeft-8, int(y)+4, "label", "end", fmt.Sprintf("%g %% of tasks", 100*share))
		}
	}
	var points strings.Builder
	fmt.Fprintf(&points, "%.1f,%d", x(times[0]), bottom)
	for n, s := range times {
		fmt.Fprintf(&points, " %.1f,%.1f %.1f,%.1f", x(s), bottom-float64(n)/float64(len(times))*(bottom-10), x(s), bottom-float64(n+1)/float64(len(times))*(bottom-10))
	}
	fmt.Fprintf(&d, `<polyline points="%s" class="curve"/>`, points.String())
	return d.done("How many tasks took at most how long", height)
}
