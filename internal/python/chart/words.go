package chart

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of what words repeat.
const (
	axesTold  = 12
	partsTold = 20
	namesTold = 6 // of an axis: series have them too
	textChars = 120
)

// Words tells what the chart shows in at most about limit bytes, in lines. "" is said where nothing is known of it.
func (c Chart) Words(limit int) string {
	var lines []string
	if title := plain(c.Title); title != "" {
		lines = append(lines, fmt.Sprintf("title %q", title))
	}
	for n, a := range c.Axes[:min(len(c.Axes), axesTold)] {
		head := ""
		if len(c.Axes) > 1 {
			head = fmt.Sprintf("axes %d: ", n+1)
		}
		lines = append(lines, a.words(head)...)
	}
	if more := c.More + max(0, len(c.Axes)-axesTold); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more axes", more))
	}
	total := 0
	for n, line := range lines {
		if total += len(line) + 1; total > limit {
			return strings.Join(append(lines[:n:n], "…"), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

func (a Axes) words(head string) []string {
	if title := plain(a.Title); title != "" {
		head += fmt.Sprintf("title %q; ", title)
	}
	if a.Projection != "" && a.Projection != "rectilinear" {
		head += plain(a.Projection) + " projection; "
	}
	for _, axis := range []struct {
		name string
		Axis
	}{{"x", a.X}, {"y", a.Y}} {
		if words := axis.words(); words != "" && (len(a.Parts) == 0 || a.Parts[0].Kind != "pie") {
			head += axis.name + ": " + words + "; "
		}
	}
	if len(a.Legend) > 0 {
		head += "legend: " + list(a.Legend, partsTold) + "; "
	}
	if len(a.Texts) > 0 {
		head += "texts: " + list(a.Texts, partsTold) + "; "
	}
	if len(a.Parts) == 0 && a.Drawn == 0 {
		head += "nothing is drawn; "
	}
	var lines []string
	if head = strings.TrimSuffix(head, "; "); head != "" {
		lines = append(lines, head)
	}
	for _, p := range a.Parts[:min(len(a.Parts), partsTold)] {
		lines = append(lines, "- "+p.words())
	}
	if more := a.More + max(0, len(a.Parts)-partsTold); more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	return lines
}

func (a Axis) words() string {
	var parts []string
	if label := plain(a.Label); label != "" {
		parts = append(parts, strconv.Quote(label))
	}
	switch {
	case len(a.Range) == 2:
		parts = append(parts, value(a.Range[0])+" to "+value(a.Range[1]))
	case len(a.Names) > 0:
		parts = append(parts, "ticks "+list(a.Names[:min(len(a.Names), namesTold)], namesTold))
		if len(a.Names) > namesTold {
			parts = append(parts, "…")
		}
	}
	if a.Scale != "" && a.Scale != "linear" && a.Scale != "-" {
		parts = append(parts, plain(a.Scale)+" scale")
	}
	if a.Overlap > 0 {
		parts = append(parts, fmt.Sprintf("%d of its labels overlap, which cannot be read", a.Overlap))
	}
	return strings.Join(parts, ", ")
}

func (p Part) words() string {
	var b strings.Builder
	b.WriteString(plain(p.Kind))
	if label := plain(p.Label); label != "" {
		fmt.Fprintf(&b, " %q", label)
	}
	if p.Stacked {
		b.WriteString(", stacked")
	}
	if p.Lying {
		b.WriteString(", horizontal")
	}
	switch {
	case len(p.Shape) == 2:
		fmt.Fprintf(&b, ", %d rows × %d columns", p.Shape[0], p.Shape[1])
	case p.Count > len(p.Points) && len(p.Summaries) == 0:
		fmt.Fprintf(&b, ", %d %s", p.Count, p.noun())
	}
	if p.Missing > 0 {
		fmt.Fprintf(&b, ", %d missing", p.Missing)
	}
	if len(p.Range) == 2 {
		b.WriteString(", " + value(p.Range[0]) + " to " + value(p.Range[1]))
	}
	if len(p.Across) == 2 {
		b.WriteString(", x " + value(p.Across[0]) + " to " + value(p.Across[1]))
	}
	if p.Correlation != nil {
		fmt.Fprintf(&b, ", correlation %.3g", *p.Correlation)
	}
	for _, role := range slices.Sorted(maps.Keys(p.Fields)) {
		b.WriteString(", " + plain(role) + " = " + plain(p.Fields[role]))
	}
	if points := p.points(); points != "" {
		b.WriteString(": " + points)
	}
	for _, s := range p.Summaries[:min(len(p.Summaries), 30)] {
		b.WriteString("\n  " + s.words())
	}
	for _, row := range p.Cells[:min(len(p.Cells), 150)] {
		cells := make([]string, 0, len(row))
		for _, cell := range row[:min(len(row), 150)] {
			cells = append(cells, value(cell))
		}
		b.WriteString("\n  " + strings.Join(cells, ","))
	}
	return b.String()
}

func (p Part) noun() string {
	switch p.Kind {
	case "bar":
		return "bars"
	case "histogram":
		return "bins"
	case "pie":
		return "slices"
	case "line", "scatter":
		return "points"
	}
	return "values"
}

// points lists what is known of the points, and the lowest and highest where not all are listed.
func (p Part) points() string {
	var listed []string
	for _, point := range p.Points[:min(len(p.Points), 30)] {
		listed = append(listed, p.point(point))
	}
	if len(listed) == 0 {
		return ""
	}
	text := strings.Join(listed, " ")
	if p.Count > len(p.Points) {
		text = "some of them " + text
		if len(p.Low) == 2 && len(p.High) == 2 {
			text += "; lowest " + p.point(p.Low) + ", highest " + p.point(p.High)
		}
	}
	return text
}

func (p Part) point(point []any) string {
	switch {
	case len(point) == 0:
		return "()"
	case len(point) == 1 || point[1] == nil && (strings.HasSuffix(p.Kind, " line") || p.Kind == "contour"):
		return value(point[0])
	}
	switch p.Kind {
	case "line", "scatter", "point", "circle":
		return "(" + value(point[0]) + ", " + value(point[1]) + ")"
	case "pie":
		if share, ok := point[1].(float64); ok {
			return fmt.Sprintf("%s %.3g%%", name(point[0]), share*100)
		}
	}
	return name(point[0]) + "=" + value(point[1])
}

func (s Summary) words() string {
	var parts []string
	for _, name := range []string{"low", "q1", "median", "mean", "q3", "high", "outliers"} {
		if v, ok := s.Values[name]; ok {
			parts = append(parts, name+" "+value(v))
		}
	}
	if label := plain(s.Label); label != "" {
		return label + ": " + strings.Join(parts, ", ")
	}
	return strings.Join(parts, ", ")
}

// value returns a number in six digits at least, or a text.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "missing"
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	case string:
		return plain(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return "?"
}

// name is a value before a sign of its own, quoted where it has spaces.
func name(v any) string {
	text := value(v)
	if strings.ContainsAny(text, " =,") {
		return strconv.Quote(text)
	}
	return text
}

func list(texts []string, most int) string {
	var quoted []string
	for _, text := range texts[:min(len(texts), most)] {
		quoted = append(quoted, strconv.Quote(plain(text)))
	}
	if len(texts) > most {
		quoted = append(quoted, fmt.Sprintf("and %d more", len(texts)-most))
	}
	return strings.Join(quoted, ", ")
}

// plain returns text on one line, without characters that show nothing, and not too long.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > textChars {
		return string(runes[:textChars]) + "…"
	}
	return text
}
