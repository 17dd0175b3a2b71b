package toolbox

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"cove/internal/machine/process"
)

// TestShellReader has a shell's output come in pieces of every size: what is a frame and what is output does not depend on it.
func TestShellReader(t *testing.T) {
	t.Parallel()
	const mark = "M4RK"
	text := base64.StdEncoding.EncodeToString([]byte("echo é"))
	said := "left over" + frameBegin + mark + " begin c1 " + text + "\nout\x1e" + frameBegin + "M4R" + frameBegin + mark + " done c1 3\nbehind" + frameBegin + mark + " begin c2 \nmore"
	for size := 1; size <= len(said); size++ {
		reader, got, from := shellReader{mark: mark}, "", int64(-1)
		for at := 0; at < len(said); at += size {
			part := []byte(said[at:min(at+size, len(said))])
			reader.add(process.Event{Kind: process.Stdout, At: int64(at), Data: part}, func(p piece) {
				switch p.kind {
				case pieceText:
					got += string(p.data)
				case pieceBegin:
					got += "<" + p.command + " " + string(p.data) + ">"
					if p.command == "c1" {
						from = p.at
					}
				case pieceDone:
					got += fmt.Sprintf("</%s %d>", p.command, p.status)
				}
			})
		}
		want := "left over<c1 echo é>out\x1e" + frameBegin + "M4R</c1 3>behind<c2 >more"
		if got != want || from != int64(len("left over")) {
			t.Fatalf("in pieces of %d: %q, the first command from %d on", size, got, from)
		}
	}
}

// TestHostileFrames has frames that are none, or are too long, end as what they are, and hold no memory.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	reader, begun := shellReader{mark: "M"}, 0
	tell := func(p piece) {
		if p.kind != pieceText {
			begun++
		}
	}
	reader.add(process.Event{Kind: process.Stdout, Data: []byte(frameBegin + "M nothing\n" + frameBegin + "M begin\n" + frameBegin + "M done x\n" + frameBegin + "M other a b\n")}, tell)
	for range 100 {
		reader.add(process.Event{Kind: process.Stderr, Data: []byte(frameBegin + "M " + strings.Repeat("x", mostFrame/2))}, tell)
	}
	if begun != 0 || len(reader.stream(process.Stderr).held) > 2*mostFrame {
		t.Errorf("%d frames, and %d bytes are held", begun, len(reader.stream(process.Stderr).held))
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	var l logs
	l.add(process.Stdout, []byte("a"))
	l.add(process.Stdout, []byte("b"))
	l.add(process.Stderr, []byte("c"))
	l.add(process.Stdout, []byte("d"))
	if got := l.marked.String(); got != "\x01\x01\x01ab\x02\x02\x02c\x01\x01\x01d" {
		t.Errorf("%q", got)
	}
	if l.both.String() != "abcd" || l.stdout.String() != "abd" || l.stderr.String() != "c" {
		t.Errorf("%q %q %q", l.both.String(), l.stdout.String(), l.stderr.String())
	}
}

func TestFormOfLogs(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]logForm{"": plainLogs, "x": plainLogs, "0.21.0": plainLogs, "0.27.1": markedLogs, "0.166.0": markedLogs, "0.167.0": splitLogs, "v0.226.1": splitLogs, "1.0.0": splitLogs} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Daytona-SDK-Version", version)
		if got := formOf(r); got != want {
			t.Errorf("%q has the form %d", version, got)
		}
		r = httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Sec-WebSocket-Protocol", "other, "+versionProtocol+version)
		if got := formOf(r); got != want {
			t.Errorf("%q as a subprotocol has the form %d", version, got)
		}
	}
}

