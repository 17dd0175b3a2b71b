// Package oldnotebook brings Jupyter notebooks of format 2 and 3, as IPython wrote them until 2014, to format 4. The rules are those of nbformat's conversion;
// see https://nbformat.readthedocs.io/en/latest/changelog.html.
package oldnotebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// kinds are the MIME types of what outputs of format 3 have under short names.
var kinds = map[string]string{
	"text": "text/plain", "html": "text/html", "svg": "image/svg+xml", "png": "image/png", "jpeg": "image/jpeg", "latex": "text/latex", "json": "application/json",
	"javascript": "application/javascript",
}

// UpgradeText returns a notebook's JSON in format 4, and each other text as it is.
func UpgradeText(text []byte) []byte {
	if !bytes.Contains(text, []byte(`"worksheets"`)) {
		return text
	}
	var nb map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&nb) != nil || !Upgrade(nb) {
		return text
	}
	upgraded, err := json.Marshal(nb)
	if err != nil {
		return text
	}
	return upgraded
}

// Upgrade changes a notebook that was decoded from JSON, and reports whether it was one of format 2 or 3. What has not the form of that format is left out.
func Upgrade(nb map[string]any) bool {
	sheets, ok := nb["worksheets"].([]any)
	format := fmt.Sprint(nb["nbformat"])
	if !ok || format != "2" && format != "3" {
		return false
	}
	cells := []any{}
	for _, one := range sheets {
		sheet, _ := one.(map[string]any)
		all, _ := sheet["cells"].([]any)
		for _, c := range all {
			if cell, ok := c.(map[string]any); ok && upgradeCell(cell) {
				cells = append(cells, cell)
			}
		}
	}
	metadata := object(nb, "metadata")
	delete(metadata, "name")
	delete(metadata, "signature")
	metadata["orig_nbformat"] = nb["nbformat"]
	delete(nb, "worksheets")
	nb["cells"], nb["nbformat"], nb["nbformat_minor"] = cells, json.Number("4"), json.Number("4")
	return true
}

// object returns the object that another has under a name, which it has then.
func object(of map[string]any, name string) map[string]any {
	m, ok := of[name].(map[string]any)
	if !ok {
		m = map[string]any{}
		of[name] = m
	}
	return m
}

// move renames what an object has; where it has nothing, it gets the default.
func move(of map[string]any, from, to string, otherwise any) {
	value, ok := of[from]
	if !ok || value == nil {
		value = otherwise
	}
	delete(of, from)
	of[to] = value
}

func upgradeCell(cell map[string]any) bool {
	metadata := object(cell, "metadata")
	switch cell["cell_type"] {
	case "code":
		move(cell, "input", "source", "")
		move(cell, "prompt_number", "execution_count", nil)
		if collapsed, ok := cell["collapsed"]; ok {
			metadata["collapsed"] = collapsed
		}
		delete(cell, "collapsed")
		delete(cell, "language")
		outputs := []any{}
		old, _ := cell["outputs"].([]any)
		for _, one := range old {
			if o, ok := one.(map[string]any); ok && upgradeOutput(o) {
				outputs = append(outputs, o)
			}
		}
		cell["outputs"] = outputs
	case "heading":
		level, err := strconv.Atoi(fmt.Sprint(cell["level"]))
		if err != nil || level < 1 || level > 6 {
			level = 1
		}
		cell["source"] = strings.Repeat("#", level) + " " + strings.ReplaceAll(text(cell["source"]), "\n", " ")
		cell["cell_type"] = "markdown"
		delete(cell, "level")
	case "html":
		cell["cell_type"] = "markdown"
	case "markdown", "raw":
	default:
		return false
	}
	if _, ok := cell["source"]; !ok {
		cell["source"] = ""
	}
	return true
}

// text joins what may be a list of lines.
func text(value any) string {
	if lines, ok := value.([]any); ok {
		var b strings.Builder
		for _, line := range lines {
			b.WriteString(text(line))
		}
		return b.String()
	}
	s, _ := value.(string)
	return s
}

func upgradeOutput(o map[string]any) bool {
	switch o["output_type"] {
	case "stream":
		move(o, "stream", "name", "stdout")
		return true
	case "pyerr":
		o["output_type"] = "error"
		delete(o, "prompt_number")
		return true
	case "pyout":
		o["output_type"] = "execute_result"
		move(o, "prompt_number", "execution_count", nil)
	case "display_data":
	default:
		return false
	}
	data := map[string]any{}
	for short, kind := range kinds {
		if value, ok := o[short]; ok {
			delete(o, short)
			if kind == "application/json" {
				var decoded any
				if json.Unmarshal([]byte(text(value)), &decoded) != nil {
					continue
				}
				value = decoded
			}
			data[kind] = value
		}
	}
	o["data"] = data
	object(o, "metadata")
	return true
}
