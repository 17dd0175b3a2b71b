package front_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/front"
	"cove/internal/server/auth"
)

// TestEveryRequestOnAConnectionIsLookedAt: a key that is revoked, or asks too often, is refused on a connection that it opened before.
func TestEveryRequestOnAConnectionIsLookedAt(t *testing.T) {
	t.Parallel()
	var g *rig
	var got []string
	g = newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.KeyRate, l.Burst = 0.001, 4000 })}, map[string]http.HandlerFunc{
		"GET /v1/upgrade": func(_ http.ResponseWriter, r *http.Request) {
			for n := range 5 {
				if n == 4 {
					delete(g.people, anns)
				}
				who, err := auth.Again(r.Context())
				code := who.Key
				if err != nil {
					code = problem.Of(err).Code
				}
				got = append(got, code)
			}
		},
	})
	g.ask(t, "GET", "/v1/upgrade", anns, "Upgrade", "websocket")
	if fmt.Sprint(got) != fmt.Sprint([]string{annID, annID, annID, "rate_limited", "unauthenticated"}) {
		t.Errorf("%v", got)
	}
}

// TestStoppingWithUpgradedConnections: the server waits for them as for requests, and they are told when that takes too long.
func TestStoppingWithUpgradedConnections(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), atomic.Bool{}
	g := newRig(t, local(front.Options{Limits: limited(func(l *front.Limits) { l.Grace = 200 * time.Millisecond })}), map[string]http.HandlerFunc{
		"GET /v1/upgrade": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			close(began)
			<-r.Context().Done()
			if code := problem.Of(context.Cause(r.Context())).Code; code != "draining" {
				t.Errorf("the reason is %s", code)
			}
			ended.Store(true)
		},
	})
	address, stop := serve(t, g)
	conn, err := net.Dial("tcp", address)
	must(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "GET /v1/upgrade HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", address, anns)
	must(t, err)
	<-began
	must(t, stop())
	if !ended.Load() {
		t.Error("the server ended before the connection")
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := bufio.NewReader(conn).ReadByte(); err == nil {
		t.Error("the connection is still open")
	}
}
