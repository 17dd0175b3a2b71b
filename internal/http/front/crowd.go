package front

import (
	"context"
	"net/http"
	"sync"
)

// crowd are the requests that are being answered, also over connections that were upgraded: for those http.Server.Shutdown does not wait. Its zero
// value is ready.
type crowd struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed when the last one leaves, where somebody waits for that
}

// counting counts requests.
func (s *Server) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.crowd.add(1)
		defer s.crowd.add(-1)
		next.ServeHTTP(w, r)
	})
}

func (c *crowd) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// gone waits until nobody is left, and says whether that came before ctx ended.
func (c *crowd) gone(ctx context.Context) bool {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return true
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	empty := c.empty
	c.mu.Unlock()
	select {
	case <-empty:
		return true
	case <-ctx.Done():
		return false
	}
}
