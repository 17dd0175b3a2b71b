package cli

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"cove/internal/kernel"
)

const plotlyType = "application/vnd.plotly.v1+json"

// figureOf finds the picture in a bundle: the ending of its file name and its content, or nil. plotly returns the
// text of plotly.js, or "" where it is not to be had.
func figureOf(data kernel.Bundle, plotly func() string) (ending string, content []byte) {
	for _, t := range []struct{ mime, ending string }{
		{"image/png", ".png"}, {"image/jpeg", ".jpg"}, {"image/gif", ".gif"}, {"image/webp", ".webp"}, {"application/pdf", ".pdf"},
	} {
		text, ok := data[t.mime].(string)
		if !ok {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err == nil && len(raw) > 0 {
			return t.ending, raw
		}
	}
	if svg, ok := data["image/svg+xml"].(string); ok && svg != "" {
		return ".svg", []byte(svg)
	}
	if figure, ok := data[plotlyType]; ok {
		return ".html", plotlyPage(figure, plotly())
	}
	return "", nil
}

// plotlyPage is a page that shows a Plotly figure without a network, or nil when the figure is not one.
func plotlyPage(figure any, script string) []byte {
	// json.Marshal escapes <, > and &, so the figure cannot end the script element.
	spec, err := json.Marshal(figure)
	if err != nil || script == "" {
		return nil
	}
	var page strings.Builder
	page.WriteString("<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>Figure</title>\n<script>")
	page.WriteString(script)
	page.WriteString("</script></head>\n<body style=\"margin:0\"><div id=\"figure\" style=\"height:100vh\"></div>\n<script>const f = ")
	page.Write(spec)
	page.WriteString(";\nPlotly.newPlot('figure', f.data, f.layout || {}, Object.assign({responsive: true}, f.config));</script></body></html>\n")
	return []byte(page.String())
}

// plainText is the text form of a bundle, or "".
func plainText(data kernel.Bundle) string {
	for _, t := range []string{"text/plain", "text/markdown", "text/latex"} {
		if s, ok := data[t].(string); ok && s != "" {
			return s
		}
	}
	return ""
}
