package api

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

//go:embed page.html
var pageText string

// refPrefix is before a shape's name where another refers to it.
const refPrefix = "#/components/schemas/"

// pageGroup is a group of operations, as the page shows it.
type pageGroup struct {
	Name, Anchor string
	Guide        template.HTML
	Operations   []pageOperation
}

type pageOperation struct {
	ID, Method, Path, Summary string
	About                     template.HTML
	Parameters, Body          []pageField
	Answers                   []pageAnswer
}

// pageField is a field or parameter. Anchor leads to the shape that it is or lists; "" where there is none. Optional is whether a field may be missing.
type pageField struct {
	Name, Kind, Anchor, About string
	Optional                  bool
}

type pageAnswer struct {
	Status, Type, Anchor, About string
}

type pageShape struct {
	Name, Anchor string
	Fields       []pageField
}

type pageProblem struct {
	Kind   problem.Kind
	Status int
	About  string
}

// page is the documentation of the interface for people: one page of plain HTML, made from the OpenAPI document, without scripts.
func (s *server) page() ([]byte, error) {
	doc := s.api.OpenAPI()
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{"Start": markdown(doc.Info.Description), "Version": s.o.Version, "Groups": s.pageGroups(), "Shapes": s.pageShapes(),
		"Wrong": markdown(guide("problems")), "Problems": pageProblems()})
	return out.Bytes(), err
}

func pageProblems() []pageProblem {
	out := []pageProblem{
		{Kind: problem.Invalid, About: "The request is wrong; repeating it cannot help. 409 where it does not fit what is there, 413 where it is too large, 422 where errors lists the fields."},
		{Kind: problem.NotFound, About: "What is named does not exist, or is another project's."},
		{Kind: problem.Denied, About: "The key may not do that. 401 when there is no valid key."},
		{Kind: problem.Exhausted, About: "A limit or a quota is used up. Retry-After says when to try again. 413 for a file that is too large, 507 for a full workspace or disk quota."},
		{Kind: problem.Unavailable, About: "Something is down, or the server is about to end. Retry-After says when to try again. 507 when the server's disk is full."},
		{Kind: problem.Timeout, About: "A deadline passed."},
		{Kind: problem.Canceled, About: "The client gave up."},
		{Kind: problem.Internal, About: "A fault of the server. Tell its operator the request_id."},
	}
	for i := range out {
		out[i].Status = httpstatus.OfKind(out[i].Kind)
	}
	return out
}

func anchor(text string) string { return strings.ReplaceAll(text, " ", "-") }

func (s *server) pageGroups() []pageGroup {
	doc := s.api.OpenAPI()
	byTag := map[string][]pageOperation{}
	for _, r := range s.routes { // in the order of declaration
		path := strings.Replace(strings.TrimPrefix(r.Pattern, Prefix), "...}", "}", 1)
		for _, op := range operationsOf(doc.Paths[path]) {
			if op.OperationID == r.ID {
				byTag[op.Tags[0]] = append(byTag[op.Tags[0]], s.pageOperation(r.Method, Prefix+path, op))
			}
		}
	}
	var out []pageGroup
	for _, t := range doc.Tags {
		out = append(out, pageGroup{Name: t.Name, Anchor: anchor(t.Name), Guide: markdown(t.Description), Operations: byTag[t.Name]})
	}
	return out
}

func (s *server) pageOperation(method, path string, op *huma.Operation) pageOperation {
	out := pageOperation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, About: markdown(op.Description)}
	for _, p := range op.Parameters {
		f := pageField{Name: p.Name, Kind: p.In, About: p.Description}
		if p.Schema != nil {
			f.Kind = p.In + ", " + s.kindOf(p.Schema)
			if f.About == "" {
				f.About = p.Schema.Description
			}
		}
		if p.Required && p.In != "path" {
			f.Kind += ", needed"
		}
		out.Parameters = append(out.Parameters, f)
	}
	if op.RequestBody != nil {
		if m := op.RequestBody.Content["application/json"]; m != nil {
			out.Body = s.fieldsOf(m.Schema)
		}
	}
	for status, r := range op.Responses {
		if status == "default" || status == "4XX" {
			continue
		}
		a := pageAnswer{Status: status, About: r.Description}
		if m := r.Content["application/json"]; m != nil && m.Schema != nil {
			a.Type, a.Anchor = s.kindOf(m.Schema), shapeOf(m.Schema)
		}
		out.Answers = append(out.Answers, a)
	}
	slices.SortFunc(out.Answers, func(a, b pageAnswer) int { return strings.Compare(a.Status, b.Status) })
	return out
}

// fieldsOf lists an object's fields, the required ones first.
func (s *server) fieldsOf(schema *huma.Schema) []pageField {
	if schema.Ref != "" {
		schema = s.api.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	if schema == nil {
		return nil
	}
	var first, rest []pageField
	for name, f := range schema.Properties {
		field := pageField{Name: name, Kind: s.kindOf(f), Anchor: shapeOf(f), About: f.Description}
		if slices.Contains(schema.Required, name) {
			first = append(first, field)
		} else {
			rest = append(rest, field)
		}
	}
	byName := func(a, b pageField) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(first, byName)
	slices.SortFunc(rest, byName)
	for i := range rest {
		rest[i].Optional = true
	}
	return append(first, rest...)
}

// shapeOf returns the anchor of the shape that a type is or lists.
func shapeOf(schema *huma.Schema) string {
	if schema.Items != nil {
		schema = schema.Items
	}
	if name, ok := strings.CutPrefix(schema.Ref, refPrefix); ok {
		return "shape-" + name
	}
	return ""
}

// kindOf returns a type in a word or two.
func (s *server) kindOf(schema *huma.Schema) string {
	switch {
	case schema.Ref != "":
		return strings.TrimPrefix(schema.Ref, refPrefix)
	case len(schema.Enum) > 0:
		words := make([]string, len(schema.Enum))
		for i, e := range schema.Enum {
			words[i] = fmt.Sprint(e)
		}
		return strings.Join(words, " | ")
	case schema.Items != nil:
		return "list of " + s.kindOf(schema.Items)
	case schema.Type == "":
		return "JSON"
	case schema.Format == "date-time":
		return "time"
	}
	return schema.Type
}

func (s *server) pageShapes() []pageShape {
	var out []pageShape
	for name, schema := range s.api.OpenAPI().Components.Schemas.Map() {
		out = append(out, pageShape{Name: name, Anchor: "shape-" + name, Fields: s.fieldsOf(schema)})
	}
	slices.SortFunc(out, func(a, b pageShape) int { return strings.Compare(a.Name, b.Name) })
	return out
}
