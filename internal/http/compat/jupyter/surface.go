package jupyter

import (
	"encoding/json"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// route is one operation.
type route struct {
	method, pattern string
	does            string // for the description
	needs           []auth.Action
	handle          func(*server, *call) error
	public          bool
}

// Surface returns the interface as the server's front door takes it.
func Surface(o Options) protocol.Surface {
	s := newServer(o)
	return protocol.Surface{
		About: "Jupyter's API for kernels, files and terminals: a client's server or gateway URL ends here", Prefix: Prefix + "/",
		Handler: s.handler(), Routes: surfaceRoutes(), Keys: s.keys,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { Refuse(w, p) },
	}
}

func surfaceRoutes() []protocol.Route {
	var out []protocol.Route
	for _, r := range routes() {
		one := protocol.Route{Method: r.method, Pattern: r.pattern, Actions: r.needs}
		if r.public {
			one.Access = protocol.Public
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
		{method: "GET", pattern: Prefix + "/api", does: "the version of the interface", handle: (*server).version, public: true},
		{method: "GET", pattern: Prefix + "/api/{$}", does: "the version of the interface", handle: (*server).version, public: true},
		{method: "GET", pattern: Prefix + "/login", does: "a page that asks for the password, which is a key", handle: (*server).loginPage, public: true},
		{method: "POST", pattern: Prefix + "/login", does: "sign a browser in", handle: (*server).login, public: true},
		{method: "GET", pattern: Prefix + "/logout", does: "sign a browser out", handle: (*server).logout, public: true},
		{method: "GET", pattern: Prefix + "/api/spec.yaml", does: "this description", handle: (*server).description},
		{method: "POST", pattern: Prefix + "/api/security/csp-report", does: "what a browser has refused by the Content-Security-Policy", handle: (*server).refused, public: true},
		{method: "GET", pattern: Prefix + "/api/status", does: "how many kernels and connections there are, and when they were last used", needs: reads, handle: (*server).status},
		{method: "GET", pattern: Prefix + "/api/me", does: "the caller, and with permissions what the caller may do", handle: (*server).me},
		{method: "GET", pattern: specs, does: "the kinds of kernels", handle: (*server).specs},
		{method: "GET", pattern: specs + "/{name}", does: "one kind of kernel", handle: (*server).spec},
		{method: "GET", pattern: kernels, does: "the kernels", needs: reads, handle: (*server).listKernels},
		{method: "POST", pattern: kernels, does: "start a kernel", needs: makes, handle: (*server).startKernel},
		{method: "GET", pattern: kernels + "/{id}", does: "one kernel", needs: reads, handle: (*server).getKernel},
		{method: "DELETE", pattern: kernels + "/{id}", does: "end a kernel", needs: makes, handle: (*server).deleteKernel},
		{method: "POST", pattern: kernels + "/{id}/interrupt", does: "interrupt what a kernel runs", needs: runs, handle: (*server).interruptKernel},
		{method: "POST", pattern: kernels + "/{id}/restart", does: "begin a kernel anew, without its variables", needs: runs, handle: (*server).restartKernel},
		{method: "GET", pattern: kernels + "/{id}/channels", does: "a WebSocket with the channels of a kernel", needs: runs, handle: (*server).connect},
		{method: "GET", pattern: sessions, does: "the pairs of a document and its kernel", needs: reads, handle: (*server).listSessions},
		{method: "POST", pattern: sessions, does: "give a document a kernel", needs: makes, handle: (*server).startSession},
		{method: "GET", pattern: sessions + "/{id}", does: "one pair of a document and its kernel", needs: reads, handle: (*server).getSession},
		{method: "PATCH", pattern: sessions + "/{id}", does: "change the name, the path or the kernel of a pair", needs: makes, handle: (*server).changeSession},
		{method: "DELETE", pattern: sessions + "/{id}", does: "end a pair, and its kernel", needs: makes, handle: (*server).deleteSession},
		{method: "GET", pattern: contents, does: "the folder with all files", needs: looks, handle: (*server).getContents},
		{method: "POST", pattern: contents, does: "make a file, a notebook or a folder with a free name", needs: saves, handle: (*server).postContents},
		{method: "GET", pattern: contents + "/{path...}", does: "a file, a notebook or a folder; below it, its checkpoints", needs: looks, handle: (*server).getContents},
		{method: "POST", pattern: contents + "/{path...}", does: "make or copy something into a folder; below it, a checkpoint", needs: saves, handle: (*server).postContents},
		{method: "PUT", pattern: contents + "/{path...}", does: "save a file, a notebook or a folder", needs: saves, handle: (*server).putContents},
		{method: "PATCH", pattern: contents + "/{path...}", does: "move a file, a notebook or a folder", needs: saves, handle: (*server).renameContents},
		{method: "DELETE", pattern: contents + "/{path...}", does: "delete a file, a notebook, a folder or a checkpoint", needs: saves, handle: (*server).deleteContents},
		{method: "GET", pattern: Prefix + "/api/nbconvert", does: "the formats that notebooks are converted to: none", handle: (*server).nothing}, // the formats that it converts notebooks to
		{method: "GET", pattern: Prefix + "/api/config/{section}", does: "what is stored of a section of the settings: nothing", handle: (*server).nothing},
		{method: "GET", pattern: Prefix + "/api/resolvePath", does: "where a file is for a kernel", needs: looks, handle: (*server).resolvePath},
		{method: "GET", pattern: Prefix + "/files/{path...}", does: "download a file", needs: looks, handle: (*server).download},
		{method: "GET", pattern: terminals, does: "the terminals", needs: reads, handle: (*server).listTerminals},
		{method: "POST", pattern: terminals, does: "start a terminal", needs: runs, handle: (*server).startTerminal},
		{method: "GET", pattern: terminals + "/{name}", does: "one terminal", needs: reads, handle: (*server).getTerminal},
		{method: "DELETE", pattern: terminals + "/{name}", does: "end a terminal", needs: runs, handle: (*server).deleteTerminal},
		{method: "GET", pattern: Prefix + "/terminals/websocket/{name}", does: "a WebSocket with what a terminal shows and is given", needs: runs, handle: (*server).connectTerminal},
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
	switch at := httpstatus.Of(p); {
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
