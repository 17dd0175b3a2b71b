package e2e_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// inner is a server of this machine that sessions can be let reach: at a name that leads to this machine, which is no public address.
type inner struct {
	host  string   // with the port
	rules []string // that let a session reach it
}

// ownName returns a name of this machine that leads to it: its host name, or one that its hosts file has.
func ownName(t *testing.T) (name string, addresses []string) {
	t.Helper()
	candidates := []string{}
	if host, err := os.Hostname(); err == nil {
		candidates = append(candidates, host)
	}
	hosts, _ := os.ReadFile("/etc/hosts")
	for line := range strings.Lines(string(hosts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[0], "127.") {
			candidates = append(candidates, fields[1:]...)
		}
	}
	for _, c := range candidates {
		c = strings.ToLower(c)
		if addresses, err := net.DefaultResolver.LookupHost(t.Context(), c); err == nil && !strings.HasSuffix(c, "localhost") {
			return c, addresses
		}
	}
	t.Fatal("no name but localhost leads to this machine; give it one in its hosts file")
	return "", nil
}

func newInner(t *testing.T, h http.Handler) inner {
	t.Helper()
	name, addresses := ownName(t)
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	port := listener.Addr().(*net.TCPAddr).Port
	in := inner{host: fmt.Sprintf("%s:%d", name, port), rules: []string{fmt.Sprintf("%s:%d", name, port)}}
	for _, a := range addresses {
		in.rules = append(in.rules, net.JoinHostPort(a, fmt.Sprint(port)))
	}
	return in
}

