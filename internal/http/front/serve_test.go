package front_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	random "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/front"
)

// serve has a rig serve on its addresses. stop ends it and returns what Serve returned.
func serve(t *testing.T, g *rig) (address string, stop func() error) {
	t.Helper()
	addresses, err := g.Listen(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx) }()
	t.Cleanup(cancel)
	return addresses[0].String(), func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			t.Fatal("the server does not end")
			return nil
		}
	}
}

func local(more front.Options) front.Options {
	more.Listen = []string{"127.0.0.1:0"}
	return more
}

// TestStoppingWithOpenStreams: a stream is told and ends in bounded time, one that does not listen is cut, short ones finish.
func TestStoppingWithOpenStreams(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 3)
	let := make(chan struct{})
	handlers := map[string]http.HandlerFunc{
		"GET /v1/polite": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, ": hello\n")
			_ = http.NewResponseController(w).Flush()
			began <- struct{}{}
			<-r.Context().Done()
			_, _ = fmt.Fprintf(w, "event: %s\n", problem.Of(context.Cause(r.Context())).Code)
		},
		"GET /v1/brief": func(w http.ResponseWriter, _ *http.Request) {
			began <- struct{}{}
			<-let
			_, _ = io.WriteString(w, "whole")
		},
	}
	g := newRig(t, local(front.Options{Limits: limited(func(l *front.Limits) { l.Grace = 200 * time.Millisecond })}), handlers)
	address, stop := serve(t, g)
	get := func(path string) chan string {
		text := make(chan string, 1)
		go func() {
			r, _ := http.NewRequestWithContext(context.Background(), "GET", "http://"+address+path, nil)
			r.Header.Set("X-Api-Key", anns)
			answer, err := new(http.Client).Do(r)
			if err != nil {
				text <- err.Error()
				return
			}
			defer answer.Body.Close()
			all, err := io.ReadAll(answer.Body)
			text <- fmt.Sprint(string(all), err)
		}()
		<-began
		return text
	}
	polite, brief := get("/v1/polite"), get("/v1/brief")
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	refused := false
	for range 1000 { // readiness falls first, while both still run
		if g.ask(t, "GET", "/health/ready", "").Code == 503 {
			refused = true
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !refused {
		t.Error("the server says that it is ready while it stops")
	}
	close(let)
	if got := <-brief; got != "whole<nil>" {
		t.Errorf("the short answer is %q", got)
	}
	if got := <-polite; got != ": hello\nevent: draining\n<nil>" {
		t.Errorf("the stream is %q", got)
	}
	must(t, <-ended)
	if _, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		t.Error("the server still listens")
	}
}

// TestStoppingWithSilentConnections: one that never brought a request is closed while requests are still served, and holds nothing up.
func TestStoppingWithSilentConnections(t *testing.T) {
	t.Parallel()
	began, closed := make(chan struct{}), make(chan struct{})
	g := newRig(t, local(front.Options{Limits: limited(func(l *front.Limits) { l.Grace = 4 * time.Second })}), map[string]http.HandlerFunc{
		"GET /v1/patient": func(w http.ResponseWriter, r *http.Request) {
			close(began)
			select {
			case <-closed:
				_, _ = io.WriteString(w, "whole")
			case <-r.Context().Done():
			}
		},
	})
	address, stop := serve(t, g)
	conn, err := net.Dial("tcp", address)
	must(t, err)
	defer conn.Close()
	text := make(chan string, 1)
	go func() {
		r, _ := http.NewRequestWithContext(context.Background(), "GET", "http://"+address+"/v1/patient", nil)
		r.Header.Set("X-Api-Key", anns)
		answer, err := new(http.Client).Do(r)
		if err != nil {
			text <- err.Error()
			return
		}
		defer answer.Body.Close()
		all, err := io.ReadAll(answer.Body)
		text <- fmt.Sprint(string(all), err)
	}()
	<-began
	go func() {
		defer close(closed)
		_, _ = conn.Read(make([]byte, 1))
	}()
	must(t, stop())
	if got := <-text; got != "whole<nil>" {
		t.Errorf("the request that ran got %q", got)
	}
}

func TestUnixSockets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	// What a server that was killed leaves behind.
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	must(t, err)
	old.SetUnlinkOnClose(false)
	must(t, old.Close())

	g := newRig(t, front.Options{Listen: []string{"unix:" + path}}, nil)
	_, stop := serve(t, g)
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v", info.Mode())
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://any.name/health", nil)
	must(t, err)
	answer, err := client.Do(r)
	must(t, err)
	_ = answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("it answers with %d", answer.StatusCode)
	}
	second := newRig(t, front.Options{Listen: []string{"unix:" + path}}, nil)
	_, err = second.Listen(t.Context())
	if p := problem.Of(err); p == nil || p.Code != "address_in_use" {
		t.Errorf("a second server on it: %v", err)
	}
	client.CloseIdleConnections()
	must(t, stop())
}

