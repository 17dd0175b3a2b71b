package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"cove/internal/python/deps/indextest"
)

// foreignHost is a name that only the checks' browser knows: it leads to this machine.
const foreignHost = "cove.example"

// subPath is where a proxy has the page.
const subPath = "/tools/cove"

// pageWorld is a server that checks of the page can kill, stop and hide from their browser, and the proxies through which the browser sees it.
type pageWorld struct {
	t      *testing.T
	index  *indextest.Index
	folder string
	env    []string

	mu     sync.Mutex
	server *server
	hidden bool
	below  *httptest.Server // under subPath
	secure *httptest.Server // with TLS, at the root
	plain  *httptest.Server // without TLS, at the root
	orders *httptest.Server
	letGo  func() // lets the index go on
}

func newPageWorld(t *testing.T, index *indextest.Index, env ...string) *pageWorld {
	t.Helper()
	w := &pageWorld{t: t, index: index, letGo: func() {}, folder: t.TempDir(), env: append([]string{"COVE_TRUSTED_PROXIES=127.0.0.1", "COVE_ALLOW_HOSTS=" + foreignHost}, env...)}
	w.server = startServer(t, w.folder, testKey(t), w.env...)
	mux := http.NewServeMux()
	mux.Handle(subPath+"/", http.StripPrefix(subPath, w.proxy("http")))
	w.below = httptest.NewServer(mux)
	w.secure = httptest.NewTLSServer(w.proxy("https"))
	w.plain = httptest.NewServer(w.proxy("http"))
	w.orders = httptest.NewServer(http.HandlerFunc(w.obey))
	t.Cleanup(func() {
		w.hide() // streams have no end of their own
		w.below.Close()
		w.secure.Close()
		w.plain.Close()
		w.orders.Close()
	})
	return w
}

// proxy passes requests on to whichever server there is now, as a proxy in front of cove does that ends TLS or has other programs beside it.
func (w *pageWorld) proxy(scheme string) http.Handler {
	passes := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			w.mu.Lock()
			base, err := url.Parse(w.server.base)
			w.mu.Unlock()
			if err != nil {
				panic(err)
			}
			r.SetURL(base)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
			r.Out.Header.Set("X-Forwarded-Proto", scheme)
		},
		ErrorHandler: func(out http.ResponseWriter, _ *http.Request, _ error) { out.WriteHeader(http.StatusBadGateway) },
	}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		hidden := w.hidden
		w.mu.Unlock()
		if hidden {
			panic(http.ErrAbortHandler)
		}
		passes.ServeHTTP(out, r)
	})
}

// hide ends all connections, and lets no request through any more.
func (w *pageWorld) hide() {
	w.mu.Lock()
	w.hidden = true
	w.mu.Unlock()
	w.below.CloseClientConnections()
	w.secure.CloseClientConnections()
	w.plain.CloseClientConnections()
}

func (w *pageWorld) obey(out http.ResponseWriter, r *http.Request) {
	switch order := strings.TrimPrefix(r.URL.Path, "/"); order {
	case "hide":
		w.hide()
	case "show":
		w.mu.Lock()
		w.hidden = false
		w.mu.Unlock()
	case "hold":
		_, w.letGo = w.index.Hold("/files/" + pageWheel.Filename())
	case "release":
		w.letGo()
	case "kill", "stop":
		if order == "kill" {
			w.server.kill()
		} else {
			w.server.stop()
		}
		next := startServer(w.t, w.folder, w.server.key, w.env...)
		w.mu.Lock()
		w.server = next
		w.mu.Unlock()
	default:
		http.NotFound(out, r)
	}
}

// settings are what the checks learn of it.
func (w *pageWorld) settings() []string {
	return []string{
		"COVE_MORTAL=" + w.below.URL + subPath, "COVE_MORTAL_KEY=" + w.server.key,
		"COVE_SECURE=" + w.secure.URL, "COVE_SECURE_KEY=" + w.server.key,
		"COVE_FOREIGN=" + strings.Replace(w.plain.URL, "127.0.0.1", foreignHost, 1), "COVE_FOREIGN_KEY=" + w.server.key, "COVE_FOREIGN_HOST=" + foreignHost,
		"COVE_ORDERS=" + w.orders.URL,
	}
}

// manyTurns are in the longest conversation of the checks.
const manyTurns = 1000

// converse asks many questions that need no code, one after the other, in one conversation, and returns its address in the page.
func (s *server) converse(n int) string {
	s.t.Helper()
	var turn struct{ ID, Conversation, State string }
	path := "/api/v1/turns"
	for k := range n {
		body := map[string]any{"prompt": fmt.Sprintf("question number %d", k), "python": false}
		if turn.ID != "" {
			path, body["parent"] = "/api/v1/conversations/"+turn.Conversation+"/turns", turn.ID
		}
		if s.must("POST", path, body, &turn); turn.State != "completed" {
			s.t.Fatalf("turn %d is %s", k, turn.State)
		}
	}
	return "c/" + turn.Conversation
}
