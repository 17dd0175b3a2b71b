// Package e2b is E2B's interface as a translation onto the hub: its control plane, under which a sandbox is a session, and what its clients say to the agent in a sandbox
// (processes, files) and to the code interpreter there. None of the two runs in the sandbox: the host answers for them, and uses the session as a machine.
//
// Both are served at one origin. A request for a sandbox has its id in a header, or comes to a name of its own, PORT-ID.DOMAIN; what has neither is for the control plane.
// A sandbox ends, or is paused, at a time that its client sets; the hub deletes by it, and clocks keep what it knows nothing of.
//
// Protocol facts are of E2B's repositories (specification of envd 0.6.13 and of the API, SDKs 2.45 to 2.51), which name what is not obvious here.
package e2b

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"cove/internal/http/protocol"
	"cove/internal/http/sandboxclock"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
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
	Used(ctx context.Context, who auth.Principal, id string) (hub.Used, error)
}

// Lives are what becomes of sessions.
type Lives interface {
	PauseSession(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	ResumeSession(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	RebootSession(ctx context.Context, who auth.Principal, id string) error
	ForkSession(ctx context.Context, who auth.Principal, id string, n hub.NewSession) (hub.Session, error)
}

// Stores keep the files that builds of templates copy.
type Stores interface {
	AddFile(ctx context.Context, who auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error)
	Files(ctx context.Context, who auth.Principal, purpose string, p hub.Page) (hub.Listing[hub.File], error)
	OpenFile(ctx context.Context, who auth.Principal, id string) (hub.File, io.ReadSeekCloser, error)
}

// Links are what tokens are made of.
type Links interface {
	AddLink(ctx context.Context, who auth.Principal, n hub.NewLink) (hub.SessionLink, string, error)
	LinkOf(ctx context.Context, code string) (hub.SessionLink, auth.Principal, error)
}

// Interpreters run code.
type Interpreters interface {
	StartExecution(ctx context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error)
	InterruptExecution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
	Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	StartKernel(ctx context.Context, who auth.Principal, session, name string) (hub.Kernel, error)
	RestartKernel(ctx context.Context, who auth.Principal, session, name string) (hub.Kernel, error)
	StopKernel(ctx context.Context, who auth.Principal, session, name string) error
}

// Processes run beside the interpreters.
type Processes interface {
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	Processes(ctx context.Context, who auth.Principal, session string) ([]process.Info, error)
	TellProcess(ctx context.Context, who auth.Principal, session, id string, r io.Reader, end bool) (int64, error)
	ResizeProcess(ctx context.Context, who auth.Principal, session, id string, size process.Size) error
	SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
}

// Machines have files and ports.
type Machines interface {
	UseFiles(ctx context.Context, who auth.Principal, session string, u hub.FilesUse, use func(ctx context.Context, f guestlink.Files) error) error
	WatchFiles(ctx context.Context, who auth.Principal, session, path string, all bool) (iter.Seq2[filesystem.Event, error], error)
	UsePort(ctx context.Context, who auth.Principal, session string, port int, use func(ctx context.Context, s guestlink.Stream) error) error
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Sessions
	Lives
	Links
	Interpreters
	Processes
	Machines
	Stores
	Volumes
	builder.Hub
}

// Options say what the surface stands on.
type Options struct {
	Hub     Hub
	Log     *slog.Logger
	Secret  []byte               // the tokens of sandboxes are made with it
	Address func() ports.Address // where ports have names; its Host is "" where they have none
	// Names are the ports of all sessions by their names: what is no sandbox of this surface's, or is private, goes there.
	Names *protocol.Surface
	Root  bool  // sandboxes have a root, and sudo
	Disk  int64 // bytes that a sandbox has for files
}

type server struct {
	Options
	clocks sandboxclock.Clocks
	// watchers are what clients ask for events that cannot follow a stream.
	watchers watchers
	gone     endings
	arrivals arrivals
	contexts contexts
	builds   builds
	envd     http.Handler
}

func newServer(o Options) *server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{Options: o}
	s.clocks.End = s.atEnd
	s.envd = s.agent()
	return s
}

// sandbox is a sandbox that a request is about, and who asks.
type sandbox struct {
	id      string // of the session
	who     auth.Principal
	record  record
	session hub.Session
	user    string // whose rights a request to the agent about files has
}

// domain is what clients put after "PORT-ID."; "" where ports have no names.
func (s *server) domain() string {
	a := s.Address()
	if a.Host == "" {
		return ""
	}
	return a.Host + a.Port
}

// token lets its holder use a sandbox as a machine: the agent's X-Access-Token. It is the code of a link to the session.
func (s *server) token(session string) string { return auth.DerivedCode(s.Secret, "e2b "+session) }

// trafficToken lets its holder reach the ports of a sandbox, the code interpreter's among them.
func (s *server) trafficToken(session string) string {
	return auth.DerivedCode(s.Secret, "e2b traffic "+session)
}

// sessionOf returns the id of the session behind a sandbox's. Old clients send ID-CLIENT.
func sessionOf(id string) string {
	id, _, _ = strings.Cut(id, "-")
	return "ses_" + id
}

// seconds is a number of seconds as a duration, of bounded length.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(longestLife/time.Second))) * time.Second
}
