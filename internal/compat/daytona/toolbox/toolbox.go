// Package toolbox is what Daytona's clients say to a sandbox, as a translation onto the hub: code, commands, shells, terminals, files, Git, language servers and ports. It is all
// below {toolbox URL}/{sandbox id}/ there. Nothing of it runs in the sandbox but what a client asks to run: the host answers, and uses the session as a machine.
//
// Protocol facts are of Daytona's published clients (0.27 to 0.218) and of the specification that these are made from; files name what is not obvious here.
package toolbox

import (
	"log/slog"
	"net/http"

	"cove/internal/auth"
	"cove/internal/hub"
)

// Sandbox is what the toolbox has to know of one. The caller is in the context of the request, see auth.From.
type Sandbox struct {
	Session  hub.Session
	Language string            // "python", "typescript" or "javascript"
	Env      map[string]string // of the sandbox
	User     string            // "user"
	Home     string            // "/home/user"
	Work     string            // where relative paths begin: "/home/user"
}

// Options say what the toolbox stands on.
type Options struct {
	Hub     *hub.Hub
	Log     *slog.Logger
	Version string // that GET /version tells
	// Stopping is closed when the server begins to stop; nil: it never does.
	Stopping <-chan struct{}
}

// Toolbox answers requests for sandboxes.
type Toolbox struct {
	o Options
}

// New returns a toolbox.
func New(o Options) *Toolbox {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Toolbox{o: o}
}

// Route is one operation. Pattern is what follows a sandbox's id, as http.ServeMux has it: "/process/session/{session}".
type Route struct {
	Method, Pattern string
	Needs           []auth.Action
	Large           bool // a request's body may be a file
}

// Routes are all operations.
func Routes() []Route { return nil }

// Serve answers one request of an authenticated caller. path is what follows the sandbox's id, beginning with "/".
func (t *Toolbox) Serve(w http.ResponseWriter, r *http.Request, s Sandbox, path string) {
	http.NotFound(w, r)
}