func TestPorcelain(t *testing.T) {
	t.Parallel()
	hashes := "100644 100644 100644 " + strings.Repeat("a", 40) + " " + strings.Repeat("b", 40)
	text := "# branch.oid abc\x00# branch.head main\x00# branch.upstream origin/main\x00# branch.ab +2 -1\x00" +
		"1 .M N... " + hashes + " a b\nc.txt\x00" +
		"2 R. N... " + hashes + " R100 new name\x00old name\x00" +
		"u UU N... 100644 100644 100644 100644 1 2 3 both\x00? -new\x00! ignored\x00"
	got, err := parseStatus(text)
	want := gitState{Branch: "main", Ahead: 2, Behind: 1, Published: true, Upstream: "origin/main", Files: []gitFile{
		{"a b\nc.txt", "Unmodified", "Modified", ""}, {"new name", "Renamed", "Unmodified", "old name"}, {"both", "Updated but unmerged", "Updated but unmerged", ""}, {"-new", "Untracked", "Untracked", ""},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"x\x00", "1 MM\x00", "1 Z. N... " + hashes + " f\x00", "2 R. N... " + hashes + " R100 new", "# branch.ab 1\x00"} {
		if got, err := parseStatus(text); !errors.Is(err, errPorcelain) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	one := "h1\x00Ada\x00a@x\x002026-01-02T03:04:05Z\x00the first\n\nbody\n\x00\x00"
	got, err := parseLog(one + strings.ReplaceAll(one, "h1", "h2"))
	if err != nil || len(got) != 2 || got[1] != (gitLog{"h2", "Ada", "a@x", "the first\n\nbody\n", "2026-01-02T03:04:05Z"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseLog(""); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseLog("h\x00a\x00"); !errors.Is(err, errPorcelain) {
		t.Errorf("%v", err)
	}
}

// TestGitFaults has names that would be options, and what git says of what is wrong.
func TestGitFaults(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "-f", "--upload-pack=x", "a\nb", "a\x00", strings.Repeat("x", longestGitText+1)} {
		if goodName("branch", name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
	for text, want := range map[string]string{
		"fatal: Authentication failed for 'https://x'": "GIT_AUTH_FAILED", "fatal: not a git repository": "GIT_REPO_NOT_FOUND", " ! [rejected] main -> main (fetch first)": "GIT_PUSH_REJECTED",
		"fatal: a branch named 'x' already exists": "GIT_BRANCH_EXISTS", "error: pathspec 'x' did not match": "GIT_BRANCH_NOT_FOUND", "fatal: unable to access 'https://x/': Could not resolve host: x": "GIT_TRANSPORT_FAILED",
		"something": "BAD_REQUEST",
	} {
		if _, word, _ := said(gitFault(text, "")); word != want {
			t.Errorf("%q is %s", text, word)
		}
	}
}

func TestMessagesOfLanguageServers(t *testing.T) {
	t.Parallel()
	said := "noise Content-Length: 2\r\n\r\n{}Content-Length: 7\r\nContent-Type: x\r\n\r\n{\"a\":1}Content-Length: x\r\n\r\nContent-Length: 4\r\n\r\nnull"
	for size := 1; size <= len(said); size++ {
		var reader lspReader
		var got []string
		for at := 0; at < len(said); at += size {
			for _, text := range reader.add([]byte(said[at:min(at+size, len(said))])) {
				got = append(got, string(text))
			}
		}
		if fmt.Sprint(got) != `[{} {"a":1} null]` || len(reader.held) != 0 {
			t.Fatalf("in pieces of %d: %q, and %q is held", size, got, reader.held)
		}
	}
	var reader lspReader
	for range 100 {
		reader.add([]byte(strings.Repeat("Content-Length: 99999999999999999999\r\n\r\n", 100)))
		reader.add([]byte("Content-Length: 5" + strings.Repeat("x", 10_000)))
	}
	if len(reader.held) > mostFrame+20_000 {
		t.Errorf("%d bytes are held", len(reader.held))
	}
}

// TestCharts has values be texts, and ticks and points numbers, whatever the code draws: clients refuse a whole answer otherwise.
func TestCharts(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"type":"bar","title":null,"elements":[{"label":"a","group":"g","value":1.5}]}`: `{"type":"bar","title":"","png":"UE5H","elements":[{"label":"a","value":"1.5","group":"g"}]}`,
		`{"type":"line","title":"T","x_ticks":["2026-01-01T00:00:00+00:00","2026-01-02T00:00:00+00:00"],"x_scale":"datetime","elements":[{"label":"l","points":[["2026-01-01T00:00:00+00:00",2],[null,1],["x"]]}]}`: `{"type":"line","title":"T","png":"UE5H","x_ticks":[1767225600,1767312000],"x_scale":"datetime","elements":[{"label":"l","points":[[1767225600,2]]}]}`,
		`{"type":"scatter","x_ticks":["p","q"],"elements":[{"points":[["q",1],["p",2]]}]}`:                                                                                                                          `{"type":"scatter","title":"","png":"UE5H","x_ticks":[0,1],"elements":[{"points":[[1,1],[0,2]]}]}`,
		`{"type":"superchart","title":"S","elements":[{"type":"pie","elements":[{"label":"p","angle":90,"radius":1}]}]}`:                                                                                            `{"type":"composite_chart","title":"S","png":"UE5H","elements":[{"type":"pie","elements":[{"label":"p","angle":90,"radius":1}]}]}`,
		`{"type":"<script>","elements":["x"]}`: `{"type":"unknown","title":"","png":"UE5H","elements":[]}`,
		`{}`:                                   `{"type":"unknown","title":"","png":"UE5H","elements":[]}`,
		`[`:                                    `{"type":"unknown","title":"","png":"UE5H","elements":[]}`,
	} {
		got, err := json.Marshal(chartOf(json.RawMessage(given), json.RawMessage(`"UE5H"`)))
		if err != nil || string(got) != want {
			t.Errorf("%s\nis %s, %v\nnot %s", given, got, err, want)
		}
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	request := func(method, operation, path, expires, signature string) *http.Request {
		r := httptest.NewRequest(method, operation, nil)
		q := r.URL.Query()
		q.Set("path", path)
		q.Set("expires", expires)
		q.Set("signature", signature)
		r.URL.RawQuery = q.Encode()
		return r
	}
	const known = "v1_"
	good := Signature("k", http.MethodGet, "a/b", "1001")
	if !strings.HasPrefix(good, known) || len(good) != len(known)+43 {
		t.Errorf("%q", good)
	}
	if err := Signed(request(http.MethodGet, "/files/download", "a/b", "1001", good), "k", now); err != nil {
		t.Error(err)
	}
	for name, r := range map[string]*http.Request{
		"another path":   request(http.MethodGet, "/files/download", "a/c", "1001", good),
		"another method": request(http.MethodPost, "/files/upload-v2", "a/b", "1001", good),
		"a longer time":  request(http.MethodGet, "/files/download", "a/b", "2001", good),
		"expired":        request(http.MethodGet, "/files/download", "a/b", "999", Signature("k", http.MethodGet, "a/b", "999")),
		"no time":        request(http.MethodGet, "/files/download", "a/b", "", Signature("k", http.MethodGet, "a/b", "")),
	} {
		if Signed(r, "k", now) == nil {
			t.Errorf("%s is let in", name)
		}
	}
	if Signed(request(http.MethodGet, "/files/download", "a/b", "0", Signature("", http.MethodGet, "a/b", "0")), "", now) == nil {
		t.Error("a sandbox without a key lets in")
	}
}

// TestWaiting: what a project's commands take while they wait has a bound, which others do not feel.
func TestWaiting(t *testing.T) {
	t.Parallel()
	box := New(Options{})
	leave, err := box.wait("one", mostWaiting)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.wait("one", 1); err == nil {
		t.Error("there is no bound")
	}
	if _, err := box.wait("two", 1); err != nil {
		t.Error(err)
	}
	leave()
	if _, err := box.wait("one", 1); err != nil || len(box.waiting) != 2 {
		t.Errorf("%v, %v", err, box.waiting)
	}
}
