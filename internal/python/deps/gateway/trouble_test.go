package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/pyindex"
)

// hang answers nothing until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// stall sends some bytes of an answer and then nothing.
func stall(kind, begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", "100000")
		fmt.Fprint(w, begin)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// truncate promises more than it sends, and hangs up.
func truncate(kind, body string, promised int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", fmt.Sprint(promised))
		fmt.Fprint(w, body)
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// bomb sends much that was packed into little.
func bomb(kind, begin, filler string) http.HandlerFunc {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	_, _ = io.WriteString(z, begin)
	chunk := strings.Repeat(filler, 1<<20/len(filler))
	for range 70 {
		_, _ = io.WriteString(z, chunk)
	}
	_ = z.Close()
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

func TestTroubleWithPages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		route http.HandlerFunc
		code  string
		tries int
	}{
		{"no answer", hang, "index_timeout", 1},
		{"stalled", stall("text/html", "<html>"), "index_timeout", 1},
		{"truncated", truncate("text/html", "<html><a href=x>", 1000), "index_unreachable", 2},
		{"500", status(500), "index_unreachable", 2},
		{"503", status(503), "index_unreachable", 2},
		{"429", status(429), "index_unreachable", 2},
		{"401", status(401), "index_denied", 1},
		{"403", status(403), "index_denied", 1},
		{"407", status(407), "index_denied", 1},
		{"404", status(404), "package_unknown", 1},
		{"410", status(410), "package_unknown", 1},
		{"418", status(418), "index_malformed", 1},
		{"304 for nothing", status(304), "index_malformed", 1},
		{"redirect to itself", redirect("/simple/demo/"), "index_malformed", 6},
		{"redirect to a file", redirect("file:///etc/passwd"), "index_malformed", 1},
		{"redirect to another scheme", redirect("gopher://127.0.0.1/"), "index_malformed", 1},
		{"redirect to no URL", redirect("http://[::1"), "index_malformed", 1},
		{"redirect to an address of clouds", redirect("http://169.254.169.254/latest/meta-data/"), "index_malformed", 1},
		{"plain text", text("text/plain", "demo"), "index_malformed", 1},
		{"an image", text("image/png", "\x89PNG"), "index_malformed", 1},
		{"binary as HTML", text("text/html", "\x00\x01\x02 no tags at all"), "index_malformed", 1},
		{"a login page", text("text/html", `<html><body><a href="/login">log in</a><form action="/login"></form></body></html>`), "index_malformed", 1},
		{"HTML of tomorrow", text("text/html", `<meta name="pypi:repository-version" content="2.0">`), "index_malformed", 1},
		{"HTML with an endless tag", text("text/html", "<a href="+strings.Repeat("x", 2<<20)), "index_malformed", 1},
		{"no JSON", text(kindJSON, "{"), "index_malformed", 1},
		{"JSON of wrong types", text(kindJSON, `{"meta":{"api-version":"1.0"},"files":{"a":1}}`), "index_malformed", 1},
		{"JSON with a size that is none", text(kindJSON, `{"meta":{"api-version":"1.0"},"files":[{"filename":"demo-1.0-py3-none-any.whl","url":"x","size":"big"}]}`), "index_malformed", 1},
		{"JSON with yanked that is none", text(kindJSON, `{"meta":{"api-version":"1.0"},"files":[{"filename":"demo-1.0-py3-none-any.whl","url":"x","yanked":[1]}]}`), "index_malformed", 1},
		{"JSON of something else", text(kindJSON, `{"error":"nothing"}`), "index_malformed", 1},
		{"JSON of tomorrow", text(kindJSON, `{"meta":{"api-version":"2.0"},"files":[]}`), "index_malformed", 1},
		{"deep JSON", text(kindJSON, `{"x":`+strings.Repeat("[", 100000)), "index_malformed", 1},
		{"a bomb of HTML", bomb("text/html", "<html>", "<p>"+strings.Repeat("x", 4000)+"</p>"), "index_malformed", 1},
		{"a bomb of JSON", bomb(kindJSON, `{"x":"`, "x"), "index_malformed", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.on("/simple/demo/", tt.route)
			o := options(t, s.source())
			o.Times = gateway.Times{Pause: time.Millisecond, Connect: time.Second, Answer: time.Second, Stall: time.Second}
			if tt.code != "index_timeout" {
				o.Times = gateway.Times{Pause: time.Millisecond}
			}
			g := open(t, o)
			_, err := g.Project(t.Context(), "demo")
			wantProblem(t, err, tt.code)
			if n := len(s.asked("/simple/demo/")); n != tt.tries {
				t.Errorf("asked %d times, want %d", n, tt.tries)
			}
			if f := g.Failures()["demo"]; problem.Of(f).Code != tt.code {
				t.Errorf("the failure that is told is %v", f)
			}
			// None of this stays.
			if strings.HasPrefix(tt.code, "index_") {
				s.page("demo", kindJSON, inJSON(t, file(wheel1, "one")))
				if _, err := g.Project(t.Context(), "demo"); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			}
		})
	}
}

func TestAnIndexThatIsNotThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	for _, host := range []string{address, "no-such-host.invalid"} {
		_, err := open(t, options(t, pyindex.Source{Name: "gone", URL: "http://" + host + "/simple"})).Project(t.Context(), "demo")
		wantProblem(t, err, "index_unreachable")
	}
	// To find out that it is not there is not repeated for each project, but after some time.
	tries, now := 0, noon
	o := options(t, pyindex.Source{Name: "gone", URL: "http://" + address + "/simple"})
	o.Now = func() time.Time { return now }
	o.Access.Proxy = func(*http.Request) (*url.URL, error) {
		tries++
		return nil, nil
	}
	g := open(t, o)
	var counts []int
	for i := range 3 {
		if i == 2 {
			now = now.Add(time.Minute)
		}
		_, err = g.Project(t.Context(), fmt.Sprint("demo", i))
		wantProblem(t, err, "index_unreachable")
		counts = append(counts, tries)
	}
	if counts[0] == 0 || counts[1] != counts[0] || counts[2] != 2*counts[0] {
		t.Errorf("after each question there were %v tries", counts)
	}
	for _, bad := range []string{"ftp://x/simple", "/simple", "http:///x", "http://[::1"} {
		_, err := gateway.New(options(t, pyindex.Source{Name: "bad", URL: bad}))
		wantProblem(t, err, "index_settings_invalid")
	}
	_, err = open(t, options(t)).Project(t.Context(), "demo")
	wantProblem(t, err, "package_unknown")
}

func TestGivingUp(t *testing.T) {
	t.Parallel()
	s := serve(t)
	arrived := make(chan struct{}, 2)
	s.on("/simple/demo/", func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		hang(w, r)
	})
	o := options(t, s.source())
	o.Times.Page = time.Second // the asking itself goes on for others
	g := open(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := g.Project(ctx, "demo")
	wantProblem(t, err, "canceled")
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = g.Project(ctx, "demo")
	wantProblem(t, err, "index_timeout")
}

func TestOneMoreTry(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var late atomic.Bool
	good := text(kindJSON, inJSON(t, file(wheel1, "one")))
	s.on("/simple/demo/", func(w http.ResponseWriter, r *http.Request) {
		if late.CompareAndSwap(false, true) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		good(w, r)
	})
	if _, err := open(t, options(t, s.source())).Project(t.Context(), "demo"); err != nil {
		t.Error(err)
	}
}

