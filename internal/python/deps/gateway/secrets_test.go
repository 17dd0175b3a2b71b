package gateway_test

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

const (
	user     = "bob"
	password = "s3cr3t-w0rd"
)

// secret gives a source credentials.
func secret(t *testing.T, s pyindex.Source) pyindex.Source {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	s.URL = u.String()
	return s
}

// locked lets pass who has the credentials.
func locked(route http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		route(w, r)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	own, other := serve(t), serve(t)
	page := inJSON(t, file(wheel1, "one"), file(wheel2, "two").with("url", other.URL+"/files/"+wheel2), file("demo-3.0-py3-none-any.whl", "three"))
	own.on("/simple/demo/", locked(text(kindJSON, page)))
	own.on("/files/"+wheel1, locked(text("", "one")))
	own.on("/files/demo-3.0-py3-none-any.whl", locked(redirect(other.URL+"/files/demo-3.0-py3-none-any.whl")))
	other.on("/files/"+wheel2, text("", "two"))
	other.on("/files/demo-3.0-py3-none-any.whl", text("", "three"))

	_, err := open(t, options(t, own.source())).Project(t.Context(), "demo")
	wantProblem(t, err, "index_denied")
	o := options(t, secret(t, own.source()))
	g := open(t, o)
	for name, content := range map[string]string{wheel1: "one", wheel2: "two", "demo-3.0-py3-none-any.whl": "three"} {
		if err := g.Fetch(t.Context(), "demo", name, sum(content), io.Discard, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	if len(other.requests) != 2 {
		t.Errorf("the other host was asked %d times", len(other.requests))
	}
	for _, r := range other.requests {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("another host was told %v", r.Header)
		}
	}
	for _, path := range cached(t, o.Cache) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content)+path, password) || strings.Contains(string(content)+path, user+":") {
			t.Errorf("the credentials are in the cache: %s", path)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read the cache: %v, %v", info.Mode(), err)
		}
	}
}

// What signs a link, and a token in the path of an index, are worth as much as a password.
func TestSecretsInAddressesAreNotKept(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const token = "t0ken-of-the-path"
	s.on("/"+token+"/simple/demo/", text(kindJSON, inJSON(t, file(wheel1, "one"))))
	s.on("/"+token+"/files/"+wheel1, text("", "one"))
	s.on("/"+token+"/simple/other/", text(kindJSON, inJSON(t, file("other-1.0-py3-none-any.whl", "other").with("url", "/x.whl?signature="+password))))
	s.on("/"+token+"/simple/login/", text(kindJSON, inJSON(t, file("login-1.0-py3-none-any.whl", "x").with("url", "http://"+user+":"+password+"@127.0.0.1/x.whl"))))
	o := options(t, pyindex.Source{Name: "test", URL: s.URL + "/" + token + "/simple/"})
	for range 2 {
		g := open(t, o)
		for _, name := range []string{"demo", "other", "login"} {
			if _, err := g.Project(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Fetch(t.Context(), "demo", wheel1, sum("one"), io.Discard, nil); err != nil {
			t.Error(err)
		}
	}
	paths := cached(t, o.Cache)
	if len(paths) != 2 {
		t.Errorf("the cache has %v", paths)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{token, password} {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s is in the cache", secret)
			}
		}
	}
}

func TestErrorsTellNoSecrets(t *testing.T) {
	t.Parallel()
	s := serve(t)
	echo := func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		text(u+p, u+":"+p)(w, r)
	}
	for name, route := range map[string]http.HandlerFunc{
		"denied": status(401), "broken": status(500), "echo": echo, "redirect": redirect("ftp://" + user + ":" + password + "@x/"), "cut": truncate("text/html", "<p>", 100),
	} {
		s.on("/simple/"+name+"/", route)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	g := open(t, options(t, secret(t, s.source())))
	for _, name := range []string{"denied", "broken", "echo", "redirect", "cut"} {
		_, err := g.Project(t.Context(), name)
		checkSecret(t, name, err)
	}
	_, err := open(t, options(t, secret(t, pyindex.Source{Name: "gone", URL: gone.URL}))).Project(t.Context(), "demo")
	checkSecret(t, "gone", err)
}

func checkSecret(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", name)
	}
	p := problem.Of(err)
	if strings.Contains(err.Error()+p.Hint, password) {
		t.Errorf("%s: the error tells the password: %v", name, err)
	}
}

// An index out there cannot send cove to what is near, and one that is near can.
func TestReach(t *testing.T) {
	t.Parallel()
	near := serve(t)
	near.on("/files/"+wheel1, text("", "one"))
	// The proxy plays an index at a public address.
	proxied := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied <- r.URL.Host
		text(kindJSON, inJSON(t, file(wheel1, "one").with("url", near.URL+"/files/"+wheel1)))(w, r)
	}))
	t.Cleanup(proxy.Close)
	via, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, pyindex.Source{Name: "far", URL: "http://192.0.2.7/simple"})
	o.Access.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Hostname() == "127.0.0.1" {
			return nil, nil
		}
		return via, nil
	}
	err = open(t, o).Fetch(t.Context(), "demo", wheel1, sum("one"), io.Discard, nil)
	wantProblem(t, err, "index_malformed")
	if n := len(near.asked("/files/" + wheel1)); n != 0 || len(proxied) != 1 || <-proxied != "192.0.2.7" {
		t.Errorf("a public index led to this machine (%d requests)", n)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	s := prepare()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "one")))
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(authority)
	uv := filepath.Join(t.TempDir(), "uv")
	testneeds.Program(t, uv, "#!/bin/sh\necho '--index-url "+s.URL+"/simple'\n")
	host := strings.TrimPrefix(s.URL, "https://")
	for variable, code := range map[string]string{
		"NOTHING=": "index_untrusted", "SSL_CERT_FILE=" + authority: "", "PIP_CERT=" + authority: "", "REQUESTS_CA_BUNDLE=" + authority: "", "SSL_CERT_DIR=/nonexistent:" + folder: "",
		"UV_INSECURE_HOST=elsewhere " + host: "", "PIP_TRUSTED_HOST=127.0.0.1": "", "UV_INSECURE_HOST=elsewhere": "index_untrusted", "SSL_CERT_FILE=/nonexistent": "index_untrusted",
	} {
		sources, access, err := pyindex.Sources(context.Background(), []string{"HOME=" + t.TempDir(), "PIP_CONFIG_FILE=/dev/null", "PATH=" + os.Getenv("PATH"), variable}, "", uv)
		if err != nil {
			t.Fatal(err)
		}
		o := options(t, sources...)
		o.Access = access
		_, err = open(t, o).Project(t.Context(), "demo")
		if code == "" {
			if err != nil {
				t.Errorf("%s: %v", variable, err)
			}
			continue
		}
		wantProblem(t, err, code)
	}
	_, err := gateway.New(gateway.Options{Cache: filepath.Join(authority, "x")})
	wantProblem(t, err, "data_folder_unusable")
}
