package e2b

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"cove/internal/core/problem"
	"cove/internal/http/sandboxclock"
	"cove/internal/machine/egress"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestSignature has the vector of E2B's own tests.
func TestSignature(t *testing.T) {
	t.Parallel()
	const want = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"
	if got := signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", ""); got != want {
		t.Errorf("it is %s", got)
	}
	if signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", "1") == want {
		t.Error("the end is not signed")
	}
}

// TestSigned takes what is signed for a path, an operation, a user and a time, and nothing else.
func TestSigned(t *testing.T) {
	t.Parallel()
	s := newServer(Options{Secret: []byte("secret")})
	const session = "ses_06f1k3t3y4m0v8s2k5r7w9x1z4"
	s.clocks.Set(session, time.Now().Add(time.Hour))
	address := func(method string, q url.Values) *http.Request {
		return httptest.NewRequest(method, "/files?"+q.Encode(), nil)
	}
	good := func(expires string) url.Values {
		q := url.Values{"path": {"a b"}, "username": {"user"}, "signature": {signature("a b", "read", "user", s.token(session), expires)}}
		if expires != "" {
			q.Set("signature_expiration", expires)
		}
		return q
	}
	for _, expires := range []string{"", "99999999999"} {
		if got, err := s.bySignature(address("GET", good(expires))); got != session || err != nil {
			t.Errorf("%q: %s, %v", expires, got, err)
		}
	}
	past, other, user := good("1"), good(""), good("")
	other.Set("path", "a c")
	user.Set("username", "root")
	for name, r := range map[string]*http.Request{"expired": address("GET", past), "invalid": address("GET", other), "invalid signature": address("POST", good("")), "signature": address("GET", user)} {
		if got, err := s.bySignature(r); err == nil || !strings.Contains(err.Error(), name) || got != "" {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestLinesAreASCII(t *testing.T) {
	t.Parallel()
	text, err := line(map[string]any{"text": "é 中 😀\n\x00", "n": json.RawMessage("1.0")})
	if err != nil || strings.Count(string(text), "\n") != 1 || strings.ContainsFunc(string(text), func(r rune) bool { return r > 0x7e }) || !strings.Contains(string(text), ":1.0") {
		t.Fatalf("%s, %v", text, err)
	}
	var again struct{ Text string }
	if err := json.Unmarshal(text, &again); err != nil || again.Text != "é 中 😀\n\x00" {
		t.Errorf("%q, %v", again.Text, err)
	}
	if _, err := line(func() {}); err == nil {
		t.Error("a function is a line")
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "/home/user", "~": "/home/user", "~/a": "/home/user/a", "a/../b": "/home/user/b", "/etc/../tmp": "/tmp", "../../x": "/x", "/": "/"} {
		if got, err := absolute("user", given); got != want || err != nil {
			t.Errorf("%q is %q, %v", given, got, err)
		}
	}
	if got, _ := absolute("root", "~/x"); got != "/root/x" {
		t.Errorf("root's home is %s", got)
	}
	if _, err := absolute("user", "~other/x"); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("another's home: %v", err)
	}
	h := http.Header{}
	h.Set("Authorization", "Basic bm9ib2R5Og==") // nobody:
	if _, err := (sandbox{}).userOf(h); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("nobody: %v", err)
	}
	if user, err := (sandbox{}).userOf(http.Header{}); user != "user" || err != nil {
		t.Errorf("without: %s, %v", user, err)
	}
}

func TestListingsAreNarrowed(t *testing.T) {
	t.Parallel()
	q, _ := url.ParseQuery("metadata=a%3Db%252520c%26d%3D&state=running&limit=7&startedAfter=2026-01-02T03:04:05.000006Z&order=asc")
	w, err := wantedOf(q)
	if err != nil || w.metadata["a"] != "b c" || !slices.Equal(w.states, []string{"running"}) || w.limit != 7 || !w.oldest {
		t.Fatalf("%+v, %v", w, err)
	}
	one := listed{Metadata: map[string]string{"a": "b c", "d": "", "more": "x"}, State: "running", Started: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}
	if !w.has(one) {
		t.Error("it is not listed")
	}
	for name, change := range map[string]func(*listed){
		"other metadata": func(l *listed) { l.Metadata = map[string]string{"a": "b c"} }, "paused": func(l *listed) { l.State = "paused" }, "older": func(l *listed) { l.Started = l.Started.Add(-time.Microsecond) },
	} {
		l := one
		if change(&l); w.has(l) {
			t.Errorf("%s: it is listed", name)
		}
	}
	for _, bad := range []string{"limit=0", "limit=x", "startedAfter=now", "metadata=%2525ZZ"} {
		q, _ := url.ParseQuery(bad)
		if _, err := wantedOf(q); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestWhatCoveDoesNotHaveIsRefused(t *testing.T) {
	t.Parallel()
	s := &server{Options: Options{Hub: fakeHub{widest: []string{"example.com"}}}}
	for text, word := range map[string]string{
		`{"autoPauseMemory": false, "autoResume": {"enabled": true}}`: "autoPauseMemory", `{"iam": {"tokens": {"a": {}}}}`: "iam", `{"templateID": "mine", "volumeMounts": [{"name": "v", "path": "/v"}]}`: "volumeMounts",
		`{"network": {"maskRequestHost": "a b"}}`: "maskRequestHost", `{"network": {"rules": {"a.example": [{"transform": {"headers": {"X-A": "${e2b.identity.tokens.a}"}}}]}}}`: "rules",
		`{"network": {"denyOut": ["::/0"], "rules": {"a.example": [{"transform": {"headers": {"X-A": "1"}}}]}}}`: "rules", `{"network": {"egressProxy": {"address": "x"}}}`: "egressProxy", `{"network": 7}`: "network",
	} {
		n := newSandbox{}
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		err := n.absent()
		if err == nil {
			var asked askedNetwork
			if asked, _, err = readNetwork(n.Network); err == nil {
				_, err = s.network(t.Context(), auth.Principal{}, asked, n.Internet)
			}
		}
		if f, ok := errors.AsType[*fault](err); !ok || f.status != 400 || !strings.Contains(f.message, word) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestAddedHeaders has the headers that a client wants added known to the network, and their values to nothing else.
func TestAddedHeaders(t *testing.T) {
	t.Parallel()
	asked, kept, err := readNetwork(json.RawMessage(`{"denyOut": ["192.0.2.1"], "rules": {"A.example": [{"transform": {"headers": {"X-B": "secret", "X-A": "1"}}}, {"transform": null}]}}`))
	if err != nil || strings.Contains(string(kept), "secret") || !strings.Contains(string(kept), "X-B") || !strings.Contains(string(kept), "192.0.2.1") {
		t.Fatalf("%s, %v", kept, err)
	}
	all, err := asked.credentials()
	if want := []egress.Credential{{Host: "a.example", Header: "X-A", Value: "1"}, {Host: "a.example", Header: "X-B", Value: "secret"}}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
}

// TestArrivals has a file that a client writes known as new once.
func TestArrivals(t *testing.T) {
	t.Parallel()
	var a arrivals
	a.note("s", "/a", true)
	a.note("s", "/b", false)
	if _, ok := a.of("s", "/a"); !ok {
		t.Error("it is not new")
	}
	for _, at := range [][2]string{{"s", "/b"}, {"t", "/a"}} {
		if _, ok := a.of(at[0], at[1]); ok {
			t.Errorf("%v is new", at)
		}
	}
	a.note("s", "/a", false)
	if _, ok := a.of("s", "/a"); ok {
		t.Error("it is new after it was written again")
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                 "example.com,*.example.org",
		`{"allow_internet_access": false}`:   "",
		`{"network": {"denyOut": ["::/0"]}}`: "",
		`{"network": {"denyOut": ["0.0.0.0/0"], "allowOut": ["192.0.2.1"]}}`:                                    "192.0.2.1",
		`{"network": {"denyOut": ["192.0.2.1"]}}`:                                                               "example.com,*.example.org-192.0.2.1",
		`{"allow_internet_access": false, "network": {"allowOut": ["a.example"], "allowPublicTraffic": false}}`: "a.example closed",
	} {
		n := newSandbox{}
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		asked, _, err := readNetwork(n.Network)
		if err != nil {
			t.Fatal(err)
		}
		closed := asked.Public != nil && !*asked.Public
		out, err := (&server{Options: Options{Hub: fakeHub{widest: []string{"example.com", "*.example.org"}}}}).network(t.Context(), auth.Principal{}, asked, n.Internet)
		got := ""
		if out != nil {
			got = strings.Join(out.Allow, ",")
			if len(out.Deny) > 0 {
				got += "-" + strings.Join(out.Deny, ",")
			}
		}
		if closed {
			got += " closed"
		}
		if got != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if out, err := (&server{Options: Options{Hub: fakeHub{widest: []string{}}}}).network(t.Context(), auth.Principal{}, askedNetwork{}, nil); out != nil || err != nil {
		t.Errorf("without anything that the server allows: %v, %v", out, err)
	}
}

// fakeHub lets sessions connect to so much.
type fakeHub struct {
	Hub
	widest []string
}

func (f fakeHub) WidestNetwork(context.Context, auth.Principal) (*hub.Network, error) {
	if len(f.widest) == 0 {
		return nil, nil
	}
	return &hub.Network{Allow: f.widest}, nil
}

func TestRecords(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		r            record
		asleep, over bool
	}{
		"runs": {record{End: now.Add(time.Hour)}, false, false}, "has ended": {record{End: now.Add(-time.Second)}, false, true}, "is paused": {record{End: now.Add(-time.Second), Paused: true}, true, false},
		"pauses at its end": {record{End: now.Add(-time.Second), AutoPause: true}, true, false}, "will pause": {record{End: now.Add(time.Hour), AutoPause: true}, false, false},
	} {
		if c.r.asleep(now) != c.asleep || c.r.over(now) != c.over {
			t.Errorf("%s: %v, %v", name, c.r.asleep(now), c.r.over(now))
		}
	}
	all, err := record{Template: "base", Metadata: map[string]string{"a": strings.Repeat("x", 600)}}.entries(kindSandbox, map[string]string{"mine": "1"})
	if err != nil || all["mine"] != "1" {
		t.Fatal(all, err)
	}
	if r, ok := recordOf(hub.Session{Metadata: all}, kindSandbox); !ok || len(r.Metadata["a"]) != 600 {
		t.Errorf("%+v", r)
	}
	for _, s := range []hub.Session{{}, {Metadata: all, State: hub.SessionDeleted}, {Metadata: map[string]string{kindEntry: kindSandbox, recordEntry: "{"}}} {
		if _, ok := recordOf(s, kindSandbox); ok {
			t.Errorf("%+v is a sandbox", s)
		}
	}
	if _, err := (record{Env: map[string]string{"A": strings.Repeat("x", 64<<10)}}).entries(kindSandbox, nil); !problem.Has(err, problem.SessionInvalid) {
		t.Errorf("too large: %v", err)
	}
}

func TestEndsOfProcesses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x    process.Exit
		code int32
		text string
		bad  bool
	}{{process.Exit{}, 0, "exit status 0", false}, {process.Exit{Code: 3}, 3, "exit status 3", true}, {process.Exit{Signal: "SIGKILL"}, -1, "signal: killed", true}} {
		end := endOf(&c.x)
		if end.GetExitCode() != c.code || end.GetStatus() != c.text || (end.Error != nil) != c.bad || end.GetExited() != (c.code >= 0) {
			t.Errorf("%+v: %v", c.x, end)
		}
	}
}

// TestCutOff breaks an answer off where its sandbox ends, and not where its client leaves.
func TestCutOff(t *testing.T) {
	t.Parallel()
	var c sandboxclock.Clocks
	broken := func(end func(cancel func())) (broken bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ctx, leave := c.Enter(ctx, "s", false)
		defer leave()
		w := &cut{ResponseWriter: httptest.NewRecorder(), ctx: ctx}
		end(cancel)
		<-ctx.Done()
		_, err := w.Write([]byte("x"))
		defer func() { broken = recover() != nil && err != nil }()
		w.close()
		return false
	}
	if !broken(func(func()) { c.Stop("s", errKilled) }) {
		t.Error("an answer of a sandbox that was killed ends as if it were whole")
	}
	if broken(func(cancel func()) { cancel() }) {
		t.Error("it is broken off when its client has left")
	}
}

func TestWatchersAreBounded(t *testing.T) {
	t.Parallel()
	var all watchers
	for k := range mostWatchers {
		if err := all.add(strings.Repeat("w", k+1), &watcher{session: "s", stop: func() {}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := all.add("one more", &watcher{session: "s"}); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	if _, err := all.find("w", "another"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("of another sandbox: %v", err)
	}
	all.remove("w", "s")
	if _, err := all.find("w", "s"); err == nil {
		t.Error("it is there still")
	}
}

// lines are what a stream of events told.
func lines(t *testing.T, w *httptest.ResponseRecorder) (out []map[string]any) {
	t.Helper()
	for text := range strings.Lines(w.Body.String()) {
		var e map[string]any
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		out = append(out, e)
	}
	return out
}

// TestFrames parts output from frames however they are cut, and takes nothing for a frame that has not its word.
func TestFrames(t *testing.T) {
	t.Parallel()
	const said = "\x1eWORD ready\né\x1eother done 0\n\x1eWORD result {\"text/plain\":\"'x'\"}\nhalf\x1eWORD error {\"name\":\"E\",\"value\":\"v\"}\nend\x1e\x1eWORD done 3\nbehind"
	for size := 1; size <= len(said); size++ {
		w := httptest.NewRecorder()
		f := frameReader{mark: "WORD", tell: &told{w: w, flush: func() error { return nil }}}
		for at := 0; at < len(said); at += size {
			f.add(process.Stdout, []byte(said[at:min(len(said), at+size)]))
		}
		if f.done() {
			t.Error("it is done before both streams are")
		}
		f.add(process.Stderr, []byte("\x1eWORD done 3\n"))
		if !f.done() {
			t.Error("it is not done")
		}
		text, result, failed := "", "", ""
		for _, e := range lines(t, w) {
			switch e["type"] {
			case "stdout":
				text += e["text"].(string)
			case "result":
				result += e["text"].(string)
			case "error":
				failed += e["name"].(string)
			}
		}
		if !f.ready || text != "é\x1eother done 0\nhalfend\x1e" || result != "x" || failed != "E" {
			t.Fatalf("in pieces of %d: %q, %q, %q", size, text, result, failed)
		}
	}
}

// TestPiecesOfOutput has R's lines told whole, and the end of Java's by itself.
func TestPiecesOfOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reader frameReader
		want   []string
	}{
		"as it comes":  {frameReader{}, []string{"[1]", " 2", "\n", "more", "\n", "."}},
		"lines":        {frameReader{lines: true}, []string{"[1] 2\n", "more", "\n", "."}},
		"ends by them": {frameReader{apart: true}, []string{"[1]", " 2", "\n", "more", "\n", "."}},
	} {
		w := httptest.NewRecorder()
		f := c.reader
		f.mark, f.tell = "WORD", &told{w: w, flush: func() error { return nil }}
		for _, piece := range []string{"[1]", " 2", "\n", "more"} {
			f.add(process.Stdout, []byte(piece))
		}
		f.flush() // some seconds later
		for _, piece := range []string{"\n", ".", "\x1eWORD done 0\n"} {
			f.add(process.Stdout, []byte(piece))
		}
		var got []string
		for _, e := range lines(t, w) {
			got = append(got, e["text"].(string))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestEndings has a sandbox that is ended known as that, and one that could not be ended not.
func TestEndings(t *testing.T) {
	t.Parallel()
	var e endings
	e.set("a", true)
	e.set("b", true)
	e.set("b", false)
	if !e.has("a") || e.has("b") || e.has("c") {
		t.Errorf("%v", e.all)
	}
	for n := range mostEnded + 1 {
		e.set(fmt.Sprint(n), true)
	}
	if len(e.all) > mostEnded {
		t.Errorf("%d are kept", len(e.all))
	}
}

func TestRequestsOfWorkers(t *testing.T) {
	t.Parallel()
	value := "it's"
	r := workerRequest{Code: "echo 1", Language: bash, Before: map[string]string{"A": value}, Behind: map[string]*string{"A": &value, "B": nil}}
	code, behind, _ := strings.Cut(strings.TrimSpace(string(r.line())), " ")
	for text, want := range map[string]string{code: "export A='it'\\''s'\necho 1", behind: "export A='it'\\''s'\nunset B\n:"} {
		if got, err := base64.StdEncoding.DecodeString(text); string(got) != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	r.Language = javascript
	if text := r.line(); strings.Count(string(text), "\n") != 1 || !json.Valid(text) {
		t.Errorf("%s", text)
	}
	r.Language = rlang
	if text := string(r.line()); text != "c6563686f2031 b41=69742773 a41=69742773 a42\n" {
		t.Error(text)
	}
	for name, want := range map[string]string{"": python, "JS": javascript, "ts": typescript, "sh": bash} {
		if got, err := languageOf(name); got != want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := languageOf("cobol"); err == nil {
		t.Error("there is COBOL")
	}
}