// TestNetworkOfCommands lets code of commands on this machine reach a server, and nothing else.
func TestNetworkOfCommands(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	folder := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		c.Dir = folder
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "work")
	if err := os.WriteFile(filepath.Join(folder, "work", "read.me"), []byte("hello from git\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("-C", "work", "add", ".")
	git("-C", "work", "commit", "-q", "-m", "first")
	git("clone", "-q", "--bare", "work", "repository.git")
	git("-C", "repository.git", "update-server-info")
	in := newInner(t, http.FileServer(http.Dir(folder)))
	sessions := t.TempDir()
	begin := func(rules []string, args ...string) *command {
		for _, r := range rules {
			args = slices.Insert(args, 2, "--allow-net", r)
		}
		c := newCommand(t, args...)
		c.setenv("COVE_SESSIONS=" + sessions)
		return c
	}
	get := "import urllib.request; print(urllib.request.urlopen('http://" + in.host + "/work/read.me').read().decode())"
	r := begin(in.rules, "run", "-q", "-c", get).run()
	r.ended(t, 0)
	if !strings.Contains(r.stdout, "hello from git") {
		t.Errorf("%+v", r)
	}
	if r := begin(nil, "run", "-q", "-c", get).run(); r.code != 1 || !strings.Contains(r.stderr, "Temporary failure in name resolution") {
		t.Errorf("without --allow-net: %+v", r)
	}
	r = begin(in.rules[:1], "run", "-q", "-c", get).run() // the name, and not the address
	if r.code != 1 || !strings.Contains(r.stderr, "may not be reached: it leads to an address that may not be reached") || strings.Count(r.stderr, "cove: "+strings.SplitN(in.host, ":", 2)[0]) != 1 {
		t.Errorf("without the address: %+v", r)
	}
	if r := begin([]string{"https://example.com"}, "run", "-q", "-c", "1").run(); r.code != 125 || !strings.Contains(r.stderr, "no rule for the network") {
		t.Errorf("a wrong rule: %+v", r)
	}
	r = begin(in.rules, "session", "exec", "lab", "--", "bash", "-c", "git clone -q http://"+in.host+"/repository.git r && cat r/read.me && curl -sS --max-time 60 http://"+in.host+"/work/read.me").run()
	r.ended(t, 0)
	if r.stdout != "hello from git\nhello from git\n" {
		t.Errorf("git and curl: %+v", r)
	}
	if r := begin(nil, "session", "exec", "lab", "--", "curl", "-sS", "http://"+in.host+"/").run(); r.code != 6 {
		t.Errorf("the same session without a network: %+v", r)
	}
}

// newTrusted serves HTTPS on this machine at its name, with a certificate of an authority that whoever has the variable trusts.
func newTrusted(t *testing.T, h http.HandlerFunc) (in inner, trusts string) {
	t.Helper()
	name, addresses := ownName(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "trusted.pem")
	testneeds.Program(t, list, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: listener, EnableHTTP2: true, Config: &http.Server{Handler: h}, TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	port := listener.Addr().(*net.TCPAddr).Port
	in = inner{host: fmt.Sprintf("%s:%d", name, port), rules: []string{fmt.Sprintf("%s:443,%d", name, port)}}
	for _, a := range addresses {
		in.rules = append(in.rules, net.JoinHostPort(a, fmt.Sprint(port)))
	}
	return in, "SSL_CERT_FILE=" + list
}

// TestCredentialsOfASession has the host add a secret to what code sends, which the code never sees: in a command, and in sessions of a server, over a fork, a pause and the server's end.
func TestCredentialsOfASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const secret = "sk-the-secret-of-this-test"
	in, trusts := newTrusted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/repeat" {
			_, _ = fmt.Fprint(w, r.Header.Get("Authorization"))
			return
		}
		_, _ = fmt.Fprintf(w, "%v %s", r.Header.Get("Authorization") == "Bearer "+secret, r.Proto)
	})
	name, _, _ := strings.Cut(in.host, ":")
	// The secret is in no variable and no file that code can read, and in no process's memory of its own: what it can look at is its environment.
	ask := "import os, subprocess, urllib.request\nprint(urllib.request.urlopen('https://" + in.host + "/', timeout=60).read().decode(), 'sk-the' in str(os.environ), 'sk-the' in open('/proc/self/environ').read())\n" +
		"print(subprocess.run(['curl', '-sS', '-H', 'Authorization: mine', 'https://" + in.host + "/'], capture_output=True, text=True))"
	answers := func(got string) {
		t.Helper()
		if !strings.Contains(got, "true HTTP/2.0 False False") || !strings.Contains(got, "stdout='true HTTP/2.0'") {
			t.Errorf("it got %s", got)
		}
	}
	args := []string{"run", "-q", "-c", ask, "--credential", name + "=MY_TOKEN"}
	for _, r := range in.rules {
		args = append(args, "--allow-net", r)
	}
	c := newCommand(t, args...)
	c.setenv(trusts, "MY_TOKEN="+secret)
	r := c.run()
	r.ended(t, 0)
	answers(r.stdout)
	c = newCommand(t, args...)
	c.setenv(trusts)
	if r := c.run(); r.code != 125 || !strings.Contains(r.stderr, "MY_TOKEN") {
		t.Errorf("without the variable: %+v", r)
	}

	dir := t.TempDir()
	rules := []string{name + ":443", in.host}
	s := startServer(t, dir, testKey(t), trusts, "COVE_NETWORK_ALLOW="+strings.Join(append(slices.Clone(in.rules[1:]), rules...), ","))
	var made, forked struct {
		ID      string
		Network struct{ Credentials []map[string]string }
	}
	network := map[string]any{"allow": rules, "credentials": []any{map[string]string{"host": name, "header": "Authorization", "value": "Bearer " + secret}}}
	reply := s.must(http.MethodPost, "/api/v1/sessions", map[string]any{"network": network}, &made)
	if strings.Contains(string(reply.body), secret) || len(made.Network.Credentials) != 1 || made.Network.Credentials[0]["header"] != "Authorization" {
		t.Errorf("the session is %s", reply.body)
	}
	answers(s.says(made.ID, ask))
	repeat := "import urllib.request\nprint(urllib.request.urlopen('https://" + in.host + "/repeat', timeout=60).read().decode())"
	if got := s.says(made.ID, repeat); got != "[redacted credential]\n" {
		t.Errorf("what the host repeats is %q", got)
	}
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/fork", nil, &forked)
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/pause", nil, nil)
	answers(s.says(forked.ID, ask))
	s.kill()
	s = startServer(t, dir, s.key, trusts, "COVE_NETWORK_ALLOW="+strings.Join(append(slices.Clone(in.rules[1:]), rules...), ","))
	answers(s.says(made.ID, ask))
	if r, err := s.call(t.Context(), http.MethodPost, "/api/v1/sessions", map[string]any{"network": map[string]any{"allow": rules, "credentials": []any{map[string]string{"host": "other.example", "header": "X", "value": secret}}}}); err != nil ||
		r.status != http.StatusBadRequest || !strings.Contains(string(r.body), "network_rule") || strings.Contains(string(r.body), secret) {
		t.Errorf("a credential for a host that is not allowed: %d %s, %v", r.status, r.body, err)
	}
	s.must(http.MethodPatch, "/api/v1/sessions/"+made.ID, map[string]any{"network": map[string]any{"allow": rules}}, nil)
	plain := "import ssl, urllib.request\nprint(urllib.request.urlopen('https://" + in.host + "/', timeout=60, context=ssl._create_unverified_context()).read().decode())" // the host's own certificate, whose authority is the test's
	if got := s.says(made.ID, plain); got != "false HTTP/1.1\n" {
		t.Errorf("without the credential it got %s", got)
	}
	if strings.Contains(s.log.String(), secret) {
		t.Error("the log has the secret")
	}
}

