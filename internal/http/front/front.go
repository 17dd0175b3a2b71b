// Package front is the server's front door: listeners, the map of all addresses, and what every request passes before a surface sees it.
//
// Routes.go is the map and chain.go the way; both are to be read from top to bottom. The package decides who calls and how much at once, never what a
// caller may do; what can be asked is said by the surfaces, none of which it knows by name.
package front

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/core/telemetry"
	"cove/internal/http/bodybudget"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// Options say what a server is made of.
type Options struct {
	Accounts Accounts
	// Surfaces are what the server offers, at least one. Of several that serve a request the one does that names the host, then the one with the longest
	// prefix. The first one refuses, too, what is no surface's.
	Surfaces []protocol.Surface
	Ready    func(context.Context) error // nil: it always is

	Telemetry *telemetry.Telemetry
	Log       *slog.Logger // nil: no log
	Version   string

	Listen  []string // HOST:PORT or unix:/PATH
	Cert    string   // files of a TLS certificate and its key; "": no TLS. They are read again when they change.
	Key     string
	Metrics string // address of a listener that serves the metrics to everybody; "": only /metrics, to admins
	Debug   string // address of a listener for pprof, which must be this machine's own; "": none

	// Hosts are names that the server is called by. Without them a request that came over the loopback interface must name this machine
	// itself, lest a page in a browser here reaches the server under a name of its own (DNS rebinding). "*" takes any name, and
	// ".example.com" those that end so.
	Hosts []string
	// Origins are the web pages, as https://app.example.com, whose scripts may call the server.
	Origins []string
	// Proxies are trusted to say in X-Forwarded-For whom they speak for, and in X-Forwarded-Proto whether by https, as those are who come through a
	// unix socket.
	Proxies    []netip.Prefix
	PublicDocs bool // the documentation and the OpenAPI document need no key
	Limits     Limits
}

// Accounts know who the text of a key or of a browser stands for. *auth.Accounts does.
type Accounts interface {
	Authenticate(ctx context.Context, text string) (auth.Principal, error)
	AuthenticateBrowser(ctx context.Context, text string) (who auth.Principal, until time.Time, err error)
}

// Server is a server that does not listen yet. It is an http.Handler by itself, as tests use it.
type Server struct {
	o        Options
	log      *slog.Logger
	handler  http.Handler
	own      routeTable
	theirs   map[*protocol.Surface]routeTable
	draining atomic.Bool

	origins  *http.CrossOriginProtection
	logins   *logins
	guesses  *rates // passwords for a name
	keys     *rates
	projects *rates
	room     *room
	memory   *bodybudget.Budget
	ready    readiness
	silent   silent
	crowd    crowd

	mu        sync.Mutex
	listeners []listener
}

// New returns a server. Problems: origin_invalid; config_invalid where a limit is not as Limits has it.
func New(o Options) (*Server, error) {
	if err := o.Limits.check(); err != nil {
		return nil, err
	}
	s := &Server{o: o, log: o.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.origins, err = protection(o.Origins); err != nil {
		return nil, err
	}
	s.logins, s.guesses = newLogins(), newRates(1/failureEvery.Seconds(), (failures+0.5)*failureEvery.Seconds())
	s.keys = newRates(o.Limits.KeyRate, o.Limits.Burst)
	s.projects = newRates(o.Limits.ProjectRate, o.Limits.Burst)
	s.room = newRoom(o.Limits)
	s.memory = bodybudget.NewBudget(o.Limits.Memory, 4*o.Limits.Wait) // decoding takes longer than most requests do
	s.own, s.theirs = tableOf(own()), map[*protocol.Surface]routeTable{}
	for i := range o.Surfaces {
		s.theirs[&s.o.Surfaces[i]] = tableOf(o.Surfaces[i].Routes)
	}
	s.handler = s.chain(s.routes())
	o.Telemetry.Gauge("cove_http_requests_in_flight", "Requests that are being served.", func() float64 { return float64(s.room.taken()) })
	o.Telemetry.Gauge("cove_http_request_memory_bytes", "Memory that requests have taken with what they sent, as estimated.",
		func() float64 { return float64(s.memory.Used()) })
	return s, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// listener is an open address and what is served there.
type listener struct {
	net.Listener
	server *http.Server
	secure bool
}
