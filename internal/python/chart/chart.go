// Package chart is what a figure shows, as data: for readers that see no pictures. Kernels send it (charts.py); it comes from a sandbox and is hostile.
package chart

import (
	"encoding/json"
	"fmt"
)

// Largest is how many bytes of JSON a chart may have.
const Largest = 48 << 10

// Chart is one figure. Values of axes are numbers, or texts where an axis has dates or names; nil is a value that is missing.
type Chart struct {
	Title string `json:"title"`
	Axes  []Axes `json:"axes"`
	More  int    `json:"more"` // further axes, which are not told
}

// Axes is one coordinate system with what is drawn in it.
type Axes struct {
	Title      string   `json:"title"`
	Projection string   `json:"projection"` // "rectilinear", "polar", "3d" …; "" where the library has none
	X          Axis     `json:"x"`
	Y          Axis     `json:"y"`
	Parts      []Part   `json:"parts"`
	More       int      `json:"more"`  // further parts, which are not told
	Drawn      int      `json:"drawn"` // how many things are drawn that no part tells of
	Legend     []string `json:"legend"`
	Texts      []string `json:"texts"` // written within the axes
}

// Axis is one direction.
type Axis struct {
	Label   string   `json:"label"`
	Scale   string   `json:"scale"`   // "linear", "log" …
	Range   []any    `json:"range"`   // where it begins and ends
	Names   []string `json:"names"`   // of its ticks, where these stand for something else than numbers
	Overlap int      `json:"overlap"` // labels of ticks that lie on the one before
}

// Part is one series or its like.
type Part struct {
	Kind        string            `json:"kind"` // "line", "scatter", "bar", "histogram", "pie", "box", "violin", "heat map", "picture", "area" …
	Label       string            `json:"label"`
	Count       int               `json:"count"`   // points, bars, slices or cells
	Missing     int               `json:"missing"` // of the count
	Points      [][]any           `json:"points"`  // x and y, or a name and a value: all, or a selection from the first to the last; of a pie shares of 1
	Low         []any             `json:"low"`     // the point with the lowest value
	High        []any             `json:"high"`
	Range       []any             `json:"range"`  // of a heat map's values, of a histogram's bins
	Across      []any             `json:"across"` // the range of x of a scatter
	Correlation *float64          `json:"correlation"`
	Stacked     bool              `json:"stacked"`
	Lying       bool              `json:"lying"` // bars from left to right: x and y of the points are the other way round
	Shape       []int             `json:"shape"`
	Cells       [][]any           `json:"cells"`
	Summaries   []Summary         `json:"summaries"`
	Fields      map[string]string `json:"fields"` // what x, y, colour and so on stand for, of a specification
}

// Summary is one box or violin.
type Summary struct {
	Label  string         `json:"label"`
	Values map[string]any `json:"values"` // low, q1, median, mean, q3, high, outliers: those that are known
}

// Parse reads a chart.
func Parse(data []byte) (Chart, error) {
	if len(data) > Largest {
		return Chart{}, fmt.Errorf("a chart of %d bytes is more than %d", len(data), Largest)
	}
	var c Chart
	if err := json.Unmarshal(data, &c); err != nil {
		return Chart{}, fmt.Errorf("read a chart: %w", err)
	}
	return c, nil
}
