package toolbox

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// chart is a figure, or one coordinate system of it, as Daytona's clients take it: they refuse a whole answer where a value is no text, or a tick no number.
type chart struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	PNG   string `json:"png"`
	axes
	Elements []element `json:"elements"`
}

// axes are those of a coordinate system.
type axes struct {
	XLabel      string    `json:"x_label,omitempty"`
	YLabel      string    `json:"y_label,omitempty"`
	XTicks      []float64 `json:"x_ticks,omitempty"`
	YTicks      []float64 `json:"y_ticks,omitempty"`
	XTickLabels []string  `json:"x_tick_labels,omitempty"`
	YTickLabels []string  `json:"y_tick_labels,omitempty"`
	XScale      string    `json:"x_scale,omitempty"`
	YScale      string    `json:"y_scale,omitempty"`
}

// element is a series, a bar, a slice, a box, or a chart within one of several.
type element struct {
	Label         string       `json:"label,omitempty"`
	Points        [][2]float64 `json:"points,omitempty"`
	Value         string       `json:"value,omitempty"`
	Group         string       `json:"group,omitempty"`
	Angle         *float64     `json:"angle,omitempty"`
	Radius        *float64     `json:"radius,omitempty"`
	Min           *float64     `json:"min,omitempty"`
	FirstQuartile *float64     `json:"first_quartile,omitempty"`
	Median        *float64     `json:"median,omitempty"`
	ThirdQuartile *float64     `json:"third_quartile,omitempty"`
	Max           *float64     `json:"max,omitempty"`
	Outliers      []float64    `json:"outliers,omitempty"`
	// Of a chart within one of several.
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
	PNG   string `json:"png,omitempty"`
	axes
	Elements []element `json:"elements,omitempty"`
}

// drawn is a figure as package displaysetup has an interpreter tell it. It comes from a sandbox: whatever is not as expected is left out.
type drawn struct {
	Type        string            `json:"type"`
	Title       any               `json:"title"`
	XLabel      any               `json:"x_label"`
	YLabel      any               `json:"y_label"`
	XTicks      []any             `json:"x_ticks"`
	YTicks      []any             `json:"y_ticks"`
	XTickLabels []any             `json:"x_tick_labels"`
	YTickLabels []any             `json:"y_tick_labels"`
	XScale      any               `json:"x_scale"`
	YScale      any               `json:"y_scale"`
	Elements    []json.RawMessage `json:"elements"`
}

type drawnPart struct {
	Label         any     `json:"label"`
	Group         any     `json:"group"`
	Value         any     `json:"value"`
	Points        [][]any `json:"points"`
	Angle         any     `json:"angle"`
	Radius        any     `json:"radius"`
	Min           any     `json:"min"`
	FirstQuartile any     `json:"first_quartile"`
	Median        any     `json:"median"`
	ThirdQuartile any     `json:"third_quartile"`
	Max           any     `json:"max"`
	Outliers      []any   `json:"outliers"`
}

// chartOf is a figure with its picture, which is a JSON string in base64.
func chartOf(figure, png json.RawMessage) chart {
	var d drawn
	if json.Unmarshal(figure, &d) != nil || d.Type == "" {
		d = drawn{Type: "unknown"}
	}
	c := d.chart()
	_ = json.Unmarshal(png, &c.PNG) // a figure without a picture has ""
	if d.Type != "superchart" {
		return c
	}
	c = chart{Type: "composite_chart", Title: text(d.Title), PNG: c.PNG, Elements: []element{}}
	for _, raw := range d.Elements {
		var one drawn
		if json.Unmarshal(raw, &one) == nil {
			s := one.chart()
			c.Elements = append(c.Elements, element{Type: s.Type, Title: s.Title, axes: s.axes, Elements: s.Elements})
		}
	}
	return c
}

var kinds = map[string]bool{"line": true, "scatter": true, "bar": true, "pie": true, "box_and_whisker": true}

func (d drawn) chart() chart {
	x, y := scaleOf(d.XTicks), scaleOf(d.YTicks)
	c := chart{Type: d.Type, Title: text(d.Title), Elements: []element{}, axes: axes{
		XLabel: text(d.XLabel), YLabel: text(d.YLabel), XTicks: x.all(d.XTicks), YTicks: y.all(d.YTicks),
		XTickLabels: texts(d.XTickLabels), YTickLabels: texts(d.YTickLabels), XScale: text(d.XScale), YScale: text(d.YScale),
	}}
	if !kinds[d.Type] {
		c.Type = "unknown"
		return c
	}
	for _, raw := range d.Elements {
		var p drawnPart
		if json.Unmarshal(raw, &p) != nil {
			continue
		}
		e := element{
			Label: text(p.Label), Group: text(p.Group), Value: text(p.Value), Angle: optional(p.Angle), Radius: optional(p.Radius), Min: optional(p.Min),
			FirstQuartile: optional(p.FirstQuartile), Median: optional(p.Median), ThirdQuartile: optional(p.ThirdQuartile), Max: optional(p.Max), Outliers: scale{}.all(p.Outliers),
		}
		for _, point := range p.Points {
			if len(point) != 2 {
				continue
			}
			a, okA := x.number(point[0])
			b, okB := y.number(point[1])
			if okA && okB {
				e.Points = append(e.Points, [2]float64{a, b})
			}
		}
		c.Elements = append(c.Elements, e)
	}
	return c
}

// scale has the places of an axis's names, where it has names.
type scale map[string]float64

// scaleOf is the scale of an axis whose ticks are these: names have the places that Matplotlib gives them, from 0 on.
func scaleOf(ticks []any) scale {
	s := scale{}
	for i, tick := range ticks {
		if name, ok := tick.(string); ok {
			if _, seen := s[name]; !seen {
				s[name] = float64(i)
			}
		}
	}
	return s
}

// number is a value as a number: of a date the seconds since 1970, of a name its place.
func (s scale) number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case string:
		for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02"} {
			if at, err := time.Parse(form, v); err == nil {
				return float64(at.UnixMicro()) / 1e6, true
			}
		}
		if at, ok := s[v]; ok {
			return at, true
		}
		n, err := strconv.ParseFloat(v, 64)
		return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	return 0, false
}

func (s scale) all(values []any) []float64 {
	var out []float64
	for _, v := range values {
		if n, ok := s.number(v); ok {
			out = append(out, n)
		}
	}
	return out
}

func optional(v any) *float64 {
	if n, ok := v.(float64); ok {
		return &n
	}
	return nil
}

// text is a value as text: numbers as JSON has them.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func texts(values []any) []string {
	var out []string
	for _, v := range values {
		out = append(out, text(v))
	}
	return out
}
