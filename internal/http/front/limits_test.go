package front_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/http/front"
)

func TestRates(t *testing.T) {
	t.Parallel()
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.KeyRate, l.ProjectRate, l.Burst = .001, .001, 10_000 })}, nil) // 10 at once, each
	first := g.ask(t, "GET", "/v1/things/1", anns)
	if h := first.Header(); h.Get("RateLimit-Limit") != "10" || h.Get("RateLimit-Remaining") != "9" || h.Get("RateLimit-Reset") == "" {
		t.Errorf("the headers are %v", h)
	}
	for range 6 {
		want(t, "within the rate", g.ask(t, "GET", "/v1/things/1", anns), 200)
	}
	for range 3 {
		want(t, "another key of the project", g.ask(t, "GET", "/v1/things/1", bobs), 200)
	}
	for path, code := range map[string]string{"/v1/things/1": "rate_limit_exceeded", "/api/v1/things/1": "rate_limited"} {
		w := g.ask(t, "GET", path, bobs)
		want(t, "the project's rate", w, 429)
		if wait, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || wait < 1 || wait > 1000 || codeOf(t, w) != code {
			t.Errorf("it says %v: %s", w.Header(), w.Body)
		}
		if w.Header().Get("RateLimit-Remaining") != "0" {
			t.Errorf("the headers are %v", w.Header())
		}
	}
	want(t, "another project", g.ask(t, "GET", "/v1/things/1", eves), 200)
	want(t, "health", g.ask(t, "GET", "/health", ""), 200)

	free := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.KeyRate, l.ProjectRate = 0, 0 })}, nil)
	for range 500 {
		want(t, "without a limit", free.ask(t, "GET", "/v1/things/1", anns), 200)
	}
}

// TestOverload: where more is asked than can be served, everybody gets an answer, the key and the project that take all the room first.
func TestOverload(t *testing.T) {
	t.Parallel()
	entered, let := make(chan struct{}, 100), make(chan struct{})
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) {
		l.InFlight, l.ProjectInFlight, l.KeyInFlight, l.Wait, l.KeyRate, l.ProjectRate = 4, 3, 2, 20*time.Millisecond, 0, 0
	})},
		map[string]http.HandlerFunc{"GET /v1/hold": func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-let
		}})
	var held sync.WaitGroup
	hold := func(key string) {
		held.Go(func() { want(t, "one that was let in", g.ask(t, "GET", "/v1/hold", key), 200) })
		<-entered
	}
	for range 2 {
		hold(anns)
	}
	want(t, "a third of the key", g.ask(t, "GET", "/v1/things/1", anns), 429)
	hold(bobs) // whose project has room all the same
	full := g.ask(t, "GET", "/v1/things/1", bobs)
	want(t, "a fourth of the project", full, 429)
	if full.Header().Get("Retry-After") == "" {
		t.Error("it does not say when to come again")
	}
	hold(eves)
	var crowd sync.WaitGroup
	for range 20 {
		crowd.Go(func() {
			w := g.ask(t, "GET", "/v1/things/1", eves)
			if w.Code != 503 && w.Code != 429 || w.Header().Get("Retry-After") == "" {
				t.Errorf("with a full house a request is a %d: %v", w.Code, w.Header())
			}
		})
	}
	crowd.Wait()
	want(t, "health with a full house", g.ask(t, "GET", "/health", ""), 200)
	close(let)
	held.Wait()
	want(t, "when all have left", g.ask(t, "GET", "/v1/things/1", anns), 200)
	if !strings.Contains(metrics(t, g), "cove_http_requests_in_flight 1\n") {
		t.Error("places were not given back")
	}
}

func TestWaitingEndsWhenTheClientGoes(t *testing.T) {
	t.Parallel()
	entered, let := make(chan struct{}), make(chan struct{})
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.InFlight, l.ProjectInFlight, l.KeyInFlight, l.Wait = 1, 9, 9, time.Hour })},
		map[string]http.HandlerFunc{"GET /v1/hold": func(http.ResponseWriter, *http.Request) { close(entered); <-let }})
	var held sync.WaitGroup
	held.Go(func() { g.ask(t, "GET", "/v1/hold", anns) })
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/things/1", nil)
	r.Header.Set("X-Api-Key", eves)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	want(t, "who went away", w, 499)
	close(let)
	held.Wait()
}

func TestBodies(t *testing.T) {
	t.Parallel()
	limits := limited(func(l *front.Limits) { l.Body, l.Upload = 100<<10, 300<<10 })
	long, longer := strings.Repeat("x", 200<<10), strings.Repeat("x", 400<<10)
	g := newRig(t, front.Options{Limits: limits}, nil)
	want(t, "a short body", g.send(t, "POST", "/v1/things", anns, "abc"), 200)
	want(t, "a middling body", g.send(t, "POST", "/v1/things", anns, long[:90<<10]), 200)
	w := g.send(t, "POST", "/v1/things", anns, long)
	want(t, "a long body", w, 413)
	if codeOf(t, w) != "request_too_large" {
		t.Errorf("it says %s", w.Body)
	}
	want(t, "a long file", g.send(t, "PUT", "/api/v1/files/a", anns, long), 200)
	w = g.send(t, "PUT", "/api/v1/files/a", anns, longer)
	want(t, "a longer file", w, 413)
	if codeOf(t, w) != "file_too_large" { // as the surfaces say of one that is a little too large
		t.Errorf("it says %s", w.Body)
	}
	// A body that does not say its length is cut.
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/things", io.MultiReader(strings.NewReader(long)))
	r.ContentLength = -1
	r.Header.Set("X-Api-Key", anns)
	rec := httptest.NewRecorder()
	g.ServeHTTP(rec, r)
	want(t, "a long body without a length", rec, 413)
}

