package interpreter

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"cove/internal/model"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var prompts = template.Must(template.ParseFS(promptFiles, "prompts/*.md"))

// toolSchema is the JSON Schema of the tool's arguments.
const toolSchema = `{"type":"object","properties":{"code":{"type":"string",` +
	`"description":"Python source code. The value of the last expression is shown."}},"required":["code"]}`

// notable are the packages named in the prompt, in this order.
var notable = []string{
	"numpy", "pandas", "polars", "duckdb", "scipy", "matplotlib", "seaborn", "plotly", "scikit-learn", "statsmodels", "sympy",
	"networkx", "pyarrow", "openpyxl", "xlsxwriter", "xlrd", "pillow", "opencv-python-headless", "pypdf", "reportlab", "python-docx",
	"python-pptx", "beautifulsoup4", "lxml", "tabulate", "jinja2", "pyyaml",
}

// render fills a prompt. Prompts are part of the program, so one that cannot be filled is a fault of the program.
func render(name string, data any) string {
	var b strings.Builder
	if err := prompts.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("prompt %s: %v", name, err))
	}
	return strings.TrimSpace(b.String())
}

// system returns the system prompt. With plain, nothing more is to be run.
func (t *turn) system(plain bool) string {
	version, packages := t.session.Python()
	return render("system.md", map[string]any{
		"Version":  version,
		"Packages": packageList(packages),
		"Images":   t.sees(),
		"Fenced":   t.fenced,
		"Plain":    plain,
		"Installs": !t.limits.NoInstall,
	})
}

// sees says whether images are sent to the model.
func (t *turn) sees() bool { return t.model.Capabilities().Images && !t.blind }

func packageList(packages map[string]string) string {
	normal := make(map[string]string, len(packages))
	for name, version := range packages {
		normal[strings.ReplaceAll(strings.ToLower(name), "_", "-")] = version
	}
	var named []string
	for _, name := range notable {
		if version, ok := normal[name]; ok {
			named = append(named, name+" "+version)
		}
	}
	list := strings.Join(named, ", ")
	switch others := len(normal) - len(named); {
	case len(normal) == 0:
		return "the standard library only"
	case len(named) == 0:
		return fmt.Sprintf("none of the usual data packages, %d others", others)
	case others == 1:
		return list + " and 1 other"
	case others > 0:
		return fmt.Sprintf("%s and %d others", list, others)
	}
	return list
}

// request is the next call of the model: the whole conversation.
func (t *turn) request() model.Request {
	t.history.shorten()
	if t.fenced {
		return model.Request{System: t.system(false), Messages: t.history.flat()}
	}
	return model.Request{
		System:   t.system(false),
		Messages: append([]model.Message(nil), t.history.messages...),
		Tools: []model.Tool{{
			Name:        toolName,
			Description: render("tool.md", nil),
			Schema:      json.RawMessage(toolSchema),
		}},
	}
}
