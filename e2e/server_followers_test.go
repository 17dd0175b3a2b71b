package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"cove/internal/testneeds"
)

// TestScaleFollowersThatDoNotRead has as many clients of one key as there may be follow an execution without reading. What they cost the server is bounded,
// so that the one who reads has the whole output soon.
func TestScaleFollowersThatDoNotRead(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0")
	id := s.session()
	const flood = "for i in range(100_000):\n    print(i, 'x' * 80)\n"
	crowded := s.flood(id, flood, 250)
	const times = 8 // the reader alone takes few of the ticks that the kernel counts
	var alone measured
	for range times { // afterwards: in its first seconds a server collects less garbage
		m := s.flood(id, flood, 0)
		alone.took, alone.cpu = alone.took+m.took/times, alone.cpu+m.cpu/times
	}
	t.Logf("the reader alone: %s, %s of the server's processor time; with 250 others that do not read: %s, %s", alone.took, alone.cpu, crowded.took, crowded.cpu)
	// When each of them had the server parse and write events until the kernel's buffers were full, it was 36 to 42 times, with the kernel's time.
	if crowded.cpu > 30*alone.cpu { // 6 to 13 times on a quiet machine, 21 on a busy one, whose processors share their caches
		t.Errorf("they cost %d times what the reader alone does", crowded.cpu/alone.cpu)
	}
	s.stop().ended(t, 0)
}

type measured struct {
	took time.Duration // until the reader had the end
	cpu  time.Duration // of the server meanwhile
}

// flood runs code, follows it and returns what that took, with so many others that follow and do not read.
func (s *server) flood(session, code string, stuck int) measured {
	s.t.Helper()
	spent, began := s.cpu(), time.Now()
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
	return measured{time.Since(began), s.cpu() - spent}
}

// cpu is the processor time that the server has used, without the kernel's time for it: on a busy machine the kernel takes several times as long to copy what is sent.
func (s *server) cpu() time.Duration {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks, err := strconv.Atoi(fields[11]) // utime, in hundredths of a second
	if err != nil {
		s.t.Fatal(err)
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
