package api

import (
	"bytes"
	"embed"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed guide/*.md
var guides embed.FS

// tags are the groups of operations, in the order of the document.
var tags = [...]string{"sessions", "executions", "checks", "session files", "file system", "files", "packages", "kernels", "processes", "ports", "network", "links", "conversations", "models", "search", "keys", "browsers", "users and projects", "usage", "audit", "server"}

// guide returns the text of a group.
func guide(name string) string {
	text, err := guides.ReadFile("guide/" + strings.ReplaceAll(name, " ", "-") + ".md")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// plainLists makes huma describe lists as never null: answers have an empty list instead.
var plainLists = sync.OnceFunc(func() { huma.DefaultArrayNullable = false })

// config is huma's configuration, without what huma would serve or change by itself.
func (s *server) config() huma.Config {
	plainLists()
	c := huma.DefaultConfig("cove", "v1")
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Formats = map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()}
	c.Transformers = []huma.Transformer{s.transform}
	c.Info.Description = guide("start")
	c.Info.License = &huma.License{Name: "Apache 2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"}
	c.Servers = []*huma.Server{{URL: Prefix}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "A key of cove's, as `cove serve` prints the first one"}}
	c.Security = []map[string][]string{{"key": {}}}
	for _, name := range tags {
		c.Tags = append(c.Tags, &huma.Tag{Name: name, Description: guide(name)})
	}
	return c
}

// jsonFormat is huma's JSON format, but a client that has gone away or does not read is not reported as a fault of the server.
func jsonFormat() huma.Format {
	f := huma.DefaultJSONFormat
	encode := f.Marshal
	f.Marshal = func(w io.Writer, v any) error {
		var text bytes.Buffer
		err := encode(&text, v)
		if err == nil {
			_, _ = w.Write(text.Bytes())
		}
		return err
	}
	return f
}

// polish puts into the document what huma cannot see in the types: bodies that are streams, and the events.
func (s *server) polish() {
	doc := s.api.OpenAPI()
	for _, name := range []string{"ErrorModel", "ErrorDetail"} { // huma's own, which is never sent
		delete(doc.Components.Schemas.Map(), name)
	}
	for path, item := range doc.Paths {
		for _, op := range operationsOf(item) {
			s.describeBodies(op)
		}
		if plain := strings.Replace(path, "...}", "}", 1); plain != path { // the mux's notation for "and everything below"
			delete(doc.Paths, path)
			doc.Paths[plain] = item
		}
	}
}

// operationsOf lists the operations of a path, in the order of the document.
func operationsOf(item *huma.PathItem) []*huma.Operation {
	var out []*huma.Operation
	for _, op := range []*huma.Operation{item.Post, item.Get, item.Put, item.Patch, item.Delete} {
		if op != nil {
			out = append(out, op)
		}
	}
	return out
}

func (s *server) describeBodies(op *huma.Operation) {
	events := &huma.MediaType{Schema: &huma.Schema{Type: "string", Description: "Server-sent events. Each has an id, an event name and a JSON object as data; see the guide of this group."}}
	binary := &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
	thing := func(name string) *huma.MediaType {
		return &huma.MediaType{Schema: &huma.Schema{Ref: "#/components/schemas/" + name}}
	}
	answer := func(status, text string, content map[string]*huma.MediaType) {
		op.Responses[status] = &huma.Response{Description: text, Content: content}
	}
	asked := func(name string) {
		answer("200", "Events as they happen, or one object when it is over", map[string]*huma.MediaType{"text/event-stream": events, "application/json": thing(name)})
		answer("202", "It goes on (background)", map[string]*huma.MediaType{"application/json": thing(name)})
	}
	switch op.OperationID {
	case "execution.create":
		asked("Execution")
	case "turn.create", "turn.create_alone":
		asked("Turn")
	case "question.create":
		answer("201", "The question, as it waits", map[string]*huma.MediaType{"application/json": thing("Question")})
	case "execution.events", "turn.events", "process.events":
		answer("200", "Events", map[string]*huma.MediaType{"text/event-stream": events})
		op.Parameters = append(op.Parameters, &huma.Param{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: "integer"}, Description: "The id of the last event that you have"})
	case "process.start":
		started := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Process](), true, "Process")
		answer("201", "The process", map[string]*huma.MediaType{"application/json": {Schema: started}})
		answer("200", "Its events", map[string]*huma.MediaType{"text/event-stream": events})
	case "batch.run":
		result := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[BatchResult](), true, "BatchResult")
		answer("200", "What happens, as it happens", map[string]*huma.MediaType{"text/event-stream": events, linesType: {Schema: &huma.Schema{AnyOf: []*huma.Schema{result, {Type: "object"}}, Description: "On each line"}}})
	case "events.follow", "fs.watch":
		answer("200", "Events, without an end", map[string]*huma.MediaType{"text/event-stream": events})
	case "package.install":
		answer("200", "Events as they happen, or the `install` event alone", map[string]*huma.MediaType{"text/event-stream": events, "application/json": {Schema: &huma.Schema{Type: "object"}}})
	case "tree.upload":
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": binary}}
		answer("201", "The file", map[string]*huma.MediaType{"application/json": thing("Entry")})
	case "file.create":
		form := &huma.Schema{Type: "object", Required: []string{"file"}, Properties: map[string]*huma.Schema{"purpose": {Type: "string"}, "life_seconds": {Type: "integer"},
			"file": {Type: "string", Format: "binary"}}}
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: form}, "application/octet-stream": binary}}
		answer("201", "The file's record", map[string]*huma.MediaType{"application/json": thing("File")})
	case "process.output":
		answer("200", "The bytes", map[string]*huma.MediaType{"application/octet-stream": binary})
	case "port.connect":
		answer("101", "A WebSocket", nil)
		delete(op.Responses, "200")
	case "process.input":
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": binary}}
		written := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Written](), true, "Written")
		answer("200", "How much it was given", map[string]*huma.MediaType{"application/json": {Schema: written}})
	case "upload.append":
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": binary}}
		answer("200", "The upload", map[string]*huma.MediaType{"application/json": thing("Upload")})
	case "port.get", "port.post", "port.put", "port.patch", "port.delete":
		answer("default", "The answer of the server in the session, or a problem (RFC 9457)", map[string]*huma.MediaType{"*/*": binary, "application/problem+json": op.Responses["default"].Content["application/problem+json"]})
		if op.Method != http.MethodGet {
			op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"*/*": binary}}
		}
	case "fs.write", "link.write":
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": binary}}
		answer("201", "The file", map[string]*huma.MediaType{"application/json": thing("FileEntry")})
	case "tree.download", "file.content", "fs.read", "link.read":
		answer("200", "The content, of the type that its name tells", map[string]*huma.MediaType{"*/*": binary})
		answer("206", "The range that was asked for", map[string]*huma.MediaType{"*/*": binary})
		answer("304", "You have it", nil)
	case "share.show":
		shared := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Shared](), true, "Shared")
		answer("200", "What is shared", map[string]*huma.MediaType{"application/json": {Schema: shared}})
	case "conversation.export":
		answer("200", "The document, as a file", map[string]*huma.MediaType{"application/x-ipynb+json": binary, "text/markdown": binary, "text/html": binary, "text/x-python": binary})
	case "tree.archive":
		answer("200", "The archive", map[string]*huma.MediaType{"application/gzip": binary, "application/zip": binary})
	}
}

// Document returns the OpenAPI 3.1 document, indented, as it is kept in docs/openapi.json.
func Document() []byte {
	text, err := json.MarshalIndent(build(Options{}).api.OpenAPI(), "", " ")
	if err != nil {
		panic(err) // the document depends only on what is compiled in
	}
	return append(text, '\n')
}

// addDocuments serves the documents that describe the interface. They have no secrets, and a browser cannot send a key, so this package serves them without
// one. They are made at the first request.
func (s *server) addDocuments() {
	s.document("/openapi.json", "application/openapi+json", func() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) })
	s.document("/openapi-3.0.json", "application/openapi+json", func() ([]byte, error) { return s.api.OpenAPI().Downgrade() })
	s.document("/docs", "text/html; charset=utf-8", s.page)
}

func (s *server) document(path, kind string, write func() ([]byte, error)) {
	text := sync.OnceValues(write)
	s.mux.HandleFunc("GET "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
		out, err := text()
		if err != nil {
			s.write(w, r, documentOf(err))
			return
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(out)
	})
}
