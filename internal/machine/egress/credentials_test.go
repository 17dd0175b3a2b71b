package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
)

// TestCredentials adds a header to what a session sends to one host, by HTTP/1 and HTTP/2, and to nothing else.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const secret = "Bearer sk-very-secret"
	w := newWorld(t)
	w.names["named.test"] = []string{"93.184.215.17"}
	w.names["api.test"], w.names["other.test"], w.names["false.test"] = []string{good}, []string{"93.184.215.15"}, []string{"93.184.215.16"}
	tell := func(rw http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(rw, "%s %s %q %s", r.Proto, r.Host, r.Header["Authorization"], r.URL)
	}
	credentials := []egress.Credential{{Host: "api.test", Header: "authorization", Value: secret}, {Host: "false.test", Header: "X-Key", Value: secret}, {Host: "named.test", Name: "TOKEN", Value: "sk-very-secret"}}
	authority, err := egress.NewAuthority(credentials)
	if err != nil {
		t.Fatal(err)
	}
	text, err := authority.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if authority, err = egress.ParseAuthority(text); err != nil {
		t.Fatal(err)
	}
	// The hosts show certificates of an authority of the world's, but for false.test, which shows another's.
	ca, err := egress.NewAuthority([]egress.Credential{{Host: "api.test"}, {Host: "other.test"}, {Host: "named.test"}})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Certificate())
	for address, host := range map[string]string{good: "api.test", "93.184.215.15": "other.test", "93.184.215.17": "named.test"} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(tell))
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return egress.LeafOf(ca, host) }}
		s.StartTLS()
		t.Cleanup(s.Close)
		w.servers[address+":443"] = s.Listener.Addr().String()
	}
	w.serveTLS("93.184.215.16:443", tell)
	w.serve(good+":80", tell)
	d := w.with(egress.Options{Credentials: credentials, Authority: authority, Roots: roots}, nil, "api.test", "other.test", "false.test", "named.test")

	inside := x509.NewCertPool() // what programs of the session trust
	inside.AppendCertsFromPEM(d.Certificates())
	inside.AppendCertsFromPEM(ca.Certificate())
	get := func(url string, two bool) string {
		t.Helper()
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: inside, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: two, DialContext: func(_ context.Context, _, to string) (net.Conn, error) {
			host, port, _ := net.SplitHostPort(to)
			return w.connect(d, host, map[string]int{"80": 80, "443": 443}[port]), nil
		}}
		defer tr.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer of the session's own")
		if strings.Contains(url, "?token") {
			req.Header.Set("Authorization", "Bearer $TOKEN ${TOKEN} $TOKENS $OTHER $")
		}
		r, err := (&http.Client{Transport: tr, Timeout: 30 * time.Second}).Do(req)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = r.Body.Close() }()
		body, _ := io.ReadAll(r.Body)
		return fmt.Sprintf("%d %s %s", r.StatusCode, r.Proto, body)
	}
	own := `["Bearer of the session's own"]`
	for _, c := range []struct {
		url  string
		two  bool
		want string
	}{
		{"https://api.test/a", true, `200 HTTP/2.0 HTTP/2.0 api.test ["` + secret + `"] /a`},
		{"https://api.test/b", false, `200 HTTP/1.1 HTTP/2.0 api.test ["` + secret + `"] /b`},
		{"http://api.test/plain", false, `200 HTTP/1.1 HTTP/1.1 api.test ` + own + ` /plain`}, // nobody on the way may read it
		{"https://other.test/c", true, `200 HTTP/2.0 HTTP/2.0 other.test ` + own + ` /c`},
		{"https://named.test/d", true, `200 HTTP/2.0 HTTP/2.0 named.test ` + own + ` /d`},
		{"https://named.test/?token", true, `200 HTTP/2.0 HTTP/2.0 named.test ["Bearer sk-very-secret sk-very-secret $TOKENS $OTHER $"] /?token`},
		{"https://other.test/?token", true, `200 HTTP/2.0 HTTP/2.0 other.test ["Bearer $TOKEN ${TOKEN} $TOKENS $OTHER $"] /?token`},
	} {
		if got := get(c.url, c.two); got != c.want {
			t.Errorf("%s: %s, want %s", c.url, got, c.want)
		}
	}
	// A host that cannot show that it is that host gets nothing, and the answer does not tell the secret.
	if got := get("https://false.test/", true); !strings.HasPrefix(got, "502") || strings.Contains(got, secret) {
		t.Errorf("a false host: %s", got)
	}
	for _, e := range w.events {
		if strings.Contains(fmt.Sprint(e), secret) {
			t.Errorf("an event tells: %+v", e)
		}
	}
	// Within TLS the host is looked at, too.
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: inside, MinVersion: tls.VersionTLS12}, DialContext: func(context.Context, string, string) (net.Conn, error) { return w.connect(d, "api.test", 443), nil }}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "other.test"
	r, err := (&http.Client{Transport: tr, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusForbidden {
		t.Errorf("Host of another within TLS: %s", r.Status)
	}
	// The session's authority signs for nobody else.
	if leaf, err := egress.LeafOf(authority, "other.test"); err == nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority.Certificate())
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "other.test"}); err == nil {
			t.Error("the authority signs for a host that there is no credential for")
		}
	}
}

