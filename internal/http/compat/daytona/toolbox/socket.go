package toolbox

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

const (
	socketPing = 30 * time.Second // between pings
	socketLook = 2                // pings between looks at the key
	slowest    = time.Minute      // for the answer to a ping, and for taking a message; a client that takes longer is gone
	mostPlaces = 256              // connections of a project
	longestIn  = 4 << 20          // bytes of a client's message
)

// Subprotocols that clients offer.
const (
	versionProtocol = "X-Daytona-SDK-Version~"
	envProtocol     = "X-Daytona-Pty-Envs~"
	exitProtocol    = "X-Daytona-Pty-Exit-Control"
)

// offered are the subprotocols that a client offers.
func offered(r *http.Request) []string {
	var out []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func needsUpgrade() error {
	return problem.New(problem.UpgradeNeeded, "this address is a WebSocket").WithHint("connect with a client of WebSockets")
}

// place counts a connection of a project.
func (t *Toolbox) place(project string) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places[project] >= mostPlaces {
		return nil, problem.New(problem.TooManyRequests, "the project has as many connections as it may").WithHint("end some of them")
	}
	t.places[project]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.places[project]--; t.places[project] == 0 {
			delete(t.places, project)
		}
	}, nil
}

// socket is one client's connection.
type socket struct {
	conn *websocket.Conn
	// reads is the request's context: a connection whose reading is canceled cannot be told why it ends.
	reads context.Context
}

// connected takes over the connection of a request and has use work with it. The context of use ends with the client and with its key.
func (t *Toolbox) connected(c *call, use func(ctx context.Context, s *socket) (websocket.StatusCode, string)) error {
	if !upgrades(c.Request) {
		return needsUpgrade()
	}
	leave, err := t.place(c.who.Project)
	if err != nil {
		return err
	}
	defer leave()
	offers := offered(c.Request)
	if slices.Contains(offers, exitProtocol) {
		offers = []string{exitProtocol}
	}
	// Whose page calls was looked at when the request came in, as for every other request.
	conn, err := websocket.Accept(c.w, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: offers, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(longestIn)
	auth.LeavePlace(c.Context()) // connections are bounded by place
	ctx, end := context.WithCancel(c.Context())
	defer end()
	one := &socket{conn: conn, reads: c.Context()}
	go one.watch(ctx, end, t.o.Stopping)
	code, reason := use(ctx, one)
	end()
	_ = conn.Close(code, strings.ToValidUTF8(reason[:min(len(reason), 120)], ""))
	return nil
}

// watch finds out whether the client is there and its key holds, and ends the connection when the server stops.
func (s *socket) watch(ctx context.Context, end func(), stopping <-chan struct{}) {
	every := time.NewTicker(socketPing)
	defer every.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-stopping:
			end()
			return
		case <-every.C:
		}
		waiting, cancel := context.WithTimeout(ctx, slowest)
		err := s.conn.Ping(waiting)
		cancel()
		if err == nil && n%socketLook == 0 {
			if _, err = auth.Again(ctx); err != nil && problem.Of(err).Kind != problem.Denied {
				err = nil
			}
		}
		if err != nil {
			end()
			return
		}
	}
}

// write sends a message. A client that does not take it in time is gone.
func (s *socket) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	return s.conn.Write(ctx, kind, data)
}

// listen has take get the client's messages until it leaves, and ends the context then.
func (s *socket) listen(end func(), take func(kind websocket.MessageType, data []byte) error) {
	defer end()
	for {
		kind, data, err := s.conn.Read(s.reads)
		if err != nil || take(kind, data) != nil {
			return
		}
	}
}

// sdkVersion is the version of a client, as the two numbers in front; 0, 0 where it does not say.
func sdkVersion(r *http.Request) (major, minor int) {
	version := r.Header.Get("X-Daytona-SDK-Version")
	for _, name := range offered(r) {
		if v, ok := strings.CutPrefix(name, versionProtocol); ok && version == "" {
			version = v
		}
	}
	return parseVersion(version)
}

func parseVersion(version string) (major, minor int) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 {
		return 0, 0
	}
	return digits(parts[0]), digits(parts[1])
}

func digits(s string) (n int) {
	for _, r := range s {
		if r < '0' || r > '9' || n > 1_000_000 {
			return n
		}
		n = 10*n + int(r-'0')
	}
	return n
}