// TestInstallsFromInside has pip and npm install from inside a session what the registries of this machine have.
func TestInstallsFromInside(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	said := func(program string, args ...string) string {
		out, _ := exec.CommandContext(t.Context(), program, args...).Output()
		return strings.TrimSpace(string(out))
	}
	index := cmp.Or(os.Getenv("UV_DEFAULT_INDEX"), os.Getenv("PIP_INDEX_URL"), said("pip", "config", "get", "global.index-url"), said("python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"))
	registry := said("npm", "config", "get", "registry")
	var rules []string
	allow := func(of string) {
		u, err := url.Parse(of)
		if err != nil || u.Hostname() == "" {
			t.Fatalf("%q is no address of a registry: %v", of, err)
		}
		ports := ""
		if p := u.Port(); p != "" {
			ports = ":" + p
		}
		addresses, err := net.DefaultResolver.LookupHost(t.Context(), u.Hostname())
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range append(addresses, u.Hostname()) { // the addresses, because a mirror may have private ones
			if strings.Contains(rule, ":") && ports != "" {
				rule = "[" + rule + "]"
			}
			rules = append(rules, "--allow-net", rule+ports)
		}
	}
	allow(index)
	allow(registry)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(index, "/")+"/six/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if file := regexp.MustCompile(`href="(https?://[^"]+)"`).FindSubmatch(page); file != nil { // where the index keeps its files
		allow(string(file[1]))
	}
	script := "set -e; pip -q install -i " + index + " left-padding-absent 2>/dev/null && exit 1; pip -q install -i " + index + " six; python -c 'import six; print(six.__file__)'; python -m venv v; v/bin/pip -q install -i " + index + " six; v/bin/python -c 'import six; print(six.__name__)'; " +
		"mkdir n; cd n; npm --registry " + registry + " install --silent left-pad; node -e 'console.log(require(\"left-pad\")(1, 3))'; " +
		"node -e 'fetch(\"" + registry + "\").then(r => console.log(r.status))'"
	home := t.TempDir()
	c := newCommand(t, slices.Concat([]string{"session", "exec", "lab"}, rules, []string{"--", "bash", "-c", script})...)
	c.setenv("COVE_SESSIONS=" + home)
	r := c.run()
	r.ended(t, 0)
	if !strings.HasPrefix(r.stdout, "/tmp/.local/lib/") || !strings.HasSuffix(r.stdout, "/six.py\nsix\n  1\n200\n") {
		t.Errorf("%+v", r)
	}
	again := newCommand(t, "run", "--session", "lab", "--no-install", "-c", "import six, subprocess; print(six.__name__, subprocess.getoutput('python -c \"import six; print(six.__name__)\"'))")
	again.setenv("COVE_SESSIONS=" + home)
	if r = again.run(); r.stdout != "six six\n" {
		t.Errorf("code has %+v", r)
	}
}

