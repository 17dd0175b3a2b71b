package notebook

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"cove/internal/python/kernel"
)

// The types follow the schema of nbformat 4.5, https://nbformat.readthedocs.io/en/latest/format_description.html.
type ipynb struct {
	Cells    []any          `json:"cells"`
	Metadata map[string]any `json:"metadata"`
	Format   int            `json:"nbformat"`
	Minor    int            `json:"nbformat_minor"`
}

type markdownCell struct {
	Type     string         `json:"cell_type"`
	ID       string         `json:"id"`
	Metadata map[string]any `json:"metadata"`
	Source   []string       `json:"source"`
}

type codeCell struct {
	Type     string           `json:"cell_type"`
	Count    *int             `json:"execution_count"`
	ID       string           `json:"id"`
	Metadata map[string]any   `json:"metadata"`
	Outputs  []map[string]any `json:"outputs"`
	Source   []string         `json:"source"`
}

// WriteIPYNB writes the document as a Jupyter notebook.
func WriteIPYNB(w io.Writer, d Document) error {
	b := builder{}
	if text := d.heading(); text != "" {
		b.text(text)
	}
	for _, t := range d.Turns {
		if t.Prompt != "" {
			b.text("**Question:** " + t.Prompt)
		}
		for _, block := range t.Blocks {
			if block.Cell != nil {
				b.code(*block.Cell)
			} else {
				b.text(block.Text)
			}
		}
		if t.Answer != "" {
			b.text(t.answer())
		}
	}
	language := map[string]any{"name": "python"}
	if d.Python != "" {
		language["version"] = d.Python
	}
	meta := map[string]any{
		"kernelspec":    map[string]any{"name": "python3", "display_name": "Python 3", "language": "python"},
		"language_info": language,
	}
	if d.Title != "" {
		meta["title"] = clean(d.Title)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(ipynb{Cells: append([]any{}, b.cells...), Metadata: meta, Format: 4, Minor: 5})
}

// heading is the title, and what a reader needs to run the document.
func (d Document) heading() string {
	var b strings.Builder
	if d.Title != "" {
		fmt.Fprintf(&b, "# %s\n", strings.Join(strings.Fields(d.Title), " "))
	}
	if len(d.Files) > 0 {
		names := make([]string, 0, len(d.Files))
		for _, f := range d.Files {
			names = append(names, "`"+strings.NewReplacer("`", "'", "\n", " ").Replace(f)+"`")
		}
		fmt.Fprintf(&b, "\nTo run it, put %s beside it.\n", strings.Join(names, ", "))
	}
	return strings.TrimSpace(b.String())
}

// editedNote goes before code that is not what the model wrote.
const editedNote = "*The user changed this code before it ran.*"

type builder struct {
	cells []any
	count int
}

func (b *builder) id() string { return fmt.Sprintf("cell-%d", len(b.cells)+1) }

func (b *builder) text(text string) {
	b.cells = append(b.cells, markdownCell{Type: "markdown", ID: b.id(), Metadata: map[string]any{}, Source: lines(text)})
}

func (b *builder) code(c Cell) {
	b.count++
	n := b.count
	cell := codeCell{Type: "code", Count: &n, ID: b.id(), Metadata: map[string]any{}, Outputs: []map[string]any{}, Source: lines(c.Code)}
	if c.Edited {
		cell.Metadata["cove"] = map[string]any{"edited": true}
		b.text(editedNote)
		cell.ID = b.id()
	}
	for _, o := range c.Outputs {
		cell.Outputs = append(cell.Outputs, output(o, n))
	}
	if c.Outcome != kernel.OutcomeOK && c.Outcome != kernel.OutcomeError && c.Message != "" {
		cell.Outputs = append(cell.Outputs, map[string]any{"output_type": "stream", "name": "stderr", "text": lines(c.Message + "\n")})
	}
	b.cells = append(b.cells, cell)
}

func output(o Output, count int) map[string]any {
	switch {
	case o.Stream != nil:
		name := "stdout"
		if o.Stream.Name == "stderr" {
			name = "stderr"
		}
		return map[string]any{"output_type": "stream", "name": name, "text": lines(string(o.Stream.Data))}
	case o.Display != nil:
		return map[string]any{"output_type": "display_data", "data": bundle(o.Display.Data), "metadata": object(o.Display.Metadata)}
	case o.Result != nil:
		return map[string]any{"output_type": "execute_result", "execution_count": count, "data": bundle(o.Result.Data), "metadata": object(o.Result.Metadata)}
	}
	trace := make([]string, 0, len(o.Error.Traceback))
	for _, line := range o.Error.Traceback {
		trace = append(trace, clean(line))
	}
	return map[string]any{"output_type": "error", "ename": clean(o.Error.Name), "evalue": clean(o.Error.Value), "traceback": trace}
}

// bundle makes the values what nbformat wants: any JSON for JSON types, text for all others.
func bundle(data kernel.Bundle) map[string]any {
	out := map[string]any{}
	for kind, value := range data {
		text, isText := value.(string)
		switch {
		case !isText && !shallow(value, deepest):
			continue
		case isJSON(kind):
			out[kind] = value
		case !isText:
			encoded, err := json.Marshal(value)
			if err != nil {
				continue
			}
			out[kind] = string(encoded)
		case strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
			out[kind] = text
		default:
			out[kind] = lines(text)
		}
	}
	return out
}

// isJSON says whether the format has any JSON for that kind, and not only text.
func isJSON(kind string) bool {
	name, ok := strings.CutPrefix(kind, "application/")
	return ok && (name == "json" || strings.HasSuffix(name, "+json")) && !strings.ContainsAny(name, "\r\n\u2028\u2029")
}

// deepest is how deep a value may be nested: Python, which reads notebooks, gives up at about a thousand.
const deepest = 100

func shallow(value any, levels int) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, x := range v {
			if levels == 0 || !shallow(x, levels-1) {
				return false
			}
		}
	case []any:
		for _, x := range v {
			if levels == 0 || !shallow(x, levels-1) {
				return false
			}
		}
	}
	return true
}

func object(m map[string]any) map[string]any {
	if m == nil || !shallow(m, deepest) {
		return map[string]any{}
	}
	return m
}

// lines cuts a text as notebooks keep it: each line with its end.
func lines(text string) []string {
	out := []string{}
	for line := range strings.Lines(clean(text)) {
		out = append(out, line)
	}
	return out
}

func clean(text string) string { return strings.ToValidUTF8(text, "�") }
