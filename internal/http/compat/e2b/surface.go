package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// Ports of a sandbox at which the host answers.
const (
	agentPort       = 49983
	interpreterPort = 49999
)

// Headers of requests that are for a sandbox.
const (
	sandboxHeader = "E2b-Sandbox-Id"
	portHeader    = "E2b-Sandbox-Port"
	tokenHeader   = "X-Access-Token"
	trafficHeader = "E2b-Traffic-Access-Token"
)

// mostBody bounds a JSON request, in bytes.
const mostBody = 1 << 20

// Surfaces returns the interfaces as the server's front door takes them: the control plane, sandboxes by a header, and sandboxes by their names.
func Surfaces(o Options) []protocol.Surface {
	s := newServer(o)
	toSandbox := protocol.Surface{
		About: "E2B's sandboxes", Prefix: "/", Foreign: true, Cookies: true, Handler: http.HandlerFunc(s.gateway), Only: forSandbox,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { refuse(w, p) },
	}
	all := []protocol.Surface{{
		About: "E2B's API", Prefix: "/", Only: forControl, Handler: s.control(), Routes: surfaceRoutes(),
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { refuse(w, p) },
	}, toSandbox}
	if o.Names != nil {
		byName := *o.Names
		byName.Handler = http.HandlerFunc(s.byName)
		all = append(all, byName)
	}
	return all
}

// forSandbox says whether a request is for a sandbox: by its header, or because its address has a signature, which is what a link to a file has instead.
func forSandbox(r *http.Request) bool {
	return r.Header.Get(sandboxHeader) != "" || r.URL.Path == "/files" && r.URL.Query().Get("signature") != ""
}

// forControl says whether a path is the control plane's, which has the root to itself at E2B.
func forControl(r *http.Request) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if first == "v2" || first == "v3" {
		first, _, _ = strings.Cut(rest, "/")
	}
	return slices.Contains([]string{"sandboxes", "snapshots", "templates", "volumes", "volumecontent", "secrets"}, first)
}

// route is one operation of the control plane.
type route struct {
	pattern string
	needs   []auth.Action
	handle  func(*server, *call) error
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

func routes() []route {
	read, write := []auth.Action{auth.SessionsRead}, []auth.Action{auth.SessionsWrite, auth.SessionsExecute}
	return append(volumeRoutes(), []route{
		{"POST /sandboxes", write, (*server).create},
		{"POST /v2/sandboxes", write, (*server).create},
		{"GET /sandboxes", read, (*server).list},
		{"GET /v2/sandboxes", read, (*server).list},
		{"GET /sandboxes/{id}", read, (*server).show},
		{"DELETE /sandboxes/{id}", write, (*server).kill},
		{"POST /sandboxes/{id}/connect", write, (*server).connect},
		{"POST /v2/sandboxes/{id}/connect", write, (*server).connect},
		{"POST /sandboxes/{id}/resume", write, (*server).connect},
		{"POST /sandboxes/{id}/timeout", write, (*server).setTimeout},
		{"POST /sandboxes/{id}/refreshes", write, (*server).refresh},
		{"POST /sandboxes/{id}/pause", write, (*server).pause},
		{"POST /sandboxes/{id}/fork", write, (*server).fork},
		{"POST /sandboxes/{id}/snapshots", write, (*server).snapshot},
		{"GET /sandboxes/{id}/metrics", read, (*server).metrics},
		{"GET /sandboxes/{id}/logs", read, (*server).logs},
		{"GET /v2/sandboxes/{id}/logs", read, (*server).logs},
		{"PUT /sandboxes/{id}/network", write, (*server).changeNetwork},
		{"GET /snapshots", read, (*server).listSnapshots},
		{"DELETE /templates/{id}", write, (*server).deleteTemplate},
		{"GET /templates", read, (*server).listTemplates},
		{"GET /v2/templates", read, (*server).listTemplates},
		{"GET /templates/{id}", read, (*server).showTemplate},
		{"POST /v3/templates", write, (*server).requestBuild},
		{"GET /templates/{id}/files/{hash}", write, (*server).archiveLink},
		{"POST /v2/templates/{id}/builds/{build}", write, (*server).startBuild},
		{"GET /templates/{id}/builds/{build}/status", read, (*server).buildStatus},
		{"GET /templates/{id}/builds/{build}/logs", read, (*server).buildLogs},
		{"GET /templates/{id}/{part}", read, (*server).templatePart},
		{"POST /templates/tags", write, (*server).assignTags},
		{"DELETE /templates/tags", write, (*server).removeTags},
	}...)
}

// archiveUpload takes the archive of a copy, by an address with a secret of its own: clients send no key there.
const archiveUpload = "PUT /templates/uploads/{code}"

func surfaceRoutes() []protocol.Route {
	var out []protocol.Route
	for _, r := range routes() {
		method, pattern, _ := strings.Cut(r.pattern, " ")
		out = append(out, protocol.Route{Method: method, Pattern: pattern, Actions: r.needs, Large: r.pattern == volumeUpload})
	}
	method, pattern, _ := strings.Cut(archiveUpload, " ")
	return append(out, protocol.Route{Method: method, Pattern: pattern, Access: protocol.ByCode, Large: true})
}

// control returns the handler of the control plane.
func (s *server) control() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.pattern, s.serve(r))
	}
	mux.HandleFunc(archiveUpload, s.takeArchive)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, notServed(r))
	})
	return mux
}

// instead says what to do without what cove does not have, by the first word of its path.
var instead = map[string]string{
	"secrets": "cove has no secrets for E2B's clients: what a session sends gets credentials by cove's own API (credentials of its network)",
}

func notServed(r *http.Request) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if text := instead[first]; text != "" {
		return &fault{http.StatusNotFound, r.Method + " " + r.URL.Path + ": " + text}
	}
	return &fault{http.StatusNotFound, "cove does not have " + r.Method + " " + r.URL.Path + " of E2B's API; docs/e2b.md says what it has"}
}

func (s *server) serve(r route) http.HandlerFunc {
	return protocol.Guard(r.needs, "set E2B_API_KEY", s.Log, func(w http.ResponseWriter, req *http.Request, who auth.Principal) error {
		return r.handle(s, &call{Request: req, w: w, who: who})
	}, refuse)
}

// read reads a JSON request, which may be left out.
func (c *call) read(into any) error {
	text, err := c.text(mostBody)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return invalid("the request is not the JSON that E2B's API takes: " + bodybudget.WhyNotJSON(err))
	}
	return nil
}

// text returns a body of most bytes at most.
func (c *call) text(most int64) ([]byte, error) {
	text, err := io.ReadAll(bodybudget.Bounded(c.w, c.Body, most))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return nil, &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is larger than %d MiB", most>>20)}
	}
	if err != nil {
		return nil, invalid("the request did not come whole")
	}
	return text, nil
}
