package gateway

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cove/internal/core/problem"
)

// Serve serves Handler at a port of the loopback interface until ctx ends and returns its URL, for a client's HTTP_PROXY. The URL has a password in it:
// other users of the machine can connect to the port, but what the user's credentials open is not theirs to read.
func (g *Gateway) Serve(ctx context.Context) (proxy string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		listener, err = net.Listen("tcp", "[::1]:0")
	}
	if err != nil {
		return "", problem.New(problem.GatewayFailed, "there is no port free on this machine for reading package indexes").
			WithHint("end programs that keep many connections open, and try again").WithCause(err)
	}
	password := rand.Text()
	wanted := "Basic " + base64.StdEncoding.EncodeToString([]byte("cove:"+password))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(wanted)) != 1 {
			w.Header().Set("Proxy-Authenticate", `Basic realm="cove"`)
			refuse(w, http.StatusProxyAuthRequired, "This proxy is for another program.")
			return
		}
		g.serve(w, r)
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // it ends with the context, and says nothing else
	u := url.URL{Scheme: "http", User: url.UserPassword("cove", password), Host: listener.Addr().String()}
	return u.String(), nil
}

// Environment returns the environment for uv as a client of a gateway at proxy: that of the caller without what tells uv and pip of indexes, proxies and
// certificates. With it, uv reaches the gateway and no other host.
func Environment(environ []string, proxy string) []string {
	var env []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name)
		if strings.HasPrefix(upper, "UV_") && upper != "UV_CACHE_DIR" || strings.HasPrefix(upper, "PIP_") || strings.HasSuffix(upper, "_PROXY") ||
			strings.HasPrefix(upper, "SSL_") || upper == "NETRC" || misleading(upper) {
			continue
		}
		env = append(env, pair)
	}
	return append(env, "HTTP_PROXY="+proxy, "http_proxy="+proxy, "HTTPS_PROXY="+proxy, "ALL_PROXY="+proxy, "NO_PROXY=", "no_proxy=",
		"UV_DEFAULT_INDEX="+IndexURL, "UV_NO_CONFIG=1", "UV_HTTP_RETRIES=0", "UV_HTTP_TIMEOUT=120", "UV_KEYRING_PROVIDER=disabled", "NETRC=/dev/null",
		"UV_NO_PROGRESS=1", "UV_PYTHON_DOWNLOADS=never", "NO_COLOR=1")
}

func misleading(name string) bool {
	switch name {
	case "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "RUST_LOG", "FORCE_COLOR":
		return true
	}
	return false
}
