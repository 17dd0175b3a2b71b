package daytona

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cove/internal/http/compat/daytona/toolbox"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func TestLife(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(n int64) time.Time { return now.Add(-minutes(n)) }
	for name, c := range map[string]struct {
		r     record
		used  time.Time
		state string
		ends  time.Time
	}{
		"runs":                 {record{AutoStop: 15, AutoDelete: -1}, ago(14), started, time.Time{}},
		"unused for its time":  {record{AutoStop: 15, AutoDelete: -1}, ago(15), stopped, time.Time{}},
		"never stops":          {record{AutoDelete: 5}, ago(10_000), started, time.Time{}},
		"is paused":            {record{AutoPause: 15, AutoDelete: -1}, ago(16), paused, time.Time{}},
		"was stopped":          {record{AutoStop: 15, AutoDelete: 60, Stopped: ago(10)}, ago(2), stopped, ago(10 - 60)},
		"was paused":           {record{AutoDelete: -1, Stopped: ago(10), Paused: true}, ago(20), paused, time.Time{}},
		"was archived":         {record{AutoDelete: -1, Stopped: ago(1), Archived: true}, ago(20), archived, time.Time{}},
		"archives itself":      {record{AutoArchive: 5, AutoDelete: -1, Stopped: ago(6)}, ago(20), archived, time.Time{}},
		"archives at the most": {record{AutoDelete: -1, Stopped: ago(longestArchive)}, ago(longestArchive), archived, time.Time{}},
		"deleted when stopped": {record{AutoStop: 15, AutoDelete: 0}, ago(10), started, now.Add(minutes(5))},
		"has a TTL":            {record{AutoStop: 15, AutoDelete: 100, Dies: now.Add(minutes(7))}, now, started, now.Add(minutes(7))},
	} {
		if l := c.r.at(now, c.used); l.state != c.state || !l.ends.Equal(c.ends) || l.over(now) {
			t.Errorf("%s: %+v", name, l)
		}
	}
	l := record{AutoStop: 15, AutoDelete: 5}.at(now, now)
	if next := l.next(now); !next.Equal(now.Add(minutes(15))) {
		t.Errorf("it stops at %v", next)
	}
	if l = (record{AutoStop: 15, AutoDelete: 5}).at(now, ago(20)); !l.over(now) {
		t.Error("it lives on")
	}
	idle, until := record{AutoStop: 15, AutoDelete: 5}.hubTimes(record{AutoStop: 15, AutoDelete: 5}.at(now, now), now)
	if idle != minutes(15)+spare || until != minutes(20)+spare {
		t.Errorf("the hub pauses it after %v and deletes it after %v", idle, until)
	}
}