// sentWith returns a function that sends a request with headers to a host that gets credentials, and returns the answer: the headers as the host got them.
func sentWith(t *testing.T, credentials ...egress.Credential) func(method string, h http.Header) (status int, body string) {
	t.Helper()
	w := newWorld(t)
	w.names["api.test"] = []string{good}
	for i := range credentials {
		credentials[i].Host = "api.test"
	}
	authority, err := egress.NewAuthority(credentials)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := egress.NewAuthority([]egress.Credential{{Host: "api.test"}})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Certificate())
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(rw, "%q", r.Header["X-Sent"]) }))
	s.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return egress.LeafOf(ca, "api.test") }}
	s.StartTLS()
	t.Cleanup(s.Close)
	w.servers[good+":443"] = s.Listener.Addr().String()
	d := w.with(egress.Options{Credentials: credentials, Authority: authority, Roots: roots}, nil, "api.test")
	inside := x509.NewCertPool()
	inside.AppendCertsFromPEM(d.Certificates())
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: inside, MinVersion: tls.VersionTLS12}, DialContext: func(context.Context, string, string) (net.Conn, error) { return w.connect(d, "api.test", 443), nil }}
	t.Cleanup(tr.CloseIdleConnections)
	return func(method string, h http.Header) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h
		r, err := (&http.Client{Transport: tr, Timeout: 3 * time.Minute}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
}

// TestSecretsDoNotMultiply: the name of a secret within another one stays what it is, and a header that its secrets make too long is not sent.
func TestSecretsDoNotMultiply(t *testing.T) {
	t.Parallel()
	send := sentWith(t, egress.Credential{Name: "A", Value: strings.Repeat("$B", 4096)}, egress.Credential{Name: "B", Value: strings.Repeat("b", 8192)}, egress.Credential{Name: "C", Value: "${D}$A"}, egress.Credential{Name: "D", Value: "d"})
	for sent, want := range map[string]string{
		"$A": strings.Repeat("$B", 4096), "$C ${C}": "${D}$A ${D}$A", "$D$D${D}D$DD$D-${D": "ddd" + "D$DDd-${D", "a$": "a$", "${}$": "${}$", "$$D$": "$d$",
	} {
		if status, got := send(http.MethodGet, http.Header{"X-Sent": {sent}}); status != http.StatusOK || got != fmt.Sprintf("%q", []string{want}) {
			t.Errorf("%.40q: %d %.200q", sent, status, got)
		}
	}
	for _, h := range []http.Header{{"X-Sent": {strings.Repeat("$A", 20)}}, {"X-Sent": {strings.Repeat("$B,", 20)}}, {"X-One": {"$A$A$A$A"}, "X-Sent": {"$B$B$B$B", "$B"}}} {
		if status, got := send(http.MethodGet, h); status != http.StatusRequestHeaderFieldsTooLarge || !strings.Contains(got, "64 kB") {
			t.Errorf("%d values: %d %.200q", len(h["X-Sent"]), status, got)
		}
	}
	if status, got := send(http.MethodTrace, http.Header{"X-Sent": {"$D"}}); status != http.StatusForbidden {
		t.Errorf("TRACE: %d %.200q", status, got)
	}
}

func TestCheckCredentials(t *testing.T) {
	t.Parallel()
	rules, err := egress.ParseRules([]string{"api.test", "plain.test:80", "*.wild.test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []egress.Credential{
		{Host: "api.test", Header: "Host", Value: "x"}, {Host: "api.test", Header: "a b", Value: "x"}, {Host: "api.test", Header: "X"}, {Host: "api.test", Header: "X", Value: "a\r\nb"}, {Host: "*.wild.test", Header: "X", Value: "x"},
		{Host: "10.1.2.3", Header: "X", Value: "x"}, {Host: "plain.test", Header: "X", Value: "x"}, {Host: "none.test", Header: "X", Value: "x"}, {Host: "api.test", Header: "content-length", Value: "1"},
		{Host: "api.test", Header: "X", Value: strings.Repeat("x", 9000)}, {}, {Host: "api.test", Header: "X", Name: "X", Value: "x"}, {Host: "api.test", Name: "a-b", Value: "x"}, {Host: "api.test", Name: "1a", Value: "x"}, {Host: "api.test", Name: "a"},
	} {
		if err := egress.CheckCredentials([]egress.Credential{c}, rules); !problem.Has(err, problem.NetworkRule) || c.Value != "" && len(c.Value) > 1 && strings.Contains(err.Error(), c.Value) {
			t.Errorf("%.100v: %v", c, err)
		}
	}
	if err := egress.CheckCredentials([]egress.Credential{{Host: "api.test", Header: "Authorization", Value: "Bearer x"}, {Host: "a.wild.test", Header: "X-Key", Value: "x"}, {Host: "api.test", Name: "API_KEY", Value: "x"}}, rules); err != nil {
		t.Error(err)
	}
	if err := egress.CheckCredentials(make([]egress.Credential, egress.MostCredentials+1), rules); !problem.Has(err, problem.NetworkRule) {
		t.Error(err)
	}
}
