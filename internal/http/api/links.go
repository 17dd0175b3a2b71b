package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// links adds OpenAPI links to the document: from an answer that has made something to the operations that take its id. Programs that explore an interface
// follow them, and readers see what the id is for.
func (s *server) links() {
	doc := s.api.OpenAPI()
	on := map[string][]*huma.Operation{} // by the name of the path's only parameter
	for path, item := range doc.Paths {
		if _, rest, _ := strings.Cut(path, "{"); strings.Contains(rest, "{") {
			continue // needs more than the id
		}
		for _, op := range operationsOf(item) {
			for _, p := range op.Parameters {
				if p.In == "path" {
					on[p.Name] = append(on[p.Name], op)
				}
			}
		}
	}
	for _, item := range doc.Paths {
		for _, op := range operationsOf(item) {
			for status, r := range op.Responses {
				made := status == "201" || op.Responses["202"] != nil // beside a 202, the 200 is the answer for a client that waits
				if t := thingOf(r); made && t.parameter != "" {
					r.Links = linksTo(on[t.parameter], t)
				}
			}
		}
	}
}

// thing is something that an answer has made: where its id is, and which parameter of a path takes it.
type thing struct{ id, parameter string }

// things are by the name of their schema.
var things = map[string]thing{
	"Session": {"/id", "session"}, "Execution": {"/id", "execution"}, "File": {"/id", "file"}, "Upload": {"/id", "upload"}, "Conversation": {"/id", "conversation"}, "Turn": {"/id", "turn"},
	"Key": {"/id", "key"}, "MadeInvitation": {"/id", "invitation"}, "MadeShare": {"/id", "share"}, "MadeKey": {"/key/id", "key"}, "User": {"/id", "user"}, "Project": {"/id", "project"},
}

// thingOf returns the thing of an answer, or nothing when it has no id.
func thingOf(r *huma.Response) thing {
	m := r.Content["application/json"]
	if m == nil || m.Schema == nil {
		return thing{}
	}
	return things[strings.TrimPrefix(m.Schema.Ref, "#/components/schemas/")]
}

func linksTo(operations []*huma.Operation, t thing) map[string]*huma.Link {
	out := map[string]*huma.Link{}
	for _, op := range operations {
		out[op.OperationID] = &huma.Link{OperationID: op.OperationID, Parameters: map[string]any{t.parameter: "$response.body#" + t.id}}
	}
	return out
}
