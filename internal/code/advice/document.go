package advice

import (
	"bytes"
	"context"
	"encoding/json"
	"unicode/utf8"

	"cove/internal/core/problem"
)

// documentPath is where scripts leave a document in the workspace, maxDocument the most that is read of it, in bytes.
const (
	documentPath = ".cove-check/document"
	maxDocument  = 8 << 20
)

// Reference is the documentation of a module.
type Reference struct {
	Markdown     string `json:"markdown"`
	Described    int    `json:"described" doc:"Public classes and functions"`
	Undocumented int    `json:"undocumented" doc:"Those of them without a docstring"`
}

// Document writes the reference of a module's public names, from its docstrings and annotations. The code is read, not run. Problems: code_invalid,
// check_tool_missing, check_failed.
func (c *Checker) Document(ctx context.Context, src Source) (Reference, error) {
	if _, err := c.parsed(ctx, src); err != nil {
		return Reference{}, err
	}
	one, text, err := c.written(ctx, scriptRun{script: "documentation", src: src, tools: []string{"griffe"}})
	return Reference{Markdown: string(text), Described: max(0, one.Described), Undocumented: max(0, one.Undocumented)}, err
}

// OpenAPI has the Flask or FastAPI application of a module describe itself, and returns the document. The module is imported for that. Problems: code_invalid,
// no_application, program_failed, check_failed.
func (c *Checker) OpenAPI(ctx context.Context, src Source) (json.RawMessage, error) {
	s, err := c.parsed(ctx, src)
	if err != nil {
		return nil, err
	}
	if len(s.applications) == 0 {
		return nil, problem.New(problem.NoApplication, src.Name+" makes no FastAPI or Flask application").
			WithHint("one is found where the module itself makes it, as in app = FastAPI()")
	}
	_, text, err := c.written(ctx, scriptRun{script: "openapi", src: src, wanted: &s, values: parameters{"application": s.applications[0]}})
	if err != nil {
		return nil, err
	}
	return checkOpenAPI(text)
}

// checkOpenAPI makes sure that a document is one, and lays it out.
func checkOpenAPI(text []byte) (json.RawMessage, error) {
	var document struct {
		OpenAPI string                     `json:"openapi"`
		Info    map[string]any             `json:"info"`
		Paths   map[string]json.RawMessage `json:"paths"`
	}
	var b bytes.Buffer
	if json.Unmarshal(text, &document) != nil || document.OpenAPI == "" || document.Info == nil || document.Paths == nil || json.Indent(&b, text, "", "  ") != nil {
		return nil, problem.New(problem.CheckFailed, "what the application says of itself is not an OpenAPI document")
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// parsed looks at code that has to be Python.
func (c *Checker) parsed(ctx context.Context, src Source) (seen, error) {
	var r Report
	s, err := c.look(ctx, src, &r)
	switch {
	case err != nil:
		return s, err
	case s.Parsed:
		return s, nil
	case len(r.Findings) > 0:
		return s, problem.New(problem.CodeInvalid, src.Name+": "+r.Findings[0].Message)
	}
	return s, problem.New(problem.CheckFailed, src.Name+" could not be looked at")
}

// written runs a script that leaves a document, and reads that.
func (c *Checker) written(ctx context.Context, j scriptRun) (reply, []byte, error) {
	var document *reply
	err := c.run(ctx, j, func(one reply) error {
		switch one.Kind {
		case "document":
			document = &one
		case "missing":
			return missing(one)
		case "failed":
			return programFailed(one)
		}
		return nil
	})
	if err != nil {
		return reply{}, nil, err
	}
	if document == nil {
		return reply{}, nil, problem.New(problem.CheckFailed, "the "+j.script+" of "+j.src.Name+" was not written")
	}
	text, err := c.Session.ReadFile(ctx, documentPath, maxDocument+1)
	switch {
	case err != nil:
		return reply{}, nil, err
	case len(text) > maxDocument || !utf8.Valid(text):
		return reply{}, nil, problem.New(problem.CheckFailed, "the "+j.script+" of "+j.src.Name+" is longer than 8 MiB, or not a text")
	}
	return *document, text, nil
}

// programFailed says that the program which is looked at did not do what it was run for.
func programFailed(one reply) error {
	return problem.New(problem.ProgramFailed, clipped(one.Why, longestError)).WithHint("run it with `cove run` first, and give the files that it needs with -f")
}
