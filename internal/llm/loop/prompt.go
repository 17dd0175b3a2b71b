package loop

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"cove/internal/llm/model"
	"cove/internal/llm/tool"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var prompts = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(promptFiles, "prompts/*.md")) })

// toolSchema is the JSON Schema of the tool's arguments.
const toolSchema = `{"type":"object","properties":{"code":{"type":"string",` +
	`"description":"Python source code. The value of the last expression is shown."}},"required":["code"]}`

// kernelsSchema is toolSchema for a model that may use several kernels.
const kernelsSchema = `{"type":"object","properties":{"code":{"type":"string",` +
	`"description":"Python source code. The value of the last expression is shown."},"kernel":{"type":"string",` +
	`"description":"The kernel to run in, by a short name of your own. Leave it out for the main one."}},"required":["code"]}`

// notable are the packages ondisk in the prompt, in this order.
var notable = []string{
	"numpy", "pandas", "polars", "duckdb", "scipy", "matplotlib", "seaborn", "plotly", "scikit-learn", "statsmodels", "sympy",
	"networkx", "pyarrow", "openpyxl", "xlsxwriter", "xlrd", "pillow", "opencv-python-headless", "pypdf", "reportlab", "python-docx",
	"python-pptx", "beautifulsoup4", "lxml", "tabulate", "jinja2", "pyyaml",
}

// render fills a prompt. Prompts are part of the program, so one that cannot be filled is a fault of the program.
func render(name string, data any) string {
	var b strings.Builder
	if err := prompts().ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("prompt %s: %v", name, err))
	}
	return strings.TrimSpace(b.String())
}

// system returns the system prompt. With last, nothing more is to be run. Without Python it consists of the client's instructions alone.
func (t *turn) system(last bool) string {
	if !t.spec.Python {
		return t.spec.Instructions
	}
	version, packages := t.session.Python()
	reach, root := t.session.May()
	text := render("system.md", map[string]any{
		"Version":  version,
		"Packages": packageList(packages),
		"Images":   t.sees(),
		"Fenced":   t.learned.fenced,
		"Plain":    last || !t.python,
		"Installs": !t.limits.NoInstall,
		"Root":     root,
		"Reaches":  strings.Join(reach, ", "),
		"Globals":  t.spec.OfferedGlobals,
		"Offered":  t.spec.Offered.Len(),
		"Describe": offeredList(t.spec.Offered),
	})
	if strings.TrimSpace(t.spec.Instructions) == "" {
		return text
	}
	return text + "\n\n" + t.spec.Instructions
}

const (
	mostOffered    = 16_000 // bytes of the descriptions of functions for code
	longestPurpose = 400    // bytes of one
)

// offeredList describes the functions that code may call. When they are too many, it is "".
func offeredList(s *tool.Set) string {
	if s.Len() == 0 {
		return ""
	}
	var b strings.Builder
	for function, one := range s.All {
		b.WriteString("  - `" + tool.Signature(function, one) + "`")
		if words := strings.Join(strings.Fields(one.Description), " "); words != "" {
			b.WriteString(": " + cutEnd(words, longestPurpose))
		}
		b.WriteByte('\n')
		if b.Len() > mostOffered {
			return ""
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// sees says whether images are sent to the model.
func (t *turn) sees() bool { return t.model.Capabilities().Images && !t.learned.blind }

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

// request is the next call of the model: the whole conversation. With last, nothing more is to be run or called.
func (t *turn) request(last bool) model.Request {
	t.history.shorten()
	req := model.Request{
		System:    t.system(last),
		MaxTokens: t.spec.MaxTokens, Temperature: t.spec.Temperature, TopP: t.spec.TopP, Effort: t.spec.Effort, Extra: t.spec.Extra,
	}
	if !last {
		req.Tools = t.offered()
	}
	req.Messages = t.normal(t.fit(t.history.messages, req))
	if !t.python {
		req.Stop = t.spec.Stop
	}
	if last || !t.python || !t.learned.fenced { // otherwise code comes as text
		req.Format = t.spec.Format
	}
	if len(req.Tools) == 0 {
		req.Messages = flat(req.Messages)
		return req
	}
	req.Parallel = t.spec.Parallel
	if t.attempts == 0 {
		req.Choice = t.choice()
	}
	return req
}
