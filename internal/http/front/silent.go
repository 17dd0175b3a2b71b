package front

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// silence is how long connections may take to bring their first request when the server stops. By itself net/http waits 5 s for them: browsers open
// some ahead of need, and balancers to see whether there is a server.
const silence = 250 * time.Millisecond

// silent are the connections over which nothing has come yet. Its zero value is ready.
type silent struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// note is for http.Server.ConnState.
func (s *silent) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(s.conns, c)
	case s.conns == nil:
		s.conns = map[net.Conn]struct{}{c: {}}
	default:
		s.conns[c] = struct{}{}
	}
}

func (s *silent) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}