// TestNetworkOfASession says where a session on a server may connect to when it is made, and changes it while it lives.
func TestNetworkOfASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	in := newInner(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "hello %s", r.URL.Path) }))
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t), "COVE_NETWORK_ALLOW="+strings.Join(append(slices.Clone(in.rules), "*.example.com"), ","), "COVE_NETWORK_AUDIT=true", "COVE_NETWORK_DENY=denied.example.com")
	type session struct {
		ID      string
		Network *struct{ Allow, Deny []string }
	}
	create := func(allow ...string) (made session) {
		t.Helper()
		s.must(http.MethodPost, "/api/v1/sessions", map[string]any{"network": map[string]any{"allow": allow}}, &made)
		return made
	}
	for rule, code := range map[string]string{"evil.test": "network_off", "*": "network_off", "example.com:22": "network_off", "http://x": "network_rule"} {
		r, err := s.call(t.Context(), http.MethodPost, "/api/v1/sessions", map[string]any{"network": map[string]any{"allow": []string{rule}}})
		if err != nil || r.status < 400 || !strings.Contains(string(r.body), code) {
			t.Errorf("%s: %d %s, %v", rule, r.status, r.body, err)
		}
	}
	get := func(host string) string {
		return "import urllib.request\ntry: print(urllib.request.urlopen('http://" + host + "/x', timeout=60).read().decode())\nexcept OSError as e: print(e)"
	}
	const unknown = "<urlopen error [Errno -2] Name or service not known>"
	made := create(in.rules[0], "*.example.com")
	if made.Network == nil || len(made.Network.Allow) != 2 {
		t.Errorf("the session is %+v", made)
	}
	if got := s.says(made.ID, get(in.host)); got != "hello /x\n" {
		t.Errorf("it got %q", got)
	}
	if got := s.says(made.ID, get("denied.example.com")); got != unknown+"\n" {
		t.Errorf("of what is denied it got %q", got)
	}
	var list struct {
		Items []struct {
			Host, Refused string
			Received      int64 `json:"received_bytes"`
		}
	}
	s.must(http.MethodGet, "/api/v1/sessions/"+made.ID+"/network", nil, &list)
	seen := map[string]bool{}
	for _, i := range list.Items {
		seen[fmt.Sprintf("%s %v %v", i.Host, i.Refused != "", i.Received > 0)] = true
	}
	if name, _, _ := strings.Cut(in.host, ":"); !seen[name+" false true"] || !seen["denied.example.com true false"] {
		t.Errorf("the connections are %+v", list)
	}
	if m := s.metric(`cove_network_connections_total{result="refused"}`); m == "0" || m == "" {
		t.Errorf("the metric is %q", m)
	}
	var audit struct {
		Items []struct{ Action, Detail, Outcome string }
	}
	s.must(http.MethodGet, "/api/v1/audit?limit=100", nil, &audit)
	text, _ := json.Marshal(audit)
	if !strings.Contains(string(text), "session.connect") || !strings.Contains(string(text), "destination_refused") {
		t.Errorf("the audit log is %s", text)
	}

	other := create()
	if got := s.says(other.ID, get(in.host)); !strings.Contains(got, "Temporary failure in name resolution") {
		t.Errorf("a session without rules got %q", got)
	}
	s.must(http.MethodPatch, "/api/v1/sessions/"+other.ID, map[string]any{"network": map[string]any{"allow": in.rules[:1]}}, nil)
	if got := s.says(other.ID, get(in.host)); got != "hello /x\n" {
		t.Errorf("after the change it got %q", got)
	}
	var forked session
	s.must(http.MethodPost, "/api/v1/sessions/"+other.ID+"/fork", nil, &forked)
	s.must(http.MethodPost, "/api/v1/sessions/"+other.ID+"/pause", nil, nil)
	for _, id := range []string{forked.ID, other.ID} {
		if got := s.says(id, get(in.host)); got != "hello /x\n" {
			t.Errorf("after fork and pause it got %q", got)
		}
	}
	s.must(http.MethodPatch, "/api/v1/sessions/"+other.ID, map[string]any{"network": map[string]any{}}, nil)
	if got := s.says(other.ID, get(in.host)); got == "hello /x\n" {
		t.Error("after the network was taken away it is there")
	}
	s.kill()
	s = startServer(t, dir, s.key, "COVE_NETWORK_ALLOW="+strings.Join(in.rules, ","))
	if got := s.says(forked.ID, get(in.host)); got != "hello /x\n" {
		t.Errorf("after the server was killed it got %q", got)
	}
}

// TestEnvironmentOfACommand sets variables of the code's environment, which stay in a session.
func TestEnvironmentOfACommand(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	sessions := t.TempDir()
	run := func(args ...string) result {
		c := newCommand(t, append([]string{"run", "-q"}, args...)...)
		c.setenv("COVE_SESSIONS="+sessions, "MINE=from here")
		return c.run()
	}
	r := run("--session", "lab", "-e", "YEAR=2025", "-e", "MINE", "-e", "TEXT=a=b\nc", "-c", `import os, subprocess; print(os.environ["YEAR"], os.environ["MINE"], repr(os.environ["TEXT"]), subprocess.getoutput("echo $YEAR"))`)
	r.ended(t, 0)
	if r.stdout != "2025 from here 'a=b\\nc' 2025\n" {
		t.Errorf("%+v", r)
	}
	if r := run("--session", "lab", "-c", `import os; print(os.environ.get("YEAR"))`); r.stdout != "2025\n" {
		t.Errorf("in the next command: %+v", r)
	}
	if r := run("-c", `import os; print(os.environ.get("YEAR"), os.environ.get("MINE"))`); r.stdout != "None None\n" {
		t.Errorf("elsewhere: %+v", r)
	}
	if r := run("-e", "A-B=1", "-c", "1"); r.code != 125 || !strings.Contains(r.stderr, "cannot be the name of a variable") {
		t.Errorf("a wrong name: %+v", r)
	}
}