func TestSandboxes(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	box := x.must("POST", "/sandbox", `{"name":"box","env":{"A":"1"},"labels":{"a":"b","code-toolbox-language":"typescript"},"target":"local","autoStopInterval":5,"unknown":7}`)
	id, _ := box["id"].(string)
	for name, want := range map[string]any{
		"state": "started", "name": "box", "organizationId": "prj_1", "cpu": 1.0, "memory": 1.0, "disk": 3.0, "gpu": 0.0, "kvm": false, "autoStopInterval": 5.0, "autoDeleteInterval": -1.0,
		"toolboxProxyUrl": "http://server.test/daytona/toolbox", "target": "local", "public": false, "networkBlockAll": false, "user": "user",
	} {
		if box[name] != want {
			t.Errorf("%s is %v, want %v", name, box[name], want)
		}
	}
	for _, path := range []string{"/sandbox/" + id, "/sandbox/box", "/workspace/box"} {
		if got := x.must("GET", path, ""); got["id"] != id || got["info"] == nil {
			t.Errorf("%s: %v", path, got)
		}
	}
	if code, out, _ := x.ask("POST", "/sandbox", `{"name":"box"}`); code != http.StatusConflict || !strings.Contains(out["message"].(string), `"box"`) {
		t.Errorf("a name twice: %d %v", code, out)
	}
	for _, path := range []string{"/toolbox/box/process/execute", "/toolbox/" + id + "/toolbox/process/execute"} {
		if code, _, text := x.ask("POST", path, ""); code != http.StatusOK || text != "/process/execute typescript 1 usr" {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if got := x.must("POST", "/sandbox/box/stop?force=true", ""); got["state"] != "stopped" {
		t.Errorf("after stop: %v", got["state"])
	}
	if code, out, _ := x.ask("POST", "/toolbox/box/process/execute", ""); code != http.StatusBadRequest || !strings.Contains(out["message"].(string), "stopped") {
		t.Errorf("a command in a sandbox that is stopped: %d %v", code, out)
	}
	for _, path := range []string{"/archive archived", "/start started", "/pause paused", "/start started"} {
		verb, want, _ := strings.Cut(path, " ")
		if got := x.must("POST", "/sandbox/box"+verb, ""); got["state"] != want {
			t.Errorf("after %s: %v", verb, got["state"])
		}
	}
	if code, _, _ := x.ask("POST", "/sandbox/box/archive", ""); code != http.StatusBadRequest {
		t.Errorf("a sandbox that runs is archived: %d", code)
	}
	if code, _, text := x.ask("POST", "/sandbox/box/last-activity", "{}"); code != http.StatusCreated || text != "" {
		t.Errorf("last activity: %d %s", code, text)
	}
	if got := x.must("PUT", "/sandbox/box/labels", `{"labels":{"c":"d"}}`); fmt.Sprint(got) != "map[labels:map[c:d]]" {
		t.Errorf("labels: %v", got)
	}
	for path, want := range map[string]string{"autostop/7": "autoStopInterval 7", "autoarchive/8": "autoArchiveInterval 8", "autodelete/9.0": "autoDeleteInterval 9", "public/true": "public true"} {
		name, value, _ := strings.Cut(want, " ")
		if got := x.must("POST", "/sandbox/box/"+path, ""); fmt.Sprint(got[name]) != value {
			t.Errorf("%s: %v", path, got[name])
		}
	}
	if got := x.must("POST", "/sandbox/box/ttl/10", ""); got["autoDestroyAt"] == nil {
		t.Error("there is no end")
	}
	if got := x.must("DELETE", "/workspace/box?force=true", ""); got["state"] != "destroyed" {
		t.Errorf("after delete: %v", got["state"])
	}
	if code, out, _ := x.ask("GET", "/sandbox/"+id, ""); code != http.StatusNotFound || out["statusCode"] != 404.0 || out["path"] != "/daytona/sandbox/"+id || out["error"] != "Not Found" {
		t.Errorf("what is gone: %d %v", code, out)
	}
}

// TestOldClientsSeeWhatTheyDeleted shows it once, to its own project alone.
func TestOldClientsSeeWhatTheyDeleted(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	for path, first := range map[string]int{"?force=true": http.StatusOK, "": http.StatusNotFound} {
		id := x.must("POST", "/sandbox", `{}`)["id"].(string)
		x.must("DELETE", "/sandbox/"+id+path, "")
		if x.s.gone.take(auth.Principal{Project: "prj_2"}, id) != nil {
			t.Error("another project sees it")
		}
		for _, want := range []int{first, http.StatusNotFound} {
			if code, out, _ := x.ask("GET", "/sandbox/"+id, ""); code != want || code == http.StatusOK && out["state"] != "destroyed" {
				t.Errorf("%q: %d %v, want %d", path, code, out["state"], want)
			}
		}
	}
}

func TestClocksStopAndDelete(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	id := x.must("POST", "/sandbox", `{"autoStopInterval":5,"autoDeleteInterval":60}`)["id"].(string)
	session := "ses_" + id
	x.s.atEnd(session)
	if x.f.rows[session].State != hub.SessionActive {
		t.Error("it was stopped before its time")
	}
	x.age(id, 6*time.Minute)
	_, leave := x.s.clocks.Enter(t.Context(), session, false)
	if x.s.atEnd(session); x.f.rows[session].State != hub.SessionActive {
		t.Error("it was stopped while it is used")
	}
	leave()
	x.s.clocks.Stop(session, nil)
	if x.s.atEnd(session); x.f.rows[session].State != hub.SessionPaused {
		t.Error("it was not stopped")
	}
	if got := x.must("GET", "/sandbox/"+id, ""); got["state"] != "stopped" {
		t.Errorf("it is %v", got["state"])
	}
	x.age(id, 61*time.Minute)
	if code, _, _ := x.ask("GET", "/sandbox/"+id, ""); code != http.StatusNotFound {
		t.Errorf("what is over is there: %d", code)
	}
	if x.s.atEnd(session); len(x.f.rows) != 0 {
		t.Error("it was not deleted")
	}
	id = x.must("POST", "/sandbox", `{"autoDeleteInterval":0}`)["id"].(string)
	if got := x.must("POST", "/sandbox/"+id+"/stop", ""); got["state"] != "destroyed" && len(x.f.rows) != 0 {
		t.Errorf("one that is deleted when it stops is %v, of %d", got["state"], len(x.f.rows))
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	for n := range 5 {
		x.must("POST", "/sandbox", fmt.Sprintf(`{"name":"n%d","labels":{"n":"%d"},"public":%t}`, n, n, n == 2))
		time.Sleep(2 * time.Millisecond)
	}
	names := func(items any) string {
		var out []string
		for _, one := range items.([]any) {
			out = append(out, one.(map[string]any)["name"].(string))
		}
		return strings.Join(out, " ")
	}
	for query, want := range map[string]string{
		"": "n4 n3 n2 n1 n0", "order=asc": "n0 n1 n2 n3 n4", "sort=name&order=desc": "n4 n3 n2 n1 n0", "labels=" + url.QueryEscape(`{"n":"3"}`): "n3", "isPublic=true": "n2", "isPublic=false&order=asc": "n0 n1 n3 n4",
		"states=stopped": "", "states=stopped&states=started&limit=100&order=asc": "n0 n1 n2 n3 n4", "name=n1": "n1", "minCpu=2": "", "maxCpu=1&minMemoryGiB=1&maxDiskGiB=3&name=n0": "n0", "snapshots=x": "", "regionIds=local&name=n0": "n0",
		"isRecoverable=true": "", "createdAtAfter=2999-01-01T00:00:00Z": "", "createdAtBefore=2999-01-01T00:00:00.000Z&name=n4": "n4", "autoDestroyAtAfter=2000-01-01T00:00:00Z": "", "id=zzz": "",
	} {
		if got := names(x.must("GET", "/sandbox?"+query, "")["items"]); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	seen, cursor := "", ""
	for range 4 {
		page := x.must("GET", "/sandbox?limit=2&cursor="+cursor, "")
		seen += names(page["items"]) + ";"
		if page["nextCursor"] == nil {
			break
		}
		cursor = page["nextCursor"].(string)
	}
	if seen != "n4 n3;n2 n1;n0;" {
		t.Errorf("the pages are %s", seen)
	}
	page := x.must("GET", "/sandbox/paginated?limit=2&page=3", "")
	if names(page["items"]) != "n0" || page["total"] != 5.0 || page["totalPages"] != 3.0 || page["page"] != 3.0 {
		t.Errorf("the page is %v", page)
	}
	for _, bad := range []string{"limit=0", "limit=x", "createdAtAfter=now", "labels=x", "minCpu=x", "sort=x", "cursor=x", "page=0"} {
		if code, _, _ := x.ask("GET", "/sandbox?"+bad, ""); code != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, code)
		}
	}
	for version, array := range map[string]bool{"0.107.9": true, "0.103.0": true, "0.180.0": false, "0.226.1": false, "1.0.0": false, "": true} {
		_, _, text := x.ask("GET", "/sandbox", "", "X-Daytona-Source", "sdk-python", "X-Daytona-SDK-Version", version)
		if strings.HasPrefix(text, "[") != array {
			t.Errorf("version %q: %.40s", version, text)
		}
	}
	if _, _, text := x.ask("GET", "/workspace", ""); !strings.HasPrefix(text, "[") {
		t.Errorf("workspaces are %.40s", text)
	}
}

func TestWhatCoveDoesNotHaveIsRefused(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	for body, word := range map[string]string{
		`{"gpu":1}`: "gpu", `{"gpuType":["H100"]}`: "gpu", `{"kvm":true}`: "kvm", `{"secrets":[{"A":"b"}]}`: "secrets", `{"linkedSandbox":"x"}`: "linkedSandbox",
		`{"outboundProxyUrl":"http://x"}`: "outboundProxyUrl", `{"otelEndpointOverride":"http://x"}`: "otelEndpointOverride", `{"user":"root"}`: "root", `{"disk":100}`: "disk", `{"memory":-1}`: "memory",
		`{"autoStopInterval":-1}`: "autoStopInterval", `{"autoStopInterval":5,"autoPauseInterval":5}`: "autoPauseInterval", `{"autoPauseInterval":5,"autoDeleteInterval":0}`: "autoPauseInterval",
		`{"ttlMinutes":99999999999}`: "ttlMinutes", `{"env":{"A=":"1"}}`: "env", `{"name":"a/b"}`: "name", `{"snapshot":"other"}`: "other", `{"image":"alpine:3"}`: "alpine:3",
		`{"networkAllowList":"x"}`: "networkAllowList", `{"buildInfo":{"dockerfileContent":"FROM python:3.12\nCOPY a /a\n"}}`: "line 2", `{"buildInfo":{"dockerfileContent":"FROM python:3.12","contextHashes":["h"]}}`: "contextHashes",
		`{"buildInfo":{"dockerfileContent":"FROM python:3.12\nCOPY a /a\n","contextHashes":["` + strings.Repeat("a", 32) + `"]}}`: "not uploaded",
		`{"name":7}`: "name", `{`: "JSON", `{"labels":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`: "64 KiB",
	} {
		if code, out, text := x.ask("POST", "/sandbox", body); code != http.StatusBadRequest && code != http.StatusNotImplemented || !strings.Contains(fmt.Sprint(out["message"]), word) {
			t.Errorf("%.60s: %d %.300s", body, code, text)
		}
	}
	if len(x.f.rows) != 0 {
		t.Errorf("%d sandboxes were made", len(x.f.rows))
	}
	id := x.must("POST", "/sandbox", `{}`)["id"].(string)
	for path, word := range map[string]string{
		"POST /secret": "secrets", "GET /warm-pools": "warm pools", "GET /api-keys": "cove key create", "POST /sandbox/" + id + "/ssh-access": "SSH",
		"GET /sandbox/" + id + "/telemetry/logs": "telemetry", "PUT /sandbox/" + id + "/secrets": "secrets", "POST /snapshots/x/deactivate": "active",
	} {
		method, path, _ := strings.Cut(path, " ")
		if code, out, _ := x.ask(method, path, ""); code != http.StatusNotImplemented || !strings.Contains(fmt.Sprint(out["message"]), word) {
			t.Errorf("%s: %d %v", path, code, out)
		}
	}
	if code, out, _ := x.ask("POST", "/sandbox/"+id+"/resize", `{"memory":8}`); code != http.StatusNotImplemented || !strings.Contains(fmt.Sprint(out["message"]), "memory") {
		t.Errorf("resize: %d %v", code, out)
	}
	x.must("POST", "/sandbox/"+id+"/resize", `{"cpu":1,"memory":1,"disk":3}`)
	if code, _, _ := x.ask("GET", "/socket.io/?EIO=4&transport=websocket", ""); code != http.StatusNotFound {
		t.Errorf("events: %d", code)
	}
	if code, _, _ := x.ask("GET", "/else", ""); code != http.StatusNotFound {
		t.Errorf("what is no route: %d", code)
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	for body, want := range map[string]string{
		`{}`: "[everything.example]", `{"networkAllowList":"10.1.2.3/24, 0.0.0.0/0"}`: "[everything.example]", `{"networkAllowList":"10.1.2.0/24","domainAllowList":"a.com,*.b.com"}`: "[10.1.2.0/24 a.com *.b.com]", `{"networkBlockAll":true,"domainAllowList":"a.com"}`: "none",
	} {
		id := x.must("POST", "/sandbox", body)["id"].(string)
		got := "none"
		if n := x.f.rows["ses_"+id].Network; n != nil {
			got = fmt.Sprint(n.Allow)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	id := x.must("POST", "/sandbox", `{}`)["id"].(string)
	if got := x.must("POST", "/sandbox/"+id+"/network-settings", `{"networkBlockAll":true}`); got["networkBlockAll"] != true || len(x.f.rows["ses_"+id].Network.Allow) != 0 {
		t.Errorf("it reaches %v", x.f.rows["ses_"+id].Network)
	}
	x.must("POST", "/sandbox/"+id+"/network-settings", `{"networkBlockAll":false,"domainAllowList":"a.com"}`)
	if n := x.f.rows["ses_"+id].Network; !slices.Equal(n.Allow, []string{"a.com"}) {
		t.Errorf("it reaches %v", n)
	}
}

func TestForksAndSnapshots(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	x.must("POST", "/sandbox", `{"name":"one","env":{"A":"1"}}`)
	kid := x.must("POST", "/sandbox/one/fork", `{"name":"two"}`)
	x.must("POST", "/sandbox/two/fork", `{"name":"three"}`)
	if got := x.must("GET", "/sandbox/two/parent", ""); got["name"] != "one" || kid["state"] != "started" {
		t.Errorf("the parent is %v", got["name"])
	}
	if _, _, text := x.ask("GET", "/sandbox/one/forks", ""); !strings.Contains(text, `"id":"`+kid["id"].(string)) || strings.Contains(text, `"name":"three"`) {
		t.Errorf("forks are %s", text)
	}
	if _, _, text := x.ask("GET", "/sandbox/three/ancestors", ""); !strings.Contains(text, `"name":"one"`) || strings.Index(text, `"name":"two"`) > strings.Index(text, `"name":"one"`) {
		t.Errorf("ancestors are %s", text)
	}
	if code, _, _ := x.ask("GET", "/sandbox/one/parent", ""); code != http.StatusNotFound {
		t.Errorf("the parent of what is no fork: %d", code)
	}
	x.must("POST", "/sandbox/one/snapshot", `{"name":"kept"}`)
	if code, _, _ := x.ask("POST", "/sandbox/one/snapshot", `{"name":"kept"}`); code != http.StatusConflict {
		t.Errorf("a name twice: %d", code)
	}
	list := x.must("GET", "/snapshots?page=1&limit=10", "")
	if items := list["items"].([]any); len(items) != 2 || items[0].(map[string]any)["general"] != true || list["total"] != 2.0 {
		t.Errorf("snapshots are %v", list)
	}
	one := x.must("GET", "/snapshots/kept", "")
	for _, name := range []string{"id", "name", "state", "size", "entrypoint", "cpu", "gpu", "mem", "disk", "errorReason", "createdAt", "updatedAt", "lastUsedAt", "sourceSandboxId", "general"} {
		if _, ok := one[name]; !ok {
			t.Errorf("a snapshot has no %s", name)
		}
	}
	from := x.must("POST", "/sandbox", `{"snapshot":"kept","env":{"B":"2"}}`)
	if fmt.Sprint(from["env"]) != "map[A:1 B:2]" || from["snapshot"] != "kept" {
		t.Errorf("a sandbox of a snapshot: %v", from)
	}
	x.must("POST", "/snapshots", `{"name":"plain","imageName":"python:3.12-slim","cpu":1}`)
	for _, body := range []string{`{"imageName":"python:3.12"}`, `{"name":"a","imageName":"alpine"}`, `{"name":"a","imageName":"python:3.12","entrypoint":["x"]}`, `{"name":"a","gpu":1,"imageName":"python:3"}`} {
		if code, _, _ := x.ask("POST", "/snapshots", body); code != http.StatusBadRequest {
			t.Errorf("%s: %d", body, code)
		}
	}
	if code, _, _ := x.ask("DELETE", "/snapshots/"+one["id"].(string), ""); code != http.StatusOK {
		t.Errorf("delete: %d", code)
	}
	for path, want := range map[string]int{"GET /snapshots/kept": 404, "DELETE /snapshots/cove": 403, "GET /snapshots/cove": 200} {
		method, path, _ := strings.Cut(path, " ")
		if code, _, _ := x.ask(method, path, ""); code != want {
			t.Errorf("%s %s: %d", method, path, code)
		}
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	const slim = "FROM python:3.12.11-slim-bookworm\nRUN apt-get update\nRUN apt-get install -y gcc gfortran build-essential\nRUN pip install --upgrade pip\nRUN echo 'debconf debconf/frontend select Noninteractive' | debconf-set-selections\n"
	for text, steps := range map[string]int{slim: 0, "FROM python:3.12\n": 0, "# a comment\n\nFROM python:latest": 0, "FROM docker.io/library/python:3-slim": 0, slim + "RUN python -m pip install numpy": 1, "FROM debian\nENV A=1\nWORKDIR /x": 2} {
		if r, err := (buildInfo{Dockerfile: text}).recipe(nil); err != nil || len(r.Steps) != steps {
			t.Errorf("%q: %d steps, %v", text, len(r.Steps), err)
		}
	}
	for text, line := range map[string]string{slim + "COPY a /a": "line 6", "FROM python:3.12\nVOLUME a": "line 2", "FROM python:2.7": "line 1", "FROM alpine": "line 1", "": "no FROM"} {
		if _, err := (buildInfo{Dockerfile: text}).recipe(nil); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := (buildInfo{Dockerfile: "FROM python:3", Contexts: []string{"x"}}).recipe(nil); err == nil {
		t.Error("what is no hash is taken for one")
	}
}

// TestTokens has a sandbox be used by its token or a signed address, and by nothing else.
func TestTokens(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	id := x.must("POST", "/sandbox", `{}`)["id"].(string)
	other := x.must("POST", "/sandbox", `{}`)["id"].(string)
	_, _, key := x.ask("GET", "/sandbox/"+id+"/signing-key", "")
	key, err := strconv.Unquote(strings.TrimSpace(key))
	if err != nil {
		t.Fatal(err)
	}
	token := x.s.token("ses_" + id)
	in := func(end string) string { return strconv.FormatInt(time.Now().Unix()+3600, 10) + end }
	signed := func(method, path, expires string) string {
		return "?" + url.Values{"path": {path}, "expires": {expires}, "signature": {toolbox.Signature(key, method, path, expires)}}.Encode()
	}
	for _, c := range []struct {
		name, method, path string
		header             string
		want               int
	}{
		{"a token in the address", "GET", id + "/process/session?DAYTONA_SANDBOX_AUTH_KEY=" + token, "", 200},
		{"a token in a header", "GET", id + "/process/session", token, 200},
		{"another's token", "GET", other + "/process/session", token, 401},
		{"a wrong token", "GET", id + "/process/session?DAYTONA_SANDBOX_AUTH_KEY=x", "", 401},
		{"a signature", "GET", id + "/files/download" + signed("GET", "a b", in("")), "", 200},
		{"one without an end", "GET", id + "/files/download" + signed("GET", "a b", "0"), "", 200},
		{"one that is over", "GET", id + "/files/download" + signed("GET", "a b", "1"), "", 401},
		{"one for another operation", "POST", id + "/files/upload-v2" + signed("GET", "a b", "0"), "", 401},
		{"one for a command", "POST", id + "/process/execute" + signed("POST", "a b", "0"), "", 401},
		{"one of another sandbox", "GET", other + "/files/download" + signed("GET", "a b", "0"), "", 401},
		{"what is no sandbox", "GET", "zzz/files/download" + signed("GET", "a b", "0"), "", 401},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "http://server.test/daytona/toolbox/"+c.path, strings.NewReader(""))
		if c.header != "" {
			r.Header.Set(tokenHeader, c.header)
		}
		if !byToken(r) {
			t.Errorf("%s is not taken for one", c.name)
		}
		w := httptest.NewRecorder()
		x.s.gateway(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
	x.ask("POST", "/sandbox/"+id+"/signing-key/rotate", "")
	w := httptest.NewRecorder()
	x.s.gateway(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://server.test/daytona/toolbox/"+id+"/files/download"+signed("GET", "a", "0"), nil))
	if w.Code != 401 {
		t.Errorf("an address of an older key: %d", w.Code)
	}
}

func TestPreviews(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	id := x.must("POST", "/sandbox", `{}`)["id"].(string)
	got := x.must("GET", "/sandbox/"+id+"/ports/8000/preview-url", "")
	again := x.must("GET", "/sandbox/"+id+"/ports/8000/preview-url", "")
	if at := got["url"].(string); !strings.HasPrefix(at, "http://server.test/p/") || at != again["url"] || len(x.f.links) != 2 {
		t.Errorf("%v, then %v, with %d links", got, again, len(x.f.links))
	}
	for path, want := range map[string]int{"ports/0/preview-url": 400, "ports/x/preview-url": 400, "ports/8000/signed-preview-url?expiresInSeconds=0": 400} {
		if code, _, _ := x.ask("GET", "/sandbox/"+id+"/"+path, ""); code != want {
			t.Errorf("%s: %d", path, code)
		}
	}
	signed := x.must("GET", "/sandbox/"+id+"/ports/8000/signed-preview-url?expiresInSeconds=60", "")
	expire := "/sandbox/" + id + "/ports/8000/signed-preview-url/" + signed["token"].(string) + "/expire"
	for _, want := range []int{200, 404} {
		if code, _, _ := x.ask("POST", expire, ""); code != want {
			t.Errorf("expire: %d, want %d", code, want)
		}
	}
	x = newWorld(t, "ports.test")
	id = x.must("POST", "/sandbox", `{}`)["id"].(string)
	if got := x.must("GET", "/sandbox/"+id+"/ports/8000/preview-url", ""); got["url"] != "http://8000-"+id+".ports.test" || got["token"] != x.s.token("ses_"+id) {
		t.Errorf("%v", got)
	}
	names := x.s.Names(protocol.Surface{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })})
	ask := func(query, header string) int {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://8000-"+id+".ports.test/"+query, nil)
		if header != "" {
			r.Header.Set(tokenHeader, header)
		}
		w := httptest.NewRecorder()
		names.Handler.ServeHTTP(w, r)
		return w.Code
	}
	token := x.s.token("ses_" + id)
	for _, c := range []struct {
		query, header string
		want          int
	}{{"", "", 418}, {"", token, 502}, {"", "wrong", 401}, {"?DAYTONA_SANDBOX_AUTH_KEY=" + token, "", 502}, {"?DAYTONA_SANDBOX_AUTH_KEY=x", "", 401}} {
		if code := ask(c.query, c.header); code != c.want {
			t.Errorf("%+v: %d", c, code)
		}
	}
	x.must("POST", "/sandbox/"+id+"/public/true", "")
	if code := ask("", ""); code != 502 {
		t.Errorf("a public port: %d", code)
	}
}

// TestOthersSeeNothing has no caller find what another project's has.
func TestOthersSeeNothing(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	id := x.must("POST", "/sandbox", `{"name":"box"}`)["id"].(string)
	x.must("POST", "/sandbox/box/snapshot", `{"name":"kept"}`)
	other := auth.Principal{User: "usr", Project: "prj_2", Key: "key_2", Role: auth.Owner}
	ask := func(who auth.Principal, method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		x.s.handler().ServeHTTP(w, httptest.NewRequestWithContext(auth.With(t.Context(), who), method, "/daytona"+path, strings.NewReader(body)))
		return w
	}
	for _, r := range ofSandbox("/sandbox/{id}") {
		method, path, _ := strings.Cut(r.pattern, " ")
		path = strings.NewReplacer("{minutes}", "1", "{public}", "true", "{port}", "80", "{token}", "x").Replace(path)
		for _, name := range []string{id, "box"} {
			if w := ask(other, method, strings.ReplaceAll(path, "{id}", name), "{}"); w.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	for path, want := range map[string]int{"GET /snapshots/kept": 404, "DELETE /snapshots/kept": 404, "POST /toolbox/box/process/execute": 404, "POST /toolbox/" + id + "/toolbox/process/execute": 404} {
		method, path, _ := strings.Cut(path, " ")
		if w := ask(other, method, path, ""); w.Code != want {
			t.Errorf("%s %s: %d", method, path, w.Code)
		}
	}
	if w := ask(other, "GET", "/sandbox", ""); strings.Contains(w.Body.String(), id) {
		t.Errorf("another's is listed: %s", w.Body)
	}
	if w := ask(other, "POST", "/sandbox", `{"name":"box"}`); w.Code != http.StatusOK {
		t.Errorf("a name is taken by another project: %s", w.Body)
	}
	viewer := auth.Principal{User: "usr", Project: "prj_1", Role: auth.Viewer}
	for path, want := range map[string]int{"GET /sandbox/box": 200, "POST /sandbox": 403, "DELETE /sandbox/box": 403, "GET /sandbox/box/signing-key": 403, "GET /sandbox/box/ports/80/preview-url": 403, "POST /toolbox/box/process/execute": 403} {
		method, path, _ := strings.Cut(path, " ")
		if w := ask(viewer, method, path, "{}"); w.Code != want {
			t.Errorf("a viewer, %s %s: %d", method, path, w.Code)
		}
	}
}

// TestTokensAreForThoseWhoMay has a key that may not use files get no token that may.
func TestTokensAreForThoseWhoMay(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	x.must("POST", "/sandbox", `{"name":"box"}`)
	narrow := caller
	narrow.Scopes = []auth.Action{auth.SessionsRead, auth.SessionsWrite, auth.SessionsExecute}
	for path, want := range map[string]int{"preview-url": http.StatusForbidden, "signed-preview-url": http.StatusOK} {
		w := httptest.NewRecorder()
		x.s.handler().ServeHTTP(w, httptest.NewRequestWithContext(auth.With(t.Context(), narrow), "GET", "/daytona/sandbox/box/ports/80/"+path, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	public := 0
	for _, r := range surfaceRoutes() {
		if r.Access == protocol.Public {
			public++
		} else if len(r.Actions) == 0 {
			t.Errorf("%s %s needs nothing", r.Method, r.Pattern)
		}
		if !strings.HasPrefix(r.Pattern, "/daytona/") {
			t.Errorf("%s is not below the prefix", r.Pattern)
		}
	}
	if public != 3 {
		t.Errorf("%d routes need no key", public)
	}
	w := httptest.NewRecorder()
	(&Server{}).guard(reads, func(http.ResponseWriter, *http.Request, auth.Principal) error { return nil })(w, httptest.NewRequest("GET", "/daytona/sandbox", nil))
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "as its API key") {
		t.Errorf("without a key: %d %s", w.Code, w.Body)
	}
	x := newWorld(t, "")
	for _, name := range []string{"version", "proxyToolboxUrl", "proxyTemplateUrl", "defaultSnapshot", "oidc", "announcements"} {
		if got := x.must("GET", "/config", ""); got[name] == nil {
			t.Errorf("the configuration has no %s", name)
		}
	}
	x.must("GET", "/health", "")
}
