// Package webpage serves the web page: files that were built before, under addresses that change with their content.
//
// The page may be below any path of a proxy's, and is not told which: all of its links are relative. How far up the server's root is depends on the address
// that was asked for, so that is written into each answer.
package webpage

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
)

// Options are what a page is made of.
type Options struct {
	// Files are the built page: index.html, frame.html where there is one, and what is in the folder assets.
	Files fs.FS
	// Refuse writes a problem; see protocol.Surface.
	Refuse func(w http.ResponseWriter, r *http.Request, p *problem.Error)
	// Scripts allows the frame to run scripts of outputs, when it is asked for with ?scripts=1.
	Scripts bool
	// Taken are the beginnings of addresses that are never the page's, without slashes: "api". What is there is somebody else's, or nothing.
	Taken []string
}

// What the server replaces in index.html. A page without them gets both in elements of its head.
const (
	nonceHole = "__NONCE__" // of the styles that this answer may have
	baseHole  = "__BASE__"  // the server's root, as seen from the address that was asked for: "./", "../", ...
)

// metas is what a page gets that does not say where it wants its nonce and the root.
// React Aria looks for the nonce under a name of its own.
const metas = `<meta name="style-nonce" content="` + nonceHole + `"><meta name="csp-nonce" property="csp-nonce" content="` + nonceHole +
	`"><meta name="page-base" content="` + baseHole + `">`

// assets is the folder whose files never change under their address.
const assets = "assets/"

// site is the page, ready to be served.
type site struct {
	o     Options
	hash  string // of all files
	files map[string]file
	index []byte // with holes
	frame file   // nothing where there is none
}

// file is a file with what an answer says of it.
type file struct {
	content    []byte
	packed     func() []byte // with gzip, made when it is first asked for; nil where that is not smaller
	kind, etag string
}

// Surface returns the page in the form in which package front mounts it.
func Surface(o Options) (protocol.Surface, error) {
	s := &site{o: o, files: map[string]file{}}
	if err := s.read(); err != nil {
		return protocol.Surface{}, err
	}
	public := func(pattern string) protocol.Route {
		return protocol.Route{Method: http.MethodGet, Pattern: pattern, Access: protocol.Public}
	}
	return protocol.Surface{
		About: "the page, for browsers", Prefix: "/", Only: func(r *http.Request) bool { return s.has(r.URL.Path) }, Handler: s, Refuse: o.Refuse,
		Routes: []protocol.Route{public("/{$}"), public("/frame"), public("/assets/{file...}"), public("/{page...}")},
	}, nil
}

