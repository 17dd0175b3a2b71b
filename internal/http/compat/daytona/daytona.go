// Package daytona is Daytona's control plane as a translation onto the hub: a sandbox is a session. What clients ask of a sandbox itself (processes, files, Git) is package toolbox's,
// which this package serves below the sandbox's id.
//
// A sandbox stops, and is deleted, after times without use that its client sets. What a session's record says of that counts, together with when the hub saw the session used; clocks
// bring it about, and the hub pauses and deletes the session a little later where no clock runs.
//
// Protocol facts are of Daytona's published clients (daytona_sdk 0.20 to daytona 0.226) and of the specification that these are made from.
package daytona

import (
	"context"
	"crypto/subtle"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"cove/internal/http/compat/daytona/toolbox"
	"cove/internal/http/sandboxclock"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/builder"
	"cove/internal/server/hub"
	"cove/internal/server/ports"
)

// Sessions are what sandboxes are made of.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	Sessions(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	DeleteSession(ctx context.Context, who auth.Principal, id string) error
	ChangeSession(ctx context.Context, who auth.Principal, id string, c hub.SessionChange) (hub.Session, error)
	WidestNetwork(ctx context.Context, who auth.Principal) (*hub.Network, error)
}

// Lives are what becomes of sessions.
type Lives interface {
	PauseSession(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	ResumeSession(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	ForkSession(ctx context.Context, who auth.Principal, id string, n hub.NewSession) (hub.Session, error)
}

// Links are what tokens are made of.
type Links interface {
	AddLink(ctx context.Context, who auth.Principal, n hub.NewLink) (hub.SessionLink, string, error)
	LinkOf(ctx context.Context, code string) (hub.SessionLink, auth.Principal, error)
	Links(ctx context.Context, who auth.Principal, session string) ([]hub.SessionLink, error)
	DeleteLink(ctx context.Context, who auth.Principal, session, id string) error
	UsePort(ctx context.Context, who auth.Principal, session string, port int, use func(ctx context.Context, s guestlink.Stream) error) error
}

// Files are what archives of images are kept as.
type Files interface {
	AddFile(ctx context.Context, who auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error)
	Files(ctx context.Context, who auth.Principal, purpose string, p hub.Page) (hub.Listing[hub.File], error)
	OpenFile(ctx context.Context, who auth.Principal, id string) (hub.File, io.ReadSeekCloser, error)
	DeleteFile(ctx context.Context, who auth.Principal, id string) error
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Sessions
	Lives
	Links
	Files
	Volumes
	builder.Hub
}

// Toolbox answers what is asked of a sandbox itself. *toolbox.Toolbox is one.
type Toolbox interface {
	Serve(w http.ResponseWriter, r *http.Request, s toolbox.Sandbox, path string)
}

// Options say what the surface stands on.
type Options struct {
	Hub     Hub
	Toolbox Toolbox
	Log     *slog.Logger
	Version string               // of cove
	Secret  []byte               // the tokens and signing keys of sandboxes are made with it
	Address func() ports.Address // where ports have names; its Host is "" where they have none
	Root    bool                 // sandboxes have a root, and sudo
	Disk    int64                // bytes that a sandbox has for files
}

// Server is the surface, before it is told where it is served.
type Server struct {
	Options
	clocks sandboxclock.Clocks
	gone   farewells
	logs   buildLogs
	parts  uploads

	mu     sync.Mutex
	naming map[string]bool // names of sandboxes and snapshots that are being made, after their project
}

// New returns the surface.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, naming: map[string]bool{}}
	s.clocks.End = s.atEnd
	return s
}

// sandbox is a sandbox that a request is about, and who asks.
type sandbox struct {
	id      string // of the session
	who     auth.Principal
	record  record
	session hub.Session
}

// token lets its holder use a sandbox as a machine, and reach its ports. It is the code of a link to the session.
func (s *Server) token(session string) string { return auth.DerivedCode(s.Secret, "daytona "+session) }

// portCode is the code of the link to a port of a sandbox, where ports have no names.
func (s *Server) portCode(session, port string) string {
	return auth.DerivedCode(s.Secret, "daytona port "+session+" "+port)
}

// equal compares what somebody has sent with what is secret.
func equal(given, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 1
}
