package jupyter

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"cove/internal/http/bodybudget"
)

// description answers with an OpenAPI document of what is served here. Its bodies are those of a Jupyter server, and are not described again.
func (s *server) description(c *call) error {
	c.w.Header().Set("Content-Type", "text/x-yaml")
	_, err := io.WriteString(c.w, openAPI(s.Version))
	return err
}

// wildcard is a part of a pattern that stands for others.
var wildcard = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(\w+)(\.\.\.)?\}`) })

// openAPI describes the routes. Strings are quoted as Go does, which is as YAML does.
func openAPI(version string) string {
	var out strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&out, format+"\n", values...) }
	say("openapi: 3.0.3")
	say("info:\n  title: Kernels, files and terminals of cove, as a Jupyter server has them\n  version: %s", strconv.Quote(version))
	say("servers:\n  - url: %s", Prefix)
	say("components:\n  securitySchemes:\n    token: {type: apiKey, in: header, name: Authorization, description: %s}", strconv.Quote("token KEY, or Bearer KEY"))
	say("security:\n  - token: []\npaths:")
	before := ""
	for _, r := range grouped(routes()) {
		path := wildcard().ReplaceAllString(strings.TrimPrefix(strings.TrimSuffix(r.pattern, "{$}"), Prefix), "{$1}")
		if path != before {
			say("  %s:", path)
			before = path
		}
		say("    %s:\n      summary: %s", strings.ToLower(r.method), strconv.Quote(r.does))
		if r.public {
			say("      security: []")
		}
		if names := wildcard().FindAllStringSubmatch(r.pattern, -1); len(names) > 0 {
			say("      parameters:")
			for _, name := range names {
				say("        - {name: %s, in: path, required: true, schema: {type: string}}", name[1])
			}
		}
		say("      responses:\n        default: {description: %s}", strconv.Quote("as that of a Jupyter server; of a failure, JSON with message and reason"))
	}
	return out.String()
}

// grouped has the routes of one path after each other.
func grouped(all []route) []route {
	var out []route
	done := map[string]bool{}
	for _, first := range all {
		for _, r := range all {
			if r.pattern == first.pattern && !done[first.pattern] {
				out = append(out, r)
			}
		}
		done[first.pattern] = true
	}
	return out
}

const mostReport = 16 << 10 // bytes

// refused takes a browser's report of what it has refused. Anybody may send one, so it is for who looks closely alone.
func (s *server) refused(c *call) error {
	text, err := io.ReadAll(bodybudget.Bounded(c.w, c.Body, mostReport))
	if err != nil {
		return nil // nobody waits for the answer
	}
	s.Log.DebugContext(c.Context(), "a browser has refused something", "report", string(text))
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