func TestTroubleWithFiles(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	unsized := func(l listed) listed { return l.with("size", 0) }
	asIs := func(l listed) listed { return l }
	tests := []struct {
		name  string
		list  func(listed) listed
		route http.HandlerFunc
		code  string
	}{
		{"no answer", asIs, hang, "index_timeout"},
		{"stalled", asIs, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			fmt.Fprint(w, content[:5000])
			w.(http.Flusher).Flush()
			hang(w, r)
		}, "index_timeout"},
		{"truncated each time", asIs, truncate("", content[:5000], len(content)), "index_unreachable"},
		{"another file of that size", asIs, text("", strings.Repeat("x", len(content))), "package_hash_mismatch"},
		{"another file of any size", unsized, text("", "short"), "package_hash_mismatch"},
		{"shorter", asIs, text("", content[:5000]), "package_hash_mismatch"},
		{"longer, by length", asIs, text("", content+"x"), "package_hash_mismatch"},
		{"longer, in pieces", asIs, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, content)
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "more")
		}, "package_hash_mismatch"},
		{"endless", unsized, func(w http.ResponseWriter, _ *http.Request) {
			for range 400 {
				if _, err := io.WriteString(w, content[:100_000]); err != nil {
					return
				}
			}
		}, "package_too_big"},
		{"too big, by its length", unsized, truncate("", "", 1<<30), "package_too_big"},
		{"gone", asIs, status(404), "file_unknown"},
		{"denied", asIs, status(403), "index_denied"},
		{"500", asIs, status(500), "index_unreachable"},
		{"redirect to a file", asIs, redirect("file:///etc/passwd"), "index_malformed"},
		{"redirect to an address of clouds", asIs, redirect("http://[fe80::1]/"), "index_malformed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.page("demo", kindJSON, inJSON(t, tt.list(file(wheel1, content))))
			s.on("/files/"+wheel1, tt.route)
			o := options(t, s.source())
			o.Rules.MaxFile = 10 << 20
			if tt.code == "index_timeout" {
				o.Times = gateway.Times{Connect: time.Second, Answer: time.Second, Stall: time.Second}
			}
			err := open(t, o).Fetch(t.Context(), "demo", wheel1, sum(content), io.Discard, nil)
			wantProblem(t, err, tt.code)
		})
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	ranges := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", noon, strings.NewReader(content))
	}
	breaking := func(then http.HandlerFunc) http.HandlerFunc {
		var late atomic.Bool
		return func(w http.ResponseWriter, r *http.Request) {
			if late.CompareAndSwap(false, true) {
				truncate("", content[:400_000], len(content))(w, r)
				return
			}
			then(w, r)
		}
	}
	tests := []struct {
		name  string
		size  int
		route http.HandlerFunc
	}{
		{"whole", len(content), ranges},
		{"of unknown size", 0, ranges},
		{"broken, with ranges", len(content), breaking(ranges)},
		{"broken, without ranges", 0, breaking(text("", content))},
		{"redirected", len(content), redirect("/elsewhere")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.page("demo", kindJSON, inJSON(t, file(wheel1, content).with("size", tt.size)))
			s.on("/files/"+wheel1, tt.route)
			s.on("/elsewhere", ranges)
			var got strings.Builder
			var last, total int64
			err := open(t, options(t, s.source())).Fetch(t.Context(), "demo", wheel1, strings.ToUpper(sum(content)), &got, func(received, of int64) {
				if received <= last || of < received {
					t.Errorf("told %d of %d after %d", received, of, last)
				}
				last, total = received, of
			})
			if err != nil || got.String() != content || last != int64(len(content)) || total != last {
				t.Errorf("got %d bytes, told %d of %d: %v", got.Len(), last, total, err)
			}
		})
	}
}

func TestFetchObeysTheRules(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "one"), file(wheel2, "two").with("upload-time", "2026-06-01T11:00:00Z")))
	s.on("/files/"+wheel1, text("", "one"))
	o := options(t, s.source())
	o.Rules = gateway.Rules{MinAge: time.Hour * 2}
	g := open(t, o)
	wantProblem(t, g.Fetch(t.Context(), "demo", wheel2, sum("two"), io.Discard, nil), "file_withheld")
	wantProblem(t, g.Fetch(t.Context(), "demo", wheel1, sum("two"), io.Discard, nil), "file_unknown")
	wantProblem(t, g.Fetch(t.Context(), "demo", "../"+wheel1, sum("one"), io.Discard, nil), "file_unknown")
	broken := fmt.Errorf("disk full")
	if err := g.Fetch(t.Context(), "demo", wheel1, sum("one"), failing{broken}, nil); !errors.Is(err, broken) || problem.Of(err).Code != "internal" {
		t.Errorf("the receiver's error came as %v", err)
	}
	if n := len(s.asked("/files/" + wheel2)); n != 0 {
		t.Error("a withheld file was asked for")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