// dial sends text as it is and returns the connection.
func dial(t *testing.T, g *rig, text string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, text)
	must(t, err)
	return c
}

const head = " HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: " + anns + "\r\n"

// TestSlowBodies: who stops sending, and who sends next to nothing for ever, gets an answer or an end. Without the limits these would wait for ever.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head string
		key  string
		drip bool
		want string
	}{
		"a short body that stops":   {"POST /v1/things" + head + "Content-Length: 100\r\n\r\nabc", "", false, "HTTP/1.1 408"},
		"a long body that stops":    {"POST /v1/things" + head + "Content-Length: 1000000\r\n\r\nabc", "", false, "HTTP/1.1 413"}, // as the test's handler says it
		"a chunked body that stops": {"POST /v1/things" + head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "", false, "HTTP/1.1 413"},
		"a body that drips":         {"POST /v1/things" + head + "Content-Length: 1000000\r\n\r\n", "", true, "HTTP/1.1 413"},
		"a short body that drips":   {"POST /v1/things" + head + "Content-Length: 60000\r\n\r\n", "", true, "HTTP/1.1 408"},
		"a refused one that stops":  {"POST /v1/things HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc", "", false, "HTTP/1.1 401"},
		"an unknown one that drips": {"POST /nothing" + head + "Content-Length: 1000000\r\n\r\n", "", true, "HTTP/1.1 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.Stall, l.Speed = time.Second, 100_000 })}, nil).listen(t)
			conn := dial(t, g, c.head)
			stop := make(chan struct{})
			var dripping sync.WaitGroup
			if c.drip {
				dripping.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(10 * time.Millisecond):
							if _, err := io.WriteString(conn, "x"); err != nil {
								return
							}
						}
					}
				})
			}
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // a hang is a failure
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, c.want) {
				t.Errorf("the answer is %q (%v)", line, err)
			}
			close(stop)
			dripping.Wait()
		})
	}
}

// TestPatienceWithTheServer: neither deadline ends a request whose handler takes its time.
func TestPatienceWithTheServer(t *testing.T) {
	t.Parallel()
	const stall = 50 * time.Millisecond
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.Stall = stall })}, map[string]http.HandlerFunc{
		"POST /v1/long": func(w http.ResponseWriter, r *http.Request) {
			for i := range 3 {
				_, _ = fmt.Fprintf(w, "data: %d\n", i)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(3 * stall): // longer than the limit is the point of the test
				case <-r.Context().Done():
					return
				}
			}
			_, _ = io.WriteString(w, "done")
		},
	}).listen(t)
	for range 2 { // the second on the same connection
		for _, body := range []io.Reader{strings.NewReader("{}"), nil, bytes.NewReader(make([]byte, 10))} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", g.url+"/v1/long", body)
			must(t, err)
			r.Header.Set("X-Api-Key", anns)
			answer, err := http.DefaultClient.Do(r)
			must(t, err)
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || string(text) != "data: 0\ndata: 1\ndata: 2\ndone" {
				t.Errorf("the answer is %q (%v)", text, err)
			}
		}
	}
}

// TestSlowClientsThatDoNotRead do not hold a handler for ever.
func TestSlowClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) { l.Stall = 100 * time.Millisecond })}, map[string]http.HandlerFunc{
		"GET /v1/much": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					ended <- err
					return
				}
			}
		},
	}).listen(t)
	dial(t, g, "GET /v1/much"+head+"\r\n")
	select {
	case err := <-ended:
		var slow net.Error
		if !errors.As(err, &slow) || !slow.Timeout() {
			t.Errorf("the handler ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the handler still writes")
	}
}

// TestLittleWaitsForClientsThatDoNotRead has a client follow and not read, with next to no room on its own side: little more is made for it than the kernel may hold unsent. Otherwise many such
// clients of one stream would have the server do many times the work of one that reads.
func TestLittleWaitsForClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	made := make(chan int, 1)
	g := newRig(t, local(front.Options{Limits: limited(func(l *front.Limits) { l.Stall = 300 * time.Millisecond })}), map[string]http.HandlerFunc{
		"GET /v1/much": func(w http.ResponseWriter, _ *http.Request) {
			for total := 0; ; total += 8 << 10 {
				if _, err := w.Write(make([]byte, 8<<10)); err != nil {
					made <- total
					return
				}
			}
		},
	})
	address, stop := serve(t, g)
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		return errors.Join(c.Control(func(fd uintptr) { failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10) }), failure)
	}}
	c, err := narrow.DialContext(t.Context(), "tcp", address)
	must(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "GET /v1/much"+head+"\r\n")
	must(t, err)
	if n := <-made; n > 512<<10 {
		t.Errorf("%d bytes were made for a client that reads nothing", n)
	}
	must(t, stop())
}
