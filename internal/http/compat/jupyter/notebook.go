package jupyter

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/python/oldnotebook"
)

// emptyNotebook is what a new notebook has in it.
const emptyNotebook = `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`

// readNotebook is a notebook's content for clients: texts that the file has as lists of lines are in one piece.
func readNotebook(ctx context.Context, text []byte) (map[string]any, error) {
	unreadable := problem.New(problem.InvalidRequest, "Unreadable Notebook: the file is not a notebook").WithHint("open it as a text file")
	text, err := bodybudget.Read(ctx, bytes.NewReader(text)) // which bounds what decoding takes
	if err != nil {
		if p := problem.Of(err); p != nil && p.Kind != problem.Invalid {
			return nil, err
		}
		return nil, unreadable
	}
	var nb map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&nb) != nil || nb == nil {
		return nil, unreadable
	}
	oldnotebook.Upgrade(nb)
	if _, ok := nb["nbformat"].(json.Number); !ok {
		return nil, unreadable
	}
	cells, _ := nb["cells"].([]any)
	for _, one := range cells {
		cell, _ := one.(map[string]any)
		join(cell, "source")
		joinAll(cell["attachments"])
		outputs, _ := cell["outputs"].([]any)
		for _, o := range outputs {
			output, _ := o.(map[string]any)
			join(output, "text")
			joinData(output["data"])
		}
	}
	return nb, nil
}

// invalidNotebook says what is wrong with the cells of a notebook, or "".
func invalidNotebook(nb map[string]any) string {
	cells, ok := nb["cells"].([]any)
	if !ok {
		return "Notebook validation failed: it has no list of cells"
	}
	for i, one := range cells {
		cell, _ := one.(map[string]any)
		kind, _ := cell["cell_type"].(string)
		_, source := cell["source"].(string)
		_, metadata := cell["metadata"].(map[string]any)
		_, outputs := cell["outputs"].([]any)
		if !source || !metadata || kind != "markdown" && kind != "raw" && (kind != "code" || !outputs) {
			return fmt.Sprintf("Notebook validation failed: the cell %d is none of version 4", i+1)
		}
	}
	return ""
}

func joinAll(attachments any) {
	all, _ := attachments.(map[string]any)
	for _, one := range all {
		joinData(one)
	}
}

// joinData joins the values of a bundle. Those of JSON may be lists that are meant.
func joinData(data any) {
	all, _ := data.(map[string]any)
	for kind := range all {
		if !strings.HasSuffix(kind, "json") {
			join(all, kind)
		}
	}
}

func join(of map[string]any, name string) {
	lines, ok := of[name].([]any)
	if !ok {
		return
	}
	var text strings.Builder
	for _, one := range lines {
		line, _ := one.(string)
		text.WriteString(line)
	}
	of[name] = text.String()
}

// writeNotebook is what a file has of a notebook's content.
func writeNotebook(content json.RawMessage) ([]byte, error) {
	var nb struct {
		Format *int            `json:"nbformat"`
		Cells  json.RawMessage `json:"cells"`
	}
	if json.Unmarshal(content, &nb) != nil || nb.Format == nil || *nb.Format != 4 || len(nb.Cells) == 0 || nb.Cells[0] != '[' {
		return nil, problem.New(problem.InvalidRequest, "the content is not a notebook of version 4").WithHint("have nbformat convert older ones")
	}
	var out bytes.Buffer
	if err := json.Indent(&out, content, "", " "); err != nil {
		return nil, problem.New(problem.InvalidRequest, "the content is not a notebook")
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// hasText sets a file's content in the format that a client wants, or in the one that fits.
func (m *contentsModel) hasText(text []byte, format string) error {
	readable := utf8.Valid(text) && bytes.IndexByte(text, 0) < 0
	switch {
	case format == formatText && !readable:
		return problem.New(problem.InvalidRequest, m.Path+" is not UTF-8 encoded")
	case format == formatBase64 || !readable:
		m.Content, m.Format = base64.StdEncoding.EncodeToString(text), new(formatBase64)
		if m.MIME == nil {
			m.MIME = new("application/octet-stream")
		}
	default:
		m.Content, m.Format = string(text), new(formatText)
		if m.MIME == nil {
			m.MIME = new("text/plain")
		}
	}
	return nil
}

// bytesOf is what a client sends for a file.
func bytesOf(content json.RawMessage, format string) ([]byte, error) {
	var text string
	if json.Unmarshal(content, &text) != nil {
		return nil, problem.New(problem.InvalidRequest, "the content of a file is a string")
	}
	switch format {
	case formatText:
		return []byte(text), nil
	case formatBase64:
		data, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(text))
		if err != nil {
			return nil, problem.New(problem.InvalidRequest, "the content is not base64")
		}
		return data, nil
	}
	return nil, problem.New(problem.InvalidRequest, "Must specify format of file contents as 'text' or 'base64'")
}
