// Package apitest holds answers of the API against the document that describes it, for tests in other packages.
package apitest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"cove/internal/http/api"
)

// Check returns what an answer has that the document does not allow: a status or a type of content that it does not tell, or JSON of another form.
// target is the request's path, with or without a query. What is no operation of the API is not looked at.
func Check(method, target string, status int, header http.Header, body []byte) error {
	d, err := read()
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, target, nil)
	if err != nil {
		return nil // the server may refuse what is no address
	}
	_, pattern := d.routes.Handler(r)
	at, ok := d.known[pattern]
	if !ok || method != at.method { // GET's pattern takes HEAD, too
		return nil
	}
	if err := d.check(at, status, header, body); err != nil {
		return fmt.Errorf("%s answers %d with what openapi.json does not allow: %w", at.id, status, err)
	}
	return nil
}

// document is openapi.json, ready to be asked. A compiler is for one at a time.
type document struct {
	routes   http.ServeMux
	known    map[string]operation // by the pattern of routes
	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

type operation struct {
	id, method string
	pointer    string // of its responses, into the document
	responses  map[string]any
}

const location = "file:///openapi.json"

var read = sync.OnceValues(func() (*document, error) {
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.Document()))
	if err != nil {
		return nil, fmt.Errorf("read openapi.json: %w", err)
	}
	d := &document{known: map[string]operation{}, compiler: jsonschema.NewCompiler()}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(location, whole); err != nil {
		return nil, fmt.Errorf("read openapi.json: %w", err)
	}
	for _, r := range api.Routes() {
		path := strings.Replace(strings.TrimPrefix(r.Pattern, api.Prefix), "...}", "}", 1)
		pointer := []string{"paths", path, strings.ToLower(r.Method), "responses"}
		responses, ok := member(whole, pointer...).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("openapi.json has no %s %s", r.Method, path)
		}
		pattern := r.Method + " " + r.Pattern
		d.routes.Handle(pattern, http.NotFoundHandler())
		d.known[pattern] = operation{r.ID, r.Method, fragment(pointer...), responses}
	}
	return d, nil
})

func member(of any, names ...string) any {
	for _, name := range names {
		object, _ := of.(map[string]any)
		of = object[name]
	}
	return of
}

// fragment is a JSON pointer as a part of an address.
func fragment(names ...string) string {
	var out strings.Builder
	for _, name := range names {
		out.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name))
	}
	return out.String()
}

func (d *document) check(at operation, status int, header http.Header, body []byte) error {
	name := strconv.Itoa(status)
	if at.responses[name] == nil {
		if name = "default"; status/100 == 4 {
			name = "4XX"
		}
		if status/100 == 2 || status/100 == 3 {
			return fmt.Errorf("it is not told that the status may be %d", status)
		}
	}
	content, _ := member(at.responses, name, "content").(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("it has a body: %.200s", body)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("its Content-Type %q is none: %w", header.Get("Content-Type"), err)
	}
	if content["*/*"] != nil {
		return nil
	}
	if content[kind] == nil {
		return fmt.Errorf("its Content-Type is %s", kind)
	}
	if kind != "application/json" && kind != "application/problem+json" {
		return nil
	}
	return d.fits(at.pointer+fragment(name, "content", kind, "schema"), body)
}

func (d *document) fits(pointer string, body []byte) error {
	d.mu.Lock()
	schema, err := d.compiler.Compile(location + "#" + pointer)
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("its schema is none: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("its JSON is none: %w", err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%w\n%.2000s", err, body)
	}
	return nil
}
