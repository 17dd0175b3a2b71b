package api_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func TestBodiesAreChecked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path, body, kind string
		status           int
		code, want       string
	}{
		"curl's type":        {create, `{"code":"1"}`, "application/x-www-form-urlencoded", 200, "", ""},
		"no type":            {create, `{"code":"1"}`, "", 200, "", ""},
		"utf-8":              {create, `{"code":"1"}`, "application/json; charset=utf-8", 200, "", ""},
		"a form":             {create, `code=1`, "application/x-www-form-urlencoded", 400, "invalid_body", ""},
		"xml":                {create, `<code/>`, "application/xml", 415, "unsupported_media_type", "application/xml"},
		"no JSON":            {create, `{"code":`, "", 400, "invalid_body", ""},
		"nothing":            {create, ``, "", 400, "invalid_body", "body"},
		"a list":             {create, `[]`, "", 422, "invalid_request", "body"},
		"field missing":      {create, `{}`, "", 422, "invalid_request", `"message":"expected required property code to be present"`},
		"field unknown":      {create, `{"code":"1","kernal":"x"}`, "", 422, "invalid_request", `"field":"body.kernal"`},
		"wrong type":         {create, `{"code":7}`, "", 422, "invalid_request", `"field":"body.code"`},
		"empty":              {create, `{"code":""}`, "", 422, "invalid_request", `"field":"body.code"`},
		"negative":           {create, `{"code":"1","timeout_seconds":-1}`, "", 422, "invalid_request", `"field":"body.timeout_seconds"`},
		"value is not shown": {api.Prefix + "/keys", `{"name":"n","scopes":"hunter2"}`, "", 422, "invalid_request", `"field":"body.scopes"`},
		"too large":          {create, `{"code":"` + strings.Repeat("x", 4<<20) + `"}`, "", 413, "body_too_large", "4 MiB"},
		"unknown parameter":  {create + "?wiat=true", `{"code":"1"}`, "", 422, "invalid_request", `"field":"query.wiat"`},
		"another spelling":   {create, `{"code":"1","TIMEOUT_SECONDS":-5,"timeout_seconds":1}`, "", 422, "invalid_request", `"field":"body.TIMEOUT_SECONDS"`},
		"folded letters":     {create, `{"code":"1","\u212Aernel":"x"}`, "", 422, "invalid_request", "unexpected property"},
		"number too large":   {api.Prefix + "/sessions", `{"memory_bytes":98765432109876543210}`, "", 422, "invalid_request", `"field":"body.memory_bytes"`},
		"number not finite":  {create, `{"code":"1","timeout_seconds":98765e999}`, "", 400, "invalid_body", `"field":"body"`},
		"deep":               {create, strings.Repeat("[", 100_000), "", 413, "request_too_complex", "100 deep"},
		"many values":        {create, `{"code":"1","x":[0` + strings.Repeat(",0", 200_000) + `]}`, "", 413, "request_too_complex", "200000"},
		"twice":              {create, `{"code":"1"}{"code":"2"}`, "", 400, "invalid_body", ""},
		"nothing to ask":     {api.Prefix + "/turns", `{}`, "", 422, "invalid_request", "nothing to ask"},
		"bad image":          {api.Prefix + "/turns", `{"images":[{"mime":"text/html","data":""}]}`, "", 422, "invalid_request", `"field":"body.images[0].mime"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			var headers []string
			if test.kind != "" {
				headers = append(headers, "Content-Type: "+test.kind)
			}
			got := w.do(t, "POST", test.path, test.body, headers...)
			if got.status != test.status || !strings.Contains(got.body, test.want) {
				t.Errorf("%d %s", got.status, got.body)
			}
			if test.code != "" {
				wantProblem(t, got, test.status, test.code)
			}
			for _, word := range []string{"hunter2", "98765", "Go ", "int64", "float64"} {
				if strings.Contains(got.body, word) {
					t.Errorf("the answer has %q: %s", word, got.body)
				}
			}
		})
	}
}

func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for path, field := range map[string]string{"/sessions?limit=101": "query.limit", "/sessions?limit=x": "query.limit", "/sessions?state=odd": "query.state", "/sessions?order=up": "query.order",
		"/search": "query.q", "/search?q=": "query.q", "/usage?from=yesterday": "query.from", "/sessions?meta=novalue": "query.meta", "/sessions?q=1": "query.q"} {
		got := w.do(t, "GET", api.Prefix+path, "")
		wantProblem(t, got, 422, "invalid_request")
		if !strings.Contains(got.body, field) {
			t.Errorf("%s: %s does not name %s", path, got.body, field)
		}
	}
	if got := w.do(t, "GET", api.Prefix+"/sessions?after=c&limit=7&order=oldest&state=paused&name=n&meta=a:b&meta=c:d:e", ""); got.status != 200 {
		t.Error(got.body)
	}
	last := w.hub.last()
	f, p := last[0].(hub.SessionFilter), last[1].(hub.Page)
	if p != (hub.Page{After: "c", Limit: 7, Oldest: true}) || f.State != hub.SessionPaused || f.Name != "n" || f.Meta["a"] != "b" || f.Meta["c"] != "d:e" {
		t.Errorf("%+v %+v", f, p)
	}
	if got := w.do(t, "GET", api.Prefix+"/sessions?conversations=true", ""); !strings.Contains(got.body, `"conversations":[{"id":"cnv_1","title":"Sales","files":[]}]`) {
		t.Error(got.body)
	}
}

// TestTurnsInTheirOrder wants the turns of a conversation the oldest first, unless a request says otherwise.
func TestTurnsInTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for query, want := range map[string]hub.Page{
		"": {Limit: 20, Oldest: true}, "?order=oldest": {Limit: 20, Oldest: true}, "?order=newest&limit=1": {Limit: 1},
	} {
		got := w.do(t, "GET", api.Prefix+"/conversations/"+conversation+"/turns"+query, "")
		if p := w.hub.last()[1].(hub.Page); got.status != 200 || p != want {
			t.Errorf("%s: %+v, %d %s", query, p, got.status, got.body)
		}
	}
}

func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	wantProblem(t, w.do(t, "GET", api.Prefix+"/nothing", ""), 404, "route_not_found")
	got := w.do(t, "PUT", api.Prefix+"/sessions", "")
	wantProblem(t, got, 405, "method_not_allowed")
	if !strings.Contains(got.header.Get("Allow"), "POST") {
		t.Errorf("Allow: %q", got.header.Get("Allow"))
	}
}

func TestProblemsHaveTheirStatus(t *testing.T) {
	t.Parallel()
	tests := map[int]error{
		400: problem.Received(problem.Invalid, "x", "x"), 401: problem.New(problem.KeyExpired, "x"), 403: problem.New(problem.Forbidden, "x"),
		404: problem.Received(problem.NotFound, "x", "x"), 409: problem.New(problem.TurnRunning, "x"), 413: problem.New(problem.FileTooLarge, "x"),
		429: problem.New(problem.QueueFull, "x"), 500: problem.Received(problem.Internal, "x", "x"), 503: problem.New(problem.Draining, "x"),
		504: problem.Received(problem.Timeout, "x", "x"), 507: problem.New(problem.WorkspaceFull, "x"),
	}
	for status, err := range tests {
		w := newWorld(t, nil)
		w.hub.fail = fmt.Errorf("do it: %w", err)
		got := w.do(t, "GET", api.Prefix+"/models", "")
		wantProblem(t, got, status, problem.Of(err).Code)
		if wait := got.header.Get("Retry-After"); (status == 429 || status == 503) && wait == "" || status == 404 && wait != "" {
			t.Errorf("%d: Retry-After %q", status, wait)
		}
	}
	w := newWorld(t, nil)
	w.hub.fail = fmt.Errorf("connect postgres://user:hunter2@db")
	got := w.do(t, "GET", api.Prefix+"/models", "")
	wantProblem(t, got, 500, "internal")
	if strings.Contains(got.body, "hunter2") {
		t.Errorf("it tells %s", got.body)
	}
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	content := bytes.Repeat([]byte("0123456789"), 2000)
	w.hub.tree["weird \"näme\".html"] = content
	path := api.Prefix + "/sessions/" + session + "/files/weird%20%22n%C3%A4me%22.html"
	whole := w.do(t, "GET", path, "")
	if whole.status != 200 || whole.body != string(content) || whole.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(whole.header.Get("Content-Security-Policy"), "sandbox") ||
		whole.header.Get("Content-Disposition") != `attachment; filename="weird _n_me_.html"; filename*=UTF-8''weird%20%22n%C3%A4me%22.html` || whole.header.Get("Content-Length") != "20000" {
		t.Errorf("%d %d bytes %v", whole.status, len(whole.body), whole.header)
	}
	tests := map[string]struct {
		method, header string
		status         int
		want           string
	}{
		"range":         {"GET", "Range: bytes=9995-10004", 206, "5678901234"},
		"from":          {"GET", "Range: bytes=19998-", 206, "89"},
		"suffix":        {"GET", "Range: bytes=-3", 206, "789"},
		"beyond":        {"GET", "Range: bytes=20000-", 416, ""},
		"has it":        {"GET", "If-None-Match: " + whole.header.Get("Etag"), 304, ""},
		"had another":   {"GET", `If-None-Match: "x"`, 200, string(content)},
		"range, same":   {"GET", "Range: bytes=0-0\x00If-Range: " + whole.header.Get("Etag"), 206, "0"},
		"range, newer":  {"GET", "Range: bytes=0-0\x00If-Range: \"x\"", 200, string(content)},
		"head":          {"HEAD", "Accept: */*", 200, ""},
		"several":       {"GET", "Range: bytes=0-1,5000-5001", 200, string(content)},
		"since":         {"GET", "If-Modified-Since: " + then.Format(http.TimeFormat), 304, ""},
		"precondition":  {"GET", `If-Match: "x"`, 412, ""},
		"broken ranges": {"GET", "Range: bytes=9-1", 416, ""},
		"last none":     {"GET", "Range: bytes=-0", 416, ""},
		"last nones":    {"GET", "Range: bytes=-000", 416, ""},
		"two thousand":  {"GET", "Range: bytes=0-0" + strings.Repeat(",2-2", 1999), 200, string(content)},
		"to far beyond": {"GET", "Range: bytes=19998-99999999999999999999", 416, ""},
		"to beyond":     {"GET", "Range: bytes=19998-9223372036854775807", 206, "89"},
		"all by suffix": {"GET", "Range: bytes=-20001", 206, string(content)},
	}
	for name, test := range tests {
		got := w.do(t, test.method, path, "", strings.Split(test.header, "\x00")...)
		if got.status != test.status || test.want != "" && got.body != test.want {
			t.Errorf("%s: %d, %d bytes", name, got.status, len(got.body))
		}
		switch test.status {
		case 416:
			wantProblem(t, got, 416, "range_invalid")
			if (name == "beyond" || name == "last none") && got.header.Get("Content-Range") != "bytes */20000" {
				t.Errorf("it does not say how large the file is: %v", got.header)
			}
		case 412:
			wantProblem(t, got, 412, "precondition_failed")
		}
		if test.status > 400 && got.header.Get("Content-Disposition") != "" {
			t.Errorf("%s: a browser would save the problem as the file", name)
		}
	}
	if got := w.do(t, "GET", api.Prefix+"/files/"+stored+"/content", "", "Range: bytes=2-4"); got.body != "234" || got.header.Get("Etag") != `"aa"` ||
		!strings.Contains(got.header.Get("Content-Disposition"), "filename*=UTF-8''Ums%C3%A4tze.csv") {
		t.Errorf("%+v", got)
	}
	w.hub.tree["denied"] = []byte("secret")
	for _, header := range []string{"Accept: */*", "Range: bytes=1-2"} {
		wantProblem(t, w.do(t, "GET", api.Prefix+"/sessions/"+session+"/files/denied", "", header), 403, "file_denied")
	}
	wantProblem(t, w.do(t, "GET", api.Prefix+"/sessions/"+session+"/files/data", ""), 400, "is_folder")
	wantProblem(t, w.do(t, "GET", api.Prefix+"/sessions/"+session+"/files/none", ""), 404, "file_not_found")
	wantProblem(t, w.do(t, "GET", api.Prefix+"/sessions/"+session+"/archive?path=a.csv", ""), 400, "not_a_folder")
	if got := w.do(t, "GET", api.Prefix+"/sessions/"+session+"/archive", ""); got.header.Get("Content-Type") != "application/gzip" || !strings.Contains(got.header.Get("Content-Disposition"), "workspace.tar.gz") {
		t.Errorf("%+v", got)
	}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *api.Options) { o.MaxFile = 1000 })
	path := api.Prefix + "/sessions/" + session + "/files/data/x.csv"
	if got := w.do(t, "PUT", path, "a,b", "Content-Type: text/csv"); got.status != 201 || string(w.hub.tree["data/x.csv"]) != "a,b" || got.header.Get("Etag") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	wantProblem(t, w.do(t, "PUT", path, strings.Repeat("x", 1001)), 413, "file_too_large")
	r, err := http.NewRequestWithContext(t.Context(), "PUT", w.url+path, io.MultiReader(strings.NewReader(strings.Repeat("x", 1001)))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 413 || string(w.hub.tree["data/x.csv"]) != "a,b" {
		t.Errorf("%d, and %q is there", answer.StatusCode, w.hub.tree["data/x.csv"])
	}
	wantProblem(t, w.do(t, "DELETE", api.Prefix+"/sessions/"+session+"/files/", ""), 422, "invalid_request")
	wantProblem(t, w.do(t, "PUT", api.Prefix+"/sessions/"+session+"/files/", "x"), 422, "invalid_request")
	wantProblem(t, w.do(t, "PUT", path, "x", "Content-Range: bytes 5-5/6"), 422, "invalid_request") // as curl -C goes on
	if string(w.hub.tree["data/x.csv"]) != "a,b" {
		t.Errorf("the end of a file takes its place: %q", w.hub.tree["data/x.csv"])
	}
	w.hub.tree["b"] = nil
	wantProblem(t, w.do(t, "POST", api.Prefix+"/sessions/"+session+"/move", `{"from":"data/x.csv","to":"b"}`), 409, "file_exists")
}

func TestStoredFilesComeAsForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var body bytes.Buffer
	f := multipart.NewWriter(&body)
	_ = f.WriteField("purpose", "data")
	_ = f.WriteField("life_seconds", "60")
	part, _ := f.CreateFormFile("file", "x.csv")
	_, _ = io.WriteString(part, "a,b")
	_ = f.Close()
	got := w.do(t, "POST", api.Prefix+"/files", body.String(), "Content-Type: "+f.FormDataContentType())
	last := w.hub.last()
	if got.status != 201 || last[0].(hub.NewFile) != (hub.NewFile{Name: "x.csv", Purpose: "data", Life: time.Minute}) || last[1] != "a,b" {
		t.Errorf("%d %s %v", got.status, got.body, last)
	}
	wantProblem(t, w.do(t, "POST", api.Prefix+"/files", "--x\r\nContent-Disposition: form-data; name=\"odd\"\r\n\r\n1\r\n--x--", "Content-Type: multipart/form-data; boundary=x"), 422, "invalid_request")
	wantProblem(t, w.do(t, "POST", api.Prefix+"/files", "--x--", "Content-Type: multipart/form-data; boundary=x"), 422, "invalid_request")
	wantProblem(t, w.do(t, "POST", api.Prefix+"/files", "garbage", "Content-Type: multipart/form-data"), 400, "invalid_body")
	wantProblem(t, w.do(t, "POST", api.Prefix+"/files", "a,b"), 422, "invalid_request")
}

// TestRefusalsAreNoted with what they were about, and with nothing else that a client says.
func TestRefusalsAreNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.who = auth.Principal{User: "usr", Project: "prj", Key: "key", Role: auth.Viewer, IP: "192.0.2.1"}
	long := strings.Repeat("x", 10_000)
	for path, target := range map[string]string{"/sessions/" + session: session, "/turns/" + turn: turn, "/files/" + stored: stored, "/sessions/" + session + "/kernels/" + long: session,
		"/sessions/" + long: "", "/sessions/ses_%00": "", "/sessions/%ff": "", "/keys/" + turn: ""} {
		w.rows.kept = nil
		wantProblem(t, w.do(t, "DELETE", api.Prefix+path, ""), 403, "forbidden")
		if len(w.rows.kept) != 1 || w.rows.kept[0].Target != target || w.rows.kept[0].Outcome != "forbidden" || w.rows.kept[0].IP != "192.0.2.1" {
			t.Errorf("%.60s: %.300v", path, w.rows.kept)
		}
	}
}

// TestTimesThatCodeSets: code can give a file any time, and the folder that has it can be looked at all the same.
func TestTimesThatCodeSets(t *testing.T) {
	t.Parallel()
	for _, modified := range []int64{math.MaxInt64, math.MinInt64, -1, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()} {
		w := newWorld(t, nil)
		w.hub.modified = time.UnixMicro(modified).UTC()
		for _, path := range []string{"/files", "/stat?path=a.csv", "/files/a.csv"} {
			if got := w.do(t, "GET", api.Prefix+"/sessions/"+session+path, ""); got.status != 200 || strings.Contains(got.body, "modified_at") || got.header.Get("Last-Modified") != "" {
				t.Errorf("%d: %s is a %d: %s", modified, path, got.status, got.body)
			}
		}
		if got := w.do(t, "PUT", api.Prefix+"/sessions/"+session+"/files/a.csv", "x"); got.status != 201 || !strings.HasSuffix(got.body, "}\n") {
			t.Errorf("%d: uploading is a %d: %q", modified, got.status, got.body)
		}
	}
}
