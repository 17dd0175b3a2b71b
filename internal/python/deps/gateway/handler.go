package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/python/deps/require"
)

// Handler serves the index below IndexURL to clients that use it as their HTTP proxy: PEP 503 pages and PEP 691 JSON, files with ranges. Requests for other
// hosts are refused. A refusal has its reason as text; Failures and Reasons have them for the caller.
func (g *Gateway) Handler() http.Handler { return http.HandlerFunc(g.serve) }

const (
	// Pages are asked for again each time, which costs next to nothing when they have not changed; files never change below their hash.
	revalidate = "no-cache"
	forever    = "public, max-age=31536000, immutable"
	plain      = "text/plain; charset=utf-8"
)

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	host := r.Host
	if r.URL.Host != "" {
		host = r.URL.Host
	}
	switch {
	case r.Method == http.MethodConnect:
		refuse(w, http.StatusForbidden, "There are no tunnels here: this is a proxy for the package index "+IndexURL+" alone.")
		return
	case !strings.EqualFold(strings.TrimSuffix(host, ":80"), indexHost) || r.URL.Scheme != "" && r.URL.Scheme != "http":
		refuse(w, http.StatusForbidden, "This is a proxy for the package index "+IndexURL+" alone, and no other host can be reached through it.")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "The package index can only be read.")
		return
	}
	if project, ok := strings.CutPrefix(r.URL.Path, "/simple/"); ok {
		g.servePage(w, r, strings.TrimSuffix(project, "/"))
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		if parts := strings.Split(rest, "/"); len(parts) == 3 {
			g.serveFile(w, r, parts[0], parts[1], parts[2])
			return
		}
	}
	refuse(w, http.StatusNotFound, "There is nothing here. The package index is at "+IndexURL)
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", plain)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	fmt.Fprintln(w, why)
}

// fail answers with a problem. What a package index answers to say that it has nothing is 404, also for what policy keeps back.
func fail(w http.ResponseWriter, err error) {
	p := problem.Of(err)
	status := http.StatusBadGateway
	switch p.Code {
	case string(problem.PackageUnknown), string(problem.PackageDenied), string(problem.PackageQuarantined), string(problem.FileUnknown):
		status = http.StatusNotFound
	case string(problem.FileWithheld), string(problem.PackageTooBig):
		status = http.StatusForbidden
	case string(problem.IndexTimeout):
		status = http.StatusGatewayTimeout
	}
	w.Header().Set("Cove-Problem", p.Code)
	text := p.Message
	if p.Hint != "" {
		text += ": " + p.Hint
	}
	refuse(w, status, text)
}

func (g *Gateway) servePage(w http.ResponseWriter, r *http.Request, name string) {
	asJSON := strings.Contains(r.Header.Get("Accept"), "application/vnd.pypi.simple.v1+json") || strings.Contains(r.Header.Get("Accept"), "application/vnd.pypi.simple.latest+json")
	if name == "" {
		// The names of all projects are nothing that a resolver needs.
		servePage(w, r, "root", asJSON, emptyIndex)
		return
	}
	if normal := require.Normalize(name); normal != name && projectName().MatchString(normal) {
		http.Redirect(w, r, IndexURL+normal+"/", http.StatusMovedPermanently)
		return
	}
	l, err := g.lookup(r.Context(), name, fresh)
	if err != nil {
		fail(w, err)
		return
	}
	servePage(w, r, l.sum, asJSON, l.render)
}

func servePage(w http.ResponseWriter, r *http.Request, sum string, asJSON bool, render func(asJSON bool) []byte) {
	kind, form := "text/html; charset=utf-8", "h"
	if asJSON {
		kind, form = "application/vnd.pypi.simple.v1+json", "j"
	}
	tag := `"` + form + renderVersion + sum + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", revalidate)
	h.Set("Vary", "Accept")
	h.Set("Content-Type", kind)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := render(asJSON)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a client that has gone needs no answer
	}
}

