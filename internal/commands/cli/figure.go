package cli

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"cove/internal/commands/terminal"
	"cove/internal/python/display"
	"cove/internal/python/kernel"
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
	if !display.IsNameless(data) {
		return "", nil
	}
	if fragment, ok := data["text/html"].(string); ok && !display.IsStyleSheet(fragment) {
		return ".html", htmlPage(fragment)
	}
	if text, ok := data["text/markdown"].(string); ok && strings.TrimSpace(text) != "" {
		return ".md", []byte(strings.TrimRight(text, "\n") + "\n")
	}
	return "", nil
}

// htmlPage is a page with a piece of HTML, or the piece where it is a page.
func htmlPage(fragment string) []byte {
	start := strings.ToLower(strings.TrimSpace(fragment[:min(len(fragment), 200)]))
	if strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html") {
		return []byte(fragment)
	}
	return []byte("<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>Output</title>\n<style>body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem } " +
		"table { border-collapse: collapse } th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #ddd }</style></head>\n<body>\n" + fragment + "\n</body></html>\n")
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

// markdownText is the text of a bundle that is Markdown and nothing else, or "".
func markdownText(data kernel.Bundle) string {
	text, _ := data["text/markdown"].(string)
	if ending, _ := figureOf(data, func() string { return "-" }); ending != ".md" {
		return ""
	}
	return text
}

// aboutPNG is what the kernel says of a figure.
type aboutPNG struct {
	Saved string // the file of the workspace that code has saved it as, or ""
	Width int    // in points, to show it with; 0: as wide as it is
}

func aboutFigure(metadata map[string]any) aboutPNG {
	var about aboutPNG
	if text, err := json.Marshal(metadata["image/png"]); err != nil || json.Unmarshal(text, &about) != nil { // raw JSON here, values from a server
		return aboutPNG{}
	}
	return about
}

// displayFlags are the flags of commands that show figures.
type displayFlags struct {
	Images string `default:"auto" enum:"auto,off,kitty,iterm,sixel" placeholder:"PROTOCOL" help:"Show figures in the terminal: kitty, iterm, sixel, off, or auto, which is what the terminal is known to understand."`
}

// pictures is how pictures are sent to w.
func (f displayFlags) pictures(p *Program, w io.Writer) terminal.Protocol {
	_, tty := terminal.Descriptor(w)
	switch {
	case !tty || f.Images == "off" || p.Getenv("TERM") == "dumb":
		return terminal.NoPictures
	case f.Images == "auto" || f.Images == "":
		return terminal.Detect(p.Getenv)
	}
	return terminal.Protocol(f.Images)
}

// drawing is what shows a figure on the terminal w, or "".
func drawing(w io.Writer, p terminal.Protocol, d shown) string {
	if ending, content := figureOf(d.data, func() string { return "" }); p != terminal.NoPictures && (ending == ".png" || ending == ".jpg") {
		return terminal.Picture(w, p, content, aboutFigure(d.metadata).Width)
	}
	return ""
}
