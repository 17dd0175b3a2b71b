// Package indextest is a package index for tests, on the loopback interface: it speaks PEP 503 and PEP 691 as real indexes and their
// mirrors do, serves wheels and source distributions that are made on the fly, counts who asks for what, and misbehaves on request.
package indextest

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/python/deps/require"
)

// Style is how an index answers.
type Style int

// The styles.
const (
	Negotiated Style = iota // JSON for clients that accept it, otherwise HTML without upload times, as the large public index does
	JSON                    // nothing but PEP 691 JSON
	HTML                    // nothing but PEP 503 HTML, without upload times
	Mirror                  // HTML with data-upload-time and without metadata files, as some caching mirrors do
)

// Index is a running index. Its methods may be called at any time, from several goroutines.
type Index struct {
	URL string // of the simple API, with a slash at its end

	server *httptest.Server
	done   chan struct{} // closed when the index goes, so that what hangs ends
	close  func()

	mu        sync.Mutex
	style     Style
	metadata  bool
	releases  map[string][]listing // by project
	files     map[string]listing   // by file name
	statuses  map[string]string
	user      string
	password  string
	troubles  map[string]*trouble
	requests  map[string]int
	downloads map[string]int
}

// Release is a Wheel or an Sdist.
type Release interface {
	// Filename is the name of the release's file.
	Filename() string
	// Bytes makes the file, the same each time.
	Bytes() []byte
	listing() listing
}

// Listed is what an index says of a file. Its zero value is the truth, uploaded in 2020.
type Listed struct {
	Uploaded       time.Time // the zero time is 2020-01-02
	Undated        bool      // do not say when it was uploaded
	Yanked         string    // the reason; "" means that it is not
	RequiresPython string    // of the page, and of the metadata
	Hash           string    // a SHA-256 to tell in place of the true one; "none" to tell none
	Size           int64     // to tell in place of the true one, where sizes are told
}

type listing struct {
	Listed
	project, version, name string
	content, metadata      []byte
	sum                    string
}

// New starts an empty index that ends with the test. It answers in the Negotiated style, with metadata files.
func New(t testing.TB) *Index {
	t.Helper()
	i := empty()
	i.server = httptest.NewServer(http.HandlerFunc(i.serve))
	i.start(t)
	return i
}

// NewTLS is New with a certificate that nobody trusts but who is given Certificates.
func NewTLS(t testing.TB) *Index {
	t.Helper()
	i := empty()
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(i.serve))
	i.server.Config.ErrorLog = discard()
	i.server.StartTLS()
	i.start(t)
	return i
}

// Absent returns the URL of an index at a port where nobody listens.
func Absent(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://%s/simple/", l.Addr())
}

func empty() *Index {
	return &Index{
		done: make(chan struct{}), metadata: true, releases: map[string][]listing{}, files: map[string]listing{}, statuses: map[string]string{},
		troubles: map[string]*trouble{}, requests: map[string]int{}, downloads: map[string]int{},
	}
}

func (i *Index) start(t testing.TB) {
	i.URL = i.server.URL + "/simple/"
	i.close = sync.OnceFunc(func() {
		close(i.done)
		i.server.CloseClientConnections()
		i.server.Close()
	})
	t.Cleanup(i.close)
}

// Close ends the index: its port is closed from then on.
func (i *Index) Close() { i.close() }

// Certificates are what a client has to trust of an index made with NewTLS.
func (i *Index) Certificates() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.server.Certificate())
	return pool
}

// Add puts releases into the index; one with the name of a file that is there replaces it.
func (i *Index) Add(releases ...Release) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range releases {
		l := r.listing()
		l.name, l.content = r.Filename(), r.Bytes()
		l.project = require.Normalize(l.project)
		sum := sha256.Sum256(l.content)
		l.sum = hex.EncodeToString(sum[:])
		i.releases[l.project] = append(slices.DeleteFunc(i.releases[l.project], func(old listing) bool { return old.name == l.name }), l)
		i.files[l.name] = l
	}
}

// Remove takes a project out of the index, with its files.
func (i *Index) Remove(project string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.releases[require.Normalize(project)] {
		delete(i.files, l.name)
	}
	delete(i.releases, require.Normalize(project))
}

// Speak sets the style of answers; Mirror switches metadata files off, too.
func (i *Index) Speak(s Style) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.style = s
	i.metadata = s != Mirror
}

// Metadata sets whether there are metadata files beside the wheels (PEP 658).
func (i *Index) Metadata(on bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.metadata = on
}

// Status sets the status of a project (PEP 792): "active", "archived", "quarantined", "deprecated".
func (i *Index) Status(project, status string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.statuses[require.Normalize(project)] = status
}

// Lock makes the index answer those alone who give this user and password.
func (i *Index) Lock(user, password string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.user, i.password = user, password
}

// Requests says how often a path was asked for, with any method, such as "/simple/numpy/"; "" is the number of all requests.
func (i *Index) Requests(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if path != "" {
		return i.requests[path]
	}
	all := 0
	for _, n := range i.requests {
		all += n
	}
	return all
}

// Downloads says how often a file was fetched, whole or in part; "" is the number for all files. Metadata files do not count.
func (i *Index) Downloads(file string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if file != "" {
		return i.downloads[file]
	}
	all := 0
	for _, n := range i.downloads {
		all += n
	}
	return all
}

func (i *Index) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.requests[r.URL.Path]++
	user, password, _ := r.BasicAuth()
	denied := (i.user != "" || i.password != "") && (user != i.user || password != i.password)
	kind := i.troubleOf(r.URL.Path)
	i.mu.Unlock()
	if denied {
		kind = Denied
	}
	if kind == none {
		i.answer(w, r)
		return
	}
	i.misbehave(kind, w, r)
}

func (i *Index) answer(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		i.serveFile(w, r, name)
		return
	}
	project, ok := strings.CutPrefix(r.URL.Path, "/simple/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	name := require.Normalize(strings.TrimSuffix(project, "/"))
	if project != "" && project != name+"/" {
		http.Redirect(w, r, "/simple/"+name+"/", http.StatusMovedPermanently)
		return
	}
	i.servePage(w, r, name)
}

func (i *Index) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	i.mu.Lock()
	wheel, isMetadata := strings.CutSuffix(name, ".metadata")
	file, found := i.files[wheel]
	found = found && (!isMetadata || i.metadata && file.metadata != nil)
	if found && !isMetadata && r.Method == http.MethodGet {
		i.downloads[name]++
	}
	i.mu.Unlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	content := file.content
	if isMetadata {
		content = file.metadata
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+file.sum+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