func TestWhatCannotBeListenedOn(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "precious")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	for name, c := range map[string]struct {
		o    front.Options
		code string
	}{
		"in use":             {front.Options{Listen: []string{busy.Addr().String()}}, "address_in_use"},
		"another machine's":  {front.Options{Listen: []string{"192.0.2.1:0"}}, "address_invalid"},
		"nonsense":           {front.Options{Listen: []string{"nonsense"}}, "address_invalid"},
		"a file":             {front.Options{Listen: []string{"unix:" + file}}, "address_in_use"},
		"open debug":         {local(front.Options{Debug: "0.0.0.0:0"}), "debug_not_local"},
		"metrics in use":     {local(front.Options{Metrics: busy.Addr().String()}), "address_in_use"},
		"no certificate":     {local(front.Options{Cert: "/nonexistent", Key: "/nonexistent"}), "tls_invalid"},
		"a key that is none": {local(front.Options{Cert: file, Key: file}), "tls_invalid"},
	} {
		_, err := newRig(t, c.o, nil).Listen(t.Context())
		if p := problem.Of(err); p == nil || p.Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, _ := os.ReadFile(file); string(text) != "x" {
		t.Error("a file was taken for an old socket")
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	g := newRig(t, local(front.Options{Limits: limited(func(l *front.Limits) { l.Connections, l.Header = 3, time.Minute })}), nil)
	address, stop := serve(t, g)
	g.url = "http://" + address
	var open []net.Conn
	for range 3 {
		c := dial(t, g, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answers(t, c, "HTTP/1.1 200")
		open = append(open, c)
	}
	answers(t, dial(t, g, ""), "HTTP/1.1 503")
	_ = open[0].Close()
	for range 1000 { // until the server has noticed
		c := dial(t, g, "")
		_, _ = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		_ = c.Close()
		if strings.HasPrefix(line, "HTTP/1.1 200") {
			must(t, stop())
			return
		}
	}
	t.Error("a place that was left is not given to others")
}

func answers(t *testing.T, c net.Conn, want string) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, want) {
		t.Errorf("the answer is %q (%v), not %s", line, err, want)
	}
}

// TestSlowHeads: connections that send a head slowly, or none, are closed, and others are served meanwhile.
func TestSlowHeads(t *testing.T) {
	t.Parallel()
	g := newRig(t, local(front.Options{Limits: limited(func(l *front.Limits) { l.Header, l.Idle = 200*time.Millisecond, 200*time.Millisecond })}), nil)
	address, stop := serve(t, g)
	g.url = "http://" + address
	slow := []net.Conn{dial(t, g, ""), dial(t, g, "GET /health HTTP/1.1\r\nHost: loc"), dial(t, g, "GET /health HTTP/1.1\r\nX: y\r\n")}
	answers(t, dial(t, g, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 200")
	for i, c := range slow {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil && os.IsTimeout(err) {
			t.Errorf("connection %d is still open", i)
		}
	}
	must(t, stop())
}

func TestSideListeners(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "debug")
	scrape := ownAddress()
	g := newRig(t, local(front.Options{Metrics: scrape, Debug: "unix:" + path}), nil)
	_, stop := serve(t, g)
	text, status := fetch(t, http.DefaultClient, "http://"+scrape+"/metrics")
	if status != 200 || !strings.Contains(text, "go_goroutines") {
		t.Errorf("the metrics are a %d", status)
	}
	if _, status := fetch(t, http.DefaultClient, "http://"+scrape+"/v1/things/1"); status != 404 {
		t.Errorf("the API is a %d beside the metrics", status)
	}
	for header, value := range map[string]string{"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+scrape+"/metrics", nil)
		must(t, err)
		if r.Header.Set(header, value); header == "Host" {
			r.Host = value
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		_ = answer.Body.Close()
		if answer.StatusCode != 403 {
			t.Errorf("a page in a browser here reads the metrics: %s %s is a %d", header, value, answer.StatusCode)
		}
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	if text, status := fetch(t, client, "http://localhost/debug/pprof/goroutine?debug=1"); status != 200 || !strings.Contains(text, "goroutine profile") {
		t.Errorf("the profile is a %d: %.100s", status, text)
	}
	if _, status := fetch(t, client, "http://localhost/debug/pprof/cmdline"); status != 404 {
		t.Errorf("the arguments are a %d", status)
	}
	client.CloseIdleConnections()
	must(t, stop())
}

// ownAddress is an address of this machine that no other test has, since there are millions: a port that was free before may be another's when it is used.
func ownAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:9100", 1+random.N(254), random.N(256), 1+random.N(254))
}

func fetch(t *testing.T, client *http.Client, url string) (string, int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	must(t, err)
	answer, err := client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return string(text), answer.StatusCode
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	handlers := map[string]http.HandlerFunc{"GET /v1/stream": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+"\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(3 * time.Second): // longer than the limit for stalls, which is what a client on a busy machine needs
			_, _ = io.WriteString(w, r.Proto+"\n")
		case <-r.Context().Done():
		}
	}}
	g := newRig(t, local(front.Options{Cert: cert, Key: key, Limits: limited(func(l *front.Limits) { l.Stall = 2 * time.Second })}), handlers)
	address, stop := serve(t, g)
	var all sync.WaitGroup
	for _, proto := range []string{"HTTP/2.0", "HTTP/1.1"} {
		all.Go(func() {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: proto == "HTTP/2.0"}
			defer transport.CloseIdleConnections()
			r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+address+"/v1/stream", nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("X-Api-Key", anns)
			answer, err := (&http.Client{Transport: transport}).Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if string(text) != strings.Repeat(proto+"\n", 2) || err != nil {
				t.Errorf("%s: the stream is %q (%v)", proto, text, err)
			}
		})
	}
	all.Wait()
	must(t, stop())
}

func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}), 0o600))
	return cert, key, pool
}
