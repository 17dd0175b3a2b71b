package daytona

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/compat/daytona/toolbox"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// Prefix begins the path of everything that is this surface's: DAYTONA_API_URL is the server's address with it.
const Prefix = "/daytona"

// Where a sandbox's toolbox is. Clients before 0.113 have it below the API, and the word twice.
const (
	toolboxPath    = Prefix + "/toolbox"
	sandboxToolbox = toolboxPath + "/{id}"
	oldToolbox     = sandboxToolbox + "/toolbox"
)

// mostBody bounds a JSON request, in bytes.
const mostBody = 1 << 20

// route is one operation of the control plane.
type route struct {
	pattern string
	needs   []auth.Action
	handle  func(*Server, *call) error
	public  bool
}

// call is one request of an authenticated caller.
type call struct {
	*http.Request
	w   http.ResponseWriter
	who auth.Principal
}

// Surfaces returns the interfaces as the server's front door takes them: the control plane with the toolbox for callers with a key, and the toolbox for those with the token of a
// sandbox or a signed address. Names serves the ports of sandboxes by their names.
func (s *Server) Surfaces() []protocol.Surface {
	shown := func(w http.ResponseWriter, r *http.Request, p *problem.Error) { refuse(w, r, p) }
	return []protocol.Surface{
		s.objects(),
		{About: "Daytona's API: DAYTONA_API_URL ends here", Prefix: Prefix + "/", Handler: s.handler(), Routes: surfaceRoutes(), Refuse: shown},
		{About: "Daytona's sandboxes, by a token", Prefix: toolboxPath + "/", Foreign: true, Cookies: true, Handler: http.HandlerFunc(s.gateway), Only: byToken, Refuse: shown},
	}
}

var (
	reads  = []auth.Action{auth.SessionsRead}
	writes = []auth.Action{auth.SessionsWrite, auth.SessionsExecute}
)

func routes() []route {
	all := []route{
		{pattern: "GET " + Prefix + "/health", handle: (*Server).health, public: true},
		{pattern: "GET " + Prefix + "/config", handle: (*Server).config, public: true},
		// Clients since 0.198 look for events here, and ask for states where there are none.
		{pattern: "GET " + Prefix + "/socket.io/", handle: (*Server).events, public: true},
		{pattern: "POST " + Prefix + "/sandbox", needs: writes, handle: (*Server).create},
		{pattern: "GET " + Prefix + "/sandbox", needs: reads, handle: (*Server).list},
		{pattern: "GET " + Prefix + "/sandbox/paginated", needs: reads, handle: (*Server).listPages},
		{pattern: "POST " + Prefix + "/volumes", needs: fileRights, handle: (*Server).createVolume},
		{pattern: "GET " + Prefix + "/volumes", needs: fileReads, handle: (*Server).listVolumes},
		{pattern: "GET " + Prefix + "/volumes/{id}", needs: fileReads, handle: (*Server).showVolume},
		{pattern: "GET " + Prefix + "/volumes/by-name/{id}", needs: fileReads, handle: (*Server).showVolume},
		{pattern: "DELETE " + Prefix + "/volumes/{id}", needs: fileRights, handle: (*Server).deleteVolume},
		{pattern: "POST " + Prefix + "/workspace", needs: writes, handle: (*Server).create},
		{pattern: "GET " + Prefix + "/workspace", needs: reads, handle: (*Server).list},
		{pattern: "POST " + Prefix + "/snapshots", needs: writes, handle: (*Server).createSnapshot},
		{pattern: "GET " + Prefix + "/snapshots", needs: reads, handle: (*Server).listSnapshots},
		{pattern: "GET " + Prefix + "/snapshots/{id}", needs: reads, handle: (*Server).showSnapshot},
		{pattern: "DELETE " + Prefix + "/snapshots/{id}", needs: writes, handle: (*Server).deleteSnapshot},
		{pattern: "POST " + Prefix + "/snapshots/{id}/activate", needs: reads, handle: (*Server).showSnapshot},
		{pattern: "GET " + Prefix + "/snapshots/{id}/build-logs-url", needs: reads, handle: (*Server).snapshotLogURL},
		{pattern: "GET " + Prefix + "/snapshots/{id}/build-logs", needs: reads, handle: (*Server).snapshotLog},
		{pattern: "GET " + Prefix + "/object-storage/push-access", needs: fileRights, handle: (*Server).pushAccess},
	}
	// Clients before 0.21 call a sandbox a workspace.
	for _, base := range []string{Prefix + "/sandbox/{id}", Prefix + "/workspace/{id}"} {
		all = append(all, ofSandbox(base)...)
	}
	return all
}