var oneRange = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^bytes=(\d+-\d*|-\d+)$`) })

func (g *Gateway) serveFile(w http.ResponseWriter, r *http.Request, project, sum, name string) {
	file, metadata := strings.CutSuffix(name, ".metadata")
	f, err := g.find(r.Context(), project, file, sum)
	if err != nil {
		fail(w, err)
		return
	}
	tag := `"` + f.SHA256 + `"`
	h := w.Header()
	if metadata {
		tag = `"` + f.SHA256 + `.m"`
	}
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		setImmutable(h, tag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	switch {
	case metadata:
		g.serveMetadata(w, r, f, tag)
	case g.offline && !f.from.local():
		fail(w, problem.New(problem.IndexOffline, "cove is offline, and "+f.Name+" is not here"))
	case f.from.local():
		g.serveLocal(w, r, f, tag)
	case r.Method == http.MethodHead && f.Size > 0:
		setImmutable(h, tag)
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Accept-Ranges", "bytes")
		h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodHead || oneRange().MatchString(r.Header.Get("Range")):
		g.relay(w, r, f, tag)
	default:
		g.serveWhole(w, r, f, tag)
	}
}

func setImmutable(h http.Header, tag string) {
	h.Set("ETag", tag)
	h.Set("Cache-Control", forever)
}

// serveMetadata passes on a file's core metadata, if it is what the page promises.
func (g *Gateway) serveMetadata(w http.ResponseWriter, r *http.Request, f *candidate, tag string) {
	if f.entry.metadata == "" || g.offline {
		fail(w, gone(f.Name+".metadata", f.from.name()))
		return
	}
	t, err := f.from.open(r.Context(), transferRequest{entry: f.entry, method: http.MethodGet, metadata: true})
	if err != nil {
		fail(w, err)
		return
	}
	defer t.end()
	body := &bounded{from: t, left: maxMetadata}
	text, err := io.ReadAll(body)
	if err != nil {
		fail(w, broken(r.Context(), f, err))
		return
	}
	got := sha256.Sum256(text)
	if f.entry.metadata != unknownSum && hex.EncodeToString(got[:]) != f.entry.metadata {
		fail(w, mismatch(f.Name+".metadata", f.from.name(), "its SHA-256 differs"))
		return
	}
	setImmutable(w.Header(), tag)
	w.Header().Set("Content-Type", plain)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(text)
	}
}

func broken(ctx context.Context, f *candidate, err error) error {
	return (&delivery{f: f}).broken(ctx, err)
}

func (g *Gateway) serveLocal(w http.ResponseWriter, r *http.Request, f *candidate, tag string) {
	t, err := f.from.open(r.Context(), transferRequest{entry: f.entry, method: http.MethodGet})
	if err != nil {
		fail(w, err)
		return
	}
	defer t.end()
	setImmutable(w.Header(), tag)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, filepath.Base(f.Name), f.entry.modified, t.file)
}

// relay passes on a part of a file, which cannot be compared with the hash of the whole, or what the index says of it.
func (g *Gateway) relay(w http.ResponseWriter, r *http.Request, f *candidate, tag string) {
	ranged := ""
	if r.Method == http.MethodGet {
		ranged = r.Header.Get("Range")
	}
	t, err := f.from.open(r.Context(), transferRequest{entry: f.entry, method: r.Method, ranged: ranged})
	if err != nil {
		fail(w, err)
		return
	}
	defer t.end()
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Range", "Accept-Ranges"} {
		setUnlessEmpty(h, name, t.answer.Header.Get(name))
	}
	if t.answer.StatusCode < 300 {
		setImmutable(h, tag)
	}
	h.Set("Content-Type", "application/octet-stream")
	w.WriteHeader(t.answer.StatusCode)
	if r.Method == http.MethodHead {
		return
	}
	limit := g.rules.MaxFile
	if limit <= 0 {
		limit = 1 << 62
	}
	if _, err := io.Copy(w, &bounded{from: t, left: limit}); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// serveWhole streams a file. Its end is held back until its hash is known, so that a client never has the whole of a wrong one.
func (g *Gateway) serveWhole(w http.ResponseWriter, r *http.Request, f *candidate, tag string) {
	setImmutable(w.Header(), tag)
	w.Header().Set("Content-Type", "application/octet-stream")
	if f.Size > 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(f.Size, 10))
	}
	hold := &holding{to: w}
	err := g.copyFile(r.Context(), f, hold, nil)
	if err == nil {
		err = hold.release()
	}
	if err == nil {
		return
	}
	if hold.begun || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler)
	}
	for _, name := range []string{"ETag", "Cache-Control", "Content-Length"} {
		w.Header().Del(name)
	}
	fail(w, err)
}

// holding passes on all but the last piece.
type holding struct {
	to    io.Writer
	last  []byte
	begun bool
}

func (h *holding) Write(p []byte) (int, error) {
	if err := h.release(); err != nil {
		return 0, err
	}
	h.last = append(h.last[:0], p...)
	return len(p), nil
}

func (h *holding) release() error {
	if len(h.last) == 0 {
		return nil
	}
	h.begun = true
	_, err := h.to.Write(h.last)
	h.last = h.last[:0]
	return err
}
