package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestScaleFollowersThatDoNotRead has as many clients of one key as there may be follow an execution without reading: the one who reads has the whole output. What they cost the server is measured by
// the row followers of cove-bench.
func TestScaleFollowersThatDoNotRead(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0")
	s.flood(s.session(), "for i in range(100_000):\n    print(i, 'x' * 80)\n", 250)
	s.stop().ended(t, 0)
}

// flood runs code and follows it to its end, with so many others that follow and do not read.
func (s *server) flood(session, code string, stuck int) {
	s.t.Helper()
	var e struct{ ID string }
	s.must("POST", "/api/v1/sessions/"+session+"/executions?background=true", map[string]any{"code": code}, &e)
	response, err := s.request(s.t.Context(), "GET", "/api/v1/executions/"+e.ID+"/events", nil)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatal(response, err)
	}
	defer func() { _ = response.Body.Close() }()
	at, err := url.Parse(s.base)
	if err != nil {
		s.t.Fatal(err)
	}
	for range stuck {
		c, err := net.Dial("tcp", at.Host)
		if err != nil {
			s.t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		fmt.Fprintf(c, "GET /api/v1/executions/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", e.ID, at.Host, s.key)
	}
	all, err := events(response.Body, nil)
	if err != nil || outcome(all) != "ok" || !strings.HasSuffix(printed(all), "\n") || strings.Count(printed(all), "\n") != 100_000 {
		s.t.Fatalf("%v, %q, %d lines", err, outcome(all), strings.Count(printed(all), "\n"))
	}
}