func ofSandbox(base string) []route {
	return []route{
		{pattern: "GET " + base, needs: reads, handle: (*Server).show},
		{pattern: "DELETE " + base, needs: writes, handle: (*Server).remove},
		{pattern: "POST " + base + "/start", needs: writes, handle: (*Server).start},
		{pattern: "POST " + base + "/stop", needs: writes, handle: (*Server).stop},
		{pattern: "POST " + base + "/pause", needs: writes, handle: (*Server).pause},
		{pattern: "POST " + base + "/archive", needs: writes, handle: (*Server).archive},
		{pattern: "POST " + base + "/recover", needs: writes, handle: (*Server).recover},
		{pattern: "POST " + base + "/resize", needs: writes, handle: (*Server).resize},
		{pattern: "POST " + base + "/autostop/{minutes}", needs: writes, handle: (*Server).setAutoStop},
		{pattern: "POST " + base + "/autopause/{minutes}", needs: writes, handle: (*Server).setAutoPause},
		{pattern: "POST " + base + "/autoarchive/{minutes}", needs: writes, handle: (*Server).setAutoArchive},
		{pattern: "POST " + base + "/autodelete/{minutes}", needs: writes, handle: (*Server).setAutoDelete},
		{pattern: "POST " + base + "/ttl/{minutes}", needs: writes, handle: (*Server).setTTL},
		{pattern: "PUT " + base + "/labels", needs: writes, handle: (*Server).setLabels},
		{pattern: "POST " + base + "/public/{public}", needs: writes, handle: (*Server).setPublic},
		{pattern: "POST " + base + "/network-settings", needs: writes, handle: (*Server).setNetwork},
		{pattern: "POST " + base + "/last-activity", needs: writes, handle: (*Server).touch},
		{pattern: "POST " + base + "/fork", needs: writes, handle: (*Server).fork},
		{pattern: "POST " + base + "/snapshot", needs: writes, handle: (*Server).snapshot},
		{pattern: "GET " + base + "/forks", needs: reads, handle: (*Server).forks},
		{pattern: "GET " + base + "/parent", needs: reads, handle: (*Server).parent},
		{pattern: "GET " + base + "/ancestors", needs: reads, handle: (*Server).ancestors},
		{pattern: "GET " + base + "/ports/{port}/preview-url", needs: tokenRights, handle: (*Server).preview},
		{pattern: "GET " + base + "/ports/{port}/signed-preview-url", needs: writes, handle: (*Server).signedPreview},
		{pattern: "POST " + base + "/ports/{port}/signed-preview-url/{token}/expire", needs: writes, handle: (*Server).expirePreview},
		{pattern: "GET " + base + "/signing-key", needs: fileRights, handle: (*Server).signingKey},
		{pattern: "POST " + base + "/signing-key/rotate", needs: slices.Concat(writes, fileRights), handle: (*Server).rotateKey},
		{pattern: "GET " + base + "/build-logs-url", needs: reads, handle: (*Server).buildLogURL},
		{pattern: "GET " + base + "/build-logs", needs: reads, handle: (*Server).buildLog},
		{pattern: "GET " + base + "/toolbox-proxy-url", needs: reads, handle: (*Server).proxyURL},
	}
}

var (
	// fileRights are what a signed address lets others do.
	fileReads  = []auth.Action{auth.FilesRead}
	fileRights = []auth.Action{auth.FilesRead, auth.FilesWrite}
	// tokenRights are what the token of a sandbox lets others do.
	tokenRights = slices.Concat(reads, writes, fileRights)
)

func surfaceRoutes() []protocol.Route {
	var out []protocol.Route
	for _, r := range routes() {
		method, pattern, _ := strings.Cut(r.pattern, " ")
		one := protocol.Route{Method: method, Pattern: pattern, Actions: r.needs}
		if r.public {
			one.Access = protocol.Public
		}
		out = append(out, one)
	}
	for _, r := range toolbox.Routes() {
		for _, base := range []string{sandboxToolbox, oldToolbox} {
			out = append(out, protocol.Route{Method: r.Method, Pattern: base + r.Pattern, Actions: r.Needs, Large: r.Large})
		}
	}
	return out
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.pattern, s.serve(r))
	}
	for _, r := range toolbox.Routes() {
		for _, base := range []string{sandboxToolbox, oldToolbox} {
			mux.HandleFunc(r.Method+" "+base+r.Pattern, s.guard(r.Needs, s.withKey))
		}
	}
	mux.HandleFunc("/", s.nothing)
	return mux
}

