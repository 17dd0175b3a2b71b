package pyindex

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// reach says how the user wants servers to be reached.
func reach(env map[string]string, conf config) (Access, error) {
	a := Access{Insecure: append(words(env["UV_INSECURE_HOST"]), conf.InsecureHost...)}
	a.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities(env["SSL_CERT_FILE"], env["SSL_CERT_DIR"])}
	if path := env["SSL_CLIENT_CERT"]; path != "" {
		certificate, err := tls.LoadX509KeyPair(path, path)
		if err != nil {
			return Access{}, unreadable("the client certificate of SSL_CLIENT_CERT", path, err)
		}
		a.TLS.Certificates = []tls.Certificate{certificate}
	}
	var err error
	a.Proxy, err = proxies(env, conf)
	return a, err
}

// authorities returns the certificates of a file and of folders, or nil for those of the system. As with uv, what cannot be read does not count.
func authorities(file, dirs string) *x509.CertPool {
	pool, found := x509.NewCertPool(), false
	add := func(path string) {
		if text, err := os.ReadFile(path); err == nil && pool.AppendCertsFromPEM(text) {
			found = true
		}
	}
	if file != "" {
		add(file)
	}
	for _, dir := range filepath.SplitList(dirs) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			// OpenSSL's folders have a link beside each certificate, under its hash.
			target, err := os.Readlink(path)
			if entry.IsDir() || err == nil && !strings.Contains(target, "/") {
				continue
			}
			add(path)
		}
	}
	if !found {
		return nil
	}
	return pool
}

// proxies returns the user's proxies. Variables come before uv's configuration.
func proxies(env map[string]string, conf config) (func(*http.Request) (*url.URL, error), error) {
	either := func(name string) string { return firstOf(env[strings.ToLower(name)], env[name]) }
	all := either("ALL_PROXY")
	c := httpproxy.Config{
		HTTPProxy:  firstOf(either("HTTP_PROXY"), conf.HTTPProxy, all),
		HTTPSProxy: firstOf(either("HTTPS_PROXY"), conf.HTTPSProxy, all),
		NoProxy:    firstOf(either("NO_PROXY"), strings.Join(conf.NoProxy, ",")),
	}
	for _, proxy := range []string{c.HTTPProxy, c.HTTPSProxy} {
		if !usableProxy(proxy) {
			return nil, invalid("a proxy that is set is no URL: " + redact(proxy)).WithHint("correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY")
		}
	}
	choose := c.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }, nil
}

// usableProxy checks what httpproxy would otherwise complain of at each request, in words that hold the password.
func usableProxy(proxy string) bool {
	if proxy == "" {
		return true
	}
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return false
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return true
	}
	return false
}
