package daytona

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/server/auth"
	"cove/internal/server/builder"
)

// TestBuildsAreTold: who makes a sandbox of an image that is not there is answered at once, and told how the build ends. The hub of these tests runs no command.
func TestBuildsAreTold(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	const body = `{"name":"one","buildInfo":{"dockerfileContent":"FROM python:3.12\nENV A=1\nRUN make it\n"},"env":{"B":"2"}}`
	x.f.refused = errors.New("kingfisher")
	made := x.must("POST", "/sandbox", body)
	id := made["id"].(string)
	if made["state"] != pendingBuild || made["desiredState"] != started {
		t.Fatalf("it is %v", made["state"])
	}
	shown := x.until("/sandbox/one", buildFailed)
	if why, _ := shown["errorReason"].(string); why == "" || strings.Contains(why, "kingfisher") {
		t.Errorf("the reason is %q", why)
	}
	url := x.must("GET", "/sandbox/one/build-logs-url", "")["url"]
	if url != "http://server.test/daytona/sandbox/"+id+"/build-logs" {
		t.Errorf("the log is at %v", url)
	}
	if _, _, text := x.ask("GET", "/sandbox/one/build-logs?follow=true", ""); !strings.Contains(text, "is not fetched") || !strings.Contains(text, "the build has failed") {
		t.Errorf("the log is %q", text)
	}
	for _, path := range []string{"/start", "/fork", "/snapshot", "/network-settings"} {
		if code, out, _ := x.ask("POST", "/sandbox/one"+path, `{"name":"x"}`); code != http.StatusBadRequest || !strings.Contains(out["message"].(string), "could not be built") {
			t.Errorf("%s: %d %v", path, code, out["message"])
		}
	}
	if code, _, _ := x.ask("POST", "/workspace", strings.Replace(body, "one", "two", 1)); code == http.StatusOK {
		t.Error("an old client is told of no failure")
	}
	x.must("POST", "/snapshots", `{"name":"snap","buildInfo":{"dockerfileContent":"FROM python:3.12\nRUN make it\n"}}`)
	x.until("/snapshots/snap", buildFailed)
	if code, _, _ := x.ask("POST", "/sandbox", `{"snapshot":"snap"}`); code != http.StatusBadRequest {
		t.Errorf("a sandbox of what could not be built: %d", code)
	}
}

// TestImagesOfRegistries: a sandbox of an image that the operator allows begins from it, with or without steps, and one of another image does not.
func TestImagesOfRegistries(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	x.f.allowed, x.f.refused = "ghcr.io/team/tool:1", errors.New("kingfisher")
	for body, want := range map[string]string{
		`{"name":"one","buildInfo":{"dockerfileContent":"FROM ghcr.io/team/tool:1\n"}}`:                     x.f.allowed,
		`{"name":"two","buildInfo":{"dockerfileContent":"FROM ghcr.io/team/tool:1\nRUN apt-get update\n"}}`: x.f.allowed,
		`{"name":"three","image":"ghcr.io/team/tool:1"}`:                                                    x.f.allowed,
		`{"name":"four","buildInfo":{"dockerfileContent":"FROM python:3.12\nRUN make it\n"}}`:               "",
	} {
		if made := x.must("POST", "/sandbox", body); made["state"] != pendingBuild {
			t.Errorf("%s: it is %v", body, made["state"])
		}
		x.f.mu.Lock()
		if got := x.f.made[len(x.f.made)-1].Image; got != want {
			t.Errorf("%s: the session begins from %q", body, got)
		}
		x.f.mu.Unlock()
	}
	x.until("/sandbox/two", buildFailed) // as in the fake every command does
	x.must("POST", "/snapshots", `{"name":"snap","imageName":"ghcr.io/team/tool:1"}`)
	x.f.mu.Lock()
	if got := x.f.made[len(x.f.made)-1].Image; got != x.f.allowed {
		t.Errorf("the session of the snapshot begins from %q", got)
	}
	x.f.mu.Unlock()
	code, out, _ := x.ask("POST", "/sandbox", `{"image":"ghcr.io/team/other:1"}`)
	if why, _ := out["message"].(string); code != http.StatusBadRequest || !strings.Contains(why, "images.allow") {
		t.Errorf("another image: %d, %q", code, why)
	}
}

// TestBuildsThatTheServerLeft: what was being built when the server was stopped is not built, and says so.
func TestBuildsThatTheServerLeft(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	id := x.must("POST", "/sandbox", `{}`)["id"].(string)
	row := x.f.rows["ses_"+id]
	r, _ := recordOf(row, kindSandbox)
	r.Building = true
	row.Metadata, _ = r.entries(kindSandbox, row.Metadata)
	x.f.rows[row.ID] = row
	if got := x.must("GET", "/sandbox/"+id, ""); got["state"] != buildFailed || !strings.Contains(got["errorReason"].(string), "stopped") {
		t.Errorf("it is %v: %v", got["state"], got["errorReason"])
	}
}