func (s *Server) serve(r route) http.HandlerFunc {
	handle := func(w http.ResponseWriter, req *http.Request, who auth.Principal) error {
		return r.handle(s, &call{Request: req, w: w, who: who})
	}
	if !r.public {
		return s.guard(r.needs, handle)
	}
	return func(w http.ResponseWriter, req *http.Request) {
		if err := handle(w, req, auth.Principal{}); err != nil {
			refuse(w, req, err)
		}
	}
}

// guard is protocol.Guard whose refusal names the request.
func (s *Server) guard(needs []auth.Action, handle func(http.ResponseWriter, *http.Request, auth.Principal) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		protocol.Guard(needs, "give the client a key of this server as its API key", s.Log, handle, func(w http.ResponseWriter, err error) { refuse(w, r, err) })(w, r)
	}
}

// missing are the parts of Daytona's API that cove does not have, by the first word of their path.
var missing = map[string]string{
	"secret":         "secrets are not there; cove adds credentials to requests by its own API (credentials of a session's network)",
	"warm-pools":     "warm pools are not there; the server keeps sandboxes ready by itself (the setting pool)",
	"api-keys":       "keys are made with cove key create",
	"organizations":  "organizations are cove's projects; see cove project",
	"regions":        "there are no regions; a sandbox is on this server",
	"shared-regions": "there are no regions; a sandbox is on this server",
	"runners":        "there are no runners; a sandbox is on this server",
	"webhooks":       "webhooks are not there",
	"audit":          "the audit log is in cove's own API",
}

// nothing answers for what is no route.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	rest := strings.TrimPrefix(r.URL.Path, Prefix+"/")
	first, below, _ := strings.Cut(rest, "/")
	if why := missing[first]; why != "" {
		refuse(w, r, lacking("cove does not have /"+first+" of Daytona's API: "+why))
		return
	}
	_, last, _ := strings.Cut(below, "/")
	for word, why := range map[string]string{
		"ssh-access": "SSH into sandboxes is not there; use a terminal (process.create_pty_session)", "secrets": missing["secret"], "backup": "a backup is not needed: a sandbox that stops is saved on the server's disk",
		"snapshot": "a backup is not needed: a sandbox that stops is saved on the server's disk", "telemetry": "telemetry of one sandbox is not there; GET .../system/metrics of the toolbox says what it takes",
		"deactivate": "snapshots are always active",
	} {
		if name, _, _ := strings.Cut(last, "/"); name == word {
			refuse(w, r, lacking("cove does not have "+r.Method+" /"+first+"/{id}/"+word+" of Daytona's API: "+why))
			return
		}
	}
	refuse(w, r, &fault{http.StatusNotFound, "cove does not have " + r.Method + " " + bounded(r.URL.Path) + " of Daytona's API; docs/daytona.md says what it has"})
}

func (s *Server) events(*call) error {
	return &fault{http.StatusNotFound, "cove sends no events; clients ask for states instead"}
}

func (s *Server) health(c *call) error {
	reply(c.w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// config tells what clients look up before they use a sandbox; those since 0.148 do not.
func (s *Server) config(c *call) error {
	template := ""
	if a := s.Address(); a.Host != "" {
		template = a.Scheme + "://{{PORT}}-{{sandboxId}}." + a.Host + a.Port
	}
	reply(c.w, http.StatusOK, map[string]any{
		"version": s.Version, "oidc": map[string]string{"issuer": "", "clientId": "", "audience": "", "provider": ""}, "linkedAccountsEnabled": false, "announcements": map[string]any{},
		"proxyTemplateUrl": template, "proxyToolboxUrl": toolboxURL(c.Request), "defaultSnapshot": ownSnapshot, "dashboardUrl": origin(c.Request) + "/", "maxAutoArchiveInterval": longestArchive,
		"maintananceMode": false, "environment": "cove",
	})
	return nil
}

// origin is the server's address as the client has it.
func origin(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

func toolboxURL(r *http.Request) string { return origin(r) + toolboxPath }

// read reads a JSON request, which may be left out.
func (c *call) read(into any) error {
	text, err := io.ReadAll(bodybudget.Bounded(c.w, c.Body, mostBody))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return &fault{http.StatusRequestEntityTooLarge, "the request is larger than 1 MiB"}
	}
	if err != nil {
		return invalid("the request did not come whole")
	}
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return invalid("the request is not the JSON that Daytona's API takes: " + bodybudget.WhyNotJSON(err))
	}
	return nil
}
