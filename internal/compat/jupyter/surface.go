package jupyter

import (
	"encoding/json"
	"net/http"

	"cove/internal/auth"
	"cove/internal/problem"
	"cove/internal/status"
	"cove/internal/surface"
)

// route is one operation.
type route struct {
	method, pattern string
	needs           []auth.Action
	handle          func(*server, *call) error
	public          bool
}

// Surface returns the interface as the server's front door takes it.
func Surface(o Options) surface.Surface {
	s := newServer(o)
	return surface.Surface{
		About: "Jupyter's API for kernels, files and terminals: a client's server or gateway URL ends here", Prefix: Prefix + "/",
		Handler: s.handler(), Routes: surfaceRoutes(), Keys: s.keys,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { Refuse(w, p) },
	}
}

func surfaceRoutes() []surface.Route {
	var out []surface.Route
	for _, r := range routes() {
		one := surface.Route{Method: r.method, Pattern: r.pattern, Actions: r.needs}
		if r.public {
			one.Access = surface.Public
		}
		out = append(out, one)
	}
	return out
}

func routes() []route {
	const kernels, sessions, specs = Prefix + "/api/kernels", Prefix + "/api/sessions", Prefix + "/api/kernelspecs"
	reads, makes := []auth.Action{auth.SessionsRead}, []auth.Action{auth.SessionsRead, auth.SessionsWrite}
	runs := []auth.Action{auth.SessionsRead, auth.SessionsExecute}
	const contents, terminals = Prefix + "/api/contents", Prefix + "/api/terminals"
	looks, saves := []auth.Action{auth.SessionsRead, auth.FilesRead}, []auth.Action{auth.SessionsRead, auth.FilesRead, auth.FilesWrite}
	return []route{
		{method: "GET", pattern: Prefix + "/api", handle: (*server).version, public: true},
		{method: "GET", pattern: Prefix + "/api/{$}", handle: (*server).version, public: true},
		{method: "GET", pattern: Prefix + "/login", handle: (*server).loginPage, public: true},
		{method: "POST", pattern: Prefix + "/login", handle: (*server).login, public: true},
		{method: "GET", pattern: Prefix + "/logout", handle: (*server).logout, public: true},
		{method: "GET", pattern: Prefix + "/api/status", needs: reads, handle: (*server).status},
		{method: "GET", pattern: Prefix + "/api/me", handle: (*server).me},
		{method: "GET", pattern: specs, handle: (*server).specs},
		{method: "GET", pattern: specs + "/{name}", handle: (*server).spec},
		{method: "GET", pattern: kernels, needs: reads, handle: (*server).listKernels},
		{method: "POST", pattern: kernels, needs: makes, handle: (*server).startKernel},
		{method: "GET", pattern: kernels + "/{id}", needs: reads, handle: (*server).getKernel},
		{method: "DELETE", pattern: kernels + "/{id}", needs: makes, handle: (*server).deleteKernel},
		{method: "POST", pattern: kernels + "/{id}/interrupt", needs: runs, handle: (*server).interruptKernel},
		{method: "POST", pattern: kernels + "/{id}/restart", needs: runs, handle: (*server).restartKernel},
		{method: "GET", pattern: kernels + "/{id}/channels", needs: runs, handle: (*server).connect}, // a WebSocket
		{method: "GET", pattern: sessions, needs: reads, handle: (*server).listSessions},
		{method: "POST", pattern: sessions, needs: makes, handle: (*server).startSession},
		{method: "GET", pattern: sessions + "/{id}", needs: reads, handle: (*server).getSession},
		{method: "PATCH", pattern: sessions + "/{id}", needs: makes, handle: (*server).changeSession},
		{method: "DELETE", pattern: sessions + "/{id}", needs: makes, handle: (*server).deleteSession},
		{method: "GET", pattern: contents, needs: looks, handle: (*server).getContents},
		{method: "POST", pattern: contents, needs: saves, handle: (*server).postContents},
		{method: "GET", pattern: contents + "/{path...}", needs: looks, handle: (*server).getContents},
		{method: "POST", pattern: contents + "/{path...}", needs: saves, handle: (*server).postContents},
		{method: "PUT", pattern: contents + "/{path...}", needs: saves, handle: (*server).putContents},
		{method: "PATCH", pattern: contents + "/{path...}", needs: saves, handle: (*server).renameContents},
		{method: "DELETE", pattern: contents + "/{path...}", needs: saves, handle: (*server).deleteContents},
		{method: "GET", pattern: Prefix + "/api/nbconvert", handle: (*server).nothing},        // the formats that it converts notebooks to
		{method: "GET", pattern: Prefix + "/api/config/{section}", handle: (*server).nothing}, // what was stored of a section
		{method: "GET", pattern: Prefix + "/api/resolvePath", needs: looks, handle: (*server).resolvePath},
		{method: "GET", pattern: Prefix + "/files/{path...}", needs: looks, handle: (*server).download},
		{method: "GET", pattern: terminals, needs: reads, handle: (*server).listTerminals},
		{method: "POST", pattern: terminals, needs: runs, handle: (*server).startTerminal},
		{method: "GET", pattern: terminals + "/{name}", needs: reads, handle: (*server).getTerminal},
		{method: "DELETE", pattern: terminals + "/{name}", needs: runs, handle: (*server).deleteTerminal},
		{method: "GET", pattern: Prefix + "/terminals/websocket/{name}", needs: runs, handle: (*server).connectTerminal}, // a WebSocket
	}
}

// Refuse writes a problem as a Jupyter server does.
func Refuse(w http.ResponseWriter, err error) {
	p, _ := problem.Public(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(p))
	_ = json.NewEncoder(w).Encode(map[string]string{"message": sentence(p), "reason": p.Code})
}

// statusOf is the status that says what p says, where a Jupyter server has another one than cove's own API.
func statusOf(p *problem.Error) int {
	switch at := status.Of(p); {
	case problem.Has(p, problem.KernelSpecUnknown):
		return http.StatusNotImplemented
	case at == http.StatusUnprocessableEntity:
		return http.StatusBadRequest
	default:
		return at
	}
}

// sentence is a problem's message with what to do about it.
func sentence(p *problem.Error) string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "; " + p.Hint
}