// TestBuildLog: followers get what was said before and after they came, once, until the end; a log has a bound.
func TestBuildLog(t *testing.T) {
	t.Parallel()
	var logs buildLogs
	l := logs.begin("a")
	l.say(builder.Said{Text: "one"})
	got := make(chan string)
	for range 2 {
		go func() {
			var b bytes.Buffer
			l.follow(t.Context(), &b, func() {}, true)
			got <- b.String()
		}()
	}
	l.say(builder.Said{Text: "two"})
	l.end()
	for range 2 {
		if text := <-got; text != "one\ntwo\n" {
			t.Errorf("a follower has %q", text)
		}
	}
	long := logs.begin("b")
	for range 10 {
		long.say(builder.Said{Text: strings.Repeat("x", mostLogBytes/4)})
	}
	if len(long.text) > mostLogBytes+100 || !strings.HasSuffix(string(long.text), "left out\n") {
		t.Errorf("%d bytes are kept", len(long.text))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	long.follow(ctx, io.Discard, func() {}, true) // returns
	for range 2 * mostLogs {
		logs.begin(ident.New(ident.Session)).end()
	}
	if len(logs.all) > mostLogs+3 || logs.of("b") != long {
		t.Errorf("%d logs are kept", len(logs.all))
	}
}

func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(files[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestUploadsOfImages has archives be uploaded as libraries for S3 do it, and be read as one.
func TestUploadsOfImages(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	ask := func(who auth.Principal, method, path string, body []byte) (int, string, http.Header) {
		r := httptest.NewRequestWithContext(auth.With(t.Context(), who), method, "http://server.test"+objectsPath+path, bytes.NewReader(body))
		w := httptest.NewRecorder()
		x.s.objects().Handler.ServeHTTP(w, r)
		return w.Code, w.Body.String(), w.Header()
	}
	want := func(code int, method, path string, body []byte) string {
		t.Helper()
		got, text, _ := ask(caller, method, path, body)
		if got != code {
			t.Fatalf("%s %s: %d %s", method, path, got, text)
		}
		return text
	}
	one, two := strings.Repeat("1", 32), strings.Repeat("2", 32)
	at := func(hash string) string { return "images/prj_1/" + hash + "/context.tar" }
	first, second := archive(t, "a", "one", "both", "first"), archive(t, "both", "second", "b", "two")
	want(404, "HEAD", at(one), nil)
	if text := want(200, "GET", "images/?list-type=2&max-keys=1&prefix=prj_1/"+one+"/", nil); strings.Contains(text, "Contents") {
		t.Errorf("there is %s", text)
	}
	want(200, "PUT", at(one), first)
	want(200, "HEAD", at(one), nil)
	if text := want(200, "GET", "images?list-type=2&prefix=prj_1/"+one+"/", nil); !strings.Contains(text, "<Contents><Key>prj_1/"+one+"/context.tar</Key>") {
		t.Errorf("there is %s", text)
	}
	_, id, _ := strings.Cut(want(200, "POST", at(two)+"?uploads=", nil), "<UploadId>")
	id, _, _ = strings.Cut(id, "<")
	want(200, "PUT", at(two)+"?partNumber=2&uploadId="+id, second[700:])
	want(400, "POST", at(two)+"?uploadId="+id, []byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>"))
	want(200, "PUT", at(two)+"?partNumber=1&uploadId="+id, second[:700])
	want(404, "PUT", at(one)+"?partNumber=1&uploadId="+id, second)
	want(400, "PUT", at(two)+"?partNumber=0&uploadId="+id, second)
	want(200, "POST", at(two)+"?uploadId="+id, []byte(`<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Part><PartNumber>1</PartNumber></Part><Part><PartNumber>2</PartNumber></Part></CompleteMultipartUpload>`))
	want(404, "DELETE", at(two)+"?uploadId="+id, nil)
	if len(x.f.files) != 2 {
		t.Errorf("%d files are kept", len(x.f.files))
	}
	want(403, "PUT", "images/prj_2/"+one+"/context.tar", first)
	want(403, "PUT", "images/prj_1/x/context.tar", first)
	want(501, "GET", at(one), nil)
	want(501, "GET", "others/", nil)
	other := caller
	other.User = "another"
	if code, _, _ := ask(other, "HEAD", at(one), nil); code != 404 {
		t.Errorf("another sees an archive: %d", code)
	}
	viewer := caller
	viewer.Role = auth.Viewer
	if code, _, _ := ask(viewer, "PUT", at(one), first); code != 403 {
		t.Errorf("a viewer writes: %d", code)
	}
	all, err := x.s.openContexts(t.Context(), caller, []string{one, two})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	var names []string
	for in := tar.NewReader(all); ; {
		h, err := in.Next()
		if err != nil {
			break
		}
		text, _ := io.ReadAll(in)
		names = append(names, h.Name+" "+string(text))
	}
	if got := strings.Join(names, ", "); got != "a one, both first, b two" {
		t.Errorf("together they are %s", got)
	}
	if code, out, _ := x.ask("GET", "/object-storage/push-access", "", "Authorization", "Bearer cove_1"); code != 200 || out["sessionToken"] != "cove_1" || out["storageUrl"] != "http://server.test/daytona/object-storage/s3" {
		t.Errorf("uploads go to %v", out)
	}
}

// until asks until what is there has a state.
func (x world) until(path, state string) map[string]any {
	x.t.Helper()
	for range 3000 {
		out := x.must("GET", path, "")
		if out["state"] == state {
			return out
		}
		time.Sleep(20 * time.Millisecond)
	}
	x.t.Fatalf("%s does not come to %s", path, state)
	return nil
}