// read takes the files in, and makes what of them is the same in each answer.
func (s *site) read() error {
	sum := sha256.New()
	err := fs.WalkDir(s.o.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(s.o.Files, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
		s.files[name] = file{content: content}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	if len(s.files["index.html"].content) == 0 {
		return fmt.Errorf("read the page: there is no index.html")
	}
	s.hash = hex.EncodeToString(sum.Sum(nil)[:10])
	s.index = s.linked(withHoles(s.files["index.html"].content), baseHole)
	if shell, ok := s.files["frame.html"]; ok {
		s.frame = prepared("frame.html", s.linked(shell.content, "./"))
	}
	delete(s.files, "index.html")
	delete(s.files, "frame.html")
	for name, f := range s.files {
		s.files[name] = prepared(name, f.content)
	}
	return nil
}

// withHoles returns a page that has both holes.
func withHoles(index []byte) []byte {
	if bytes.Contains(index, []byte(nonceHole)) || bytes.Contains(index, []byte(baseHole)) {
		return index
	}
	return bytes.Replace(index, []byte("<head>"), []byte("<head>\n    "+metas), 1)
}

// linked has a page's own links, which begin with "./", begin with base, and those of assets have the hash.
func (s *site) linked(text []byte, base string) []byte {
	return []byte(strings.NewReplacer(`"./`+assets, `"`+base+assets+s.hash+"/", `"./`, `"`+base).Replace(string(text)))
}

func prepared(name string, content []byte) file {
	sum := sha256.Sum256(content)
	return file{content: content, packed: sync.OnceValue(func() []byte { return packed(content) }), kind: kindOf(name), etag: hex.EncodeToString(sum[:10])}
}

// packed compresses; nil where that is of no use.
func packed(content []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = w.Write(content)
	_ = w.Close()
	if out.Len() >= len(content)*9/10 {
		return nil
	}
	return out.Bytes()
}

// kinds are the types of files by the ends of their names. The machine is not asked: its tables differ.
var kinds = map[string]string{
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8", ".svg": "image/svg+xml", ".json": "application/json", ".wasm": "application/wasm", ".png": "image/png",
	".webp": "image/webp", ".ico": "image/x-icon", ".webmanifest": "application/manifest+json", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

func kindOf(name string) string {
	if kind, ok := kinds[path.Ext(name)]; ok {
		return kind
	}
	return "application/octet-stream"
}

// has says whether an address is the page's: a file of it, or one without a dot that its scripts know, which nobody else has.
func (s *site) has(address string) bool {
	name := strings.TrimPrefix(address, "/")
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains(s.o.Taken, strings.ToLower(first)) {
		return false
	}
	if first+"/" == assets {
		_, ok := s.files[s.asset(name)]
		return ok
	}
	if name == "frame" {
		return s.frame.content != nil
	}
	_, ok := s.files[name]
	return ok || !strings.Contains(name, ".")
}

// asset is the name of the file that an address below assets stands for; "" where the hash is another page's.
func (s *site) asset(name string) string {
	rest, ok := strings.CutPrefix(name, assets+s.hash+"/")
	if !ok {
		return ""
	}
	return assets + rest
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		s.o.Refuse(w, r, problem.New(problem.MethodNotAllowed, "this address can only be read").WithHint("it knows GET, HEAD"))
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if f, ok := s.files[s.asset(name)]; ok {
		f.serve(w, r, assetHeaders(name, f.kind))
		return
	}
	if name == "frame" {
		policy := framePolicy
		if s.o.Scripts && r.URL.Query().Get("scripts") == "1" {
			policy = scriptsPolicy
		}
		s.frame.serve(w, r, frameHeaders(policy))
		return
	}
	if f, ok := s.files[name]; ok && !strings.HasPrefix(name, assets) {
		f.serve(w, r, looseHeaders(f.kind))
		return
	}
	s.serveIndex(w, r)
}

// serveIndex answers with the page itself.
func (s *site) serveIndex(w http.ResponseWriter, r *http.Request) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	nonce := base64.StdEncoding.EncodeToString(random[:])
	for name, value := range indexHeaders(nonce) {
		w.Header().Set(name, value)
	}
	text := strings.NewReplacer(nonceHole, nonce, baseHole, up(r.URL.EscapedPath())).Replace(string(s.index))
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte(text))
	}
}

// up is the way from an address to the root.
func up(address string) string {
	if folders := strings.Count(address, "/") - 1; folders > 0 {
		return strings.Repeat("../", folders)
	}
	return "./"
}

// serve answers with a file that is the same for everybody.
func (f file) serve(w http.ResponseWriter, r *http.Request, headers map[string]string) {
	h := w.Header()
	for name, value := range headers {
		h.Set(name, value)
	}
	content, etag := f.content, `"`+f.etag+`"`
	h.Set("Vary", "Accept-Encoding")
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		if small := f.packed(); small != nil {
			content, etag = small, `"`+f.etag+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		h.Del("Content-Encoding")
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(content)
	}
}

func takesGzip(accepted string) bool {
	for one := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(one), " ", ""), ";")
		if name == "gzip" || name == "*" {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

func matches(header, etag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == etag {
			return true
		}
	}
	return false
}
