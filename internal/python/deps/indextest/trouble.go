package indextest

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Trouble is a way to misbehave.
type Trouble int

// The troubles. Those that answer nothing do so until the client goes or the index is closed.
const (
	none         Trouble = iota
	SlowHeaders          // no answer at all
	StalledBody          // half of the answer, and no more
	Truncated            // half of the answer, and the end of the connection
	Corrupt              // an answer of the right length with a byte changed in its middle
	Malformed            // what is neither HTML nor JSON, or neither wheel nor archive
	Hollow               // well-formed JSON or HTML with nothing in it that belongs there
	ServerError          // 500
	Overloaded           // 503
	Denied               // 401
	Forbidden            // 403
	Missing              // 404
	RedirectLoop         // to itself, with ever new queries
	Endless              // a page or file that never ends
)

type trouble struct {
	kind Trouble
	left int // requests; negative: all
	gate chan struct{}
	here chan struct{}
}

// Misbehave makes requests for a path go wrong: all of them, or, where times is more than 0, as many. The path is such as "/simple/numpy/" or "/files/x-1.0-py3-none-any.whl", one with a
// * at its end stands for all that begin so, and a new trouble of a path takes the place of an old one.
func (i *Index) Misbehave(path string, kind Trouble, times int) {
	if times <= 0 {
		times = -1
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.troubles[path] = &trouble{kind: kind, left: times}
}

// Behave ends the troubles of a path; "" ends all.
func (i *Index) Behave(path string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if path == "" {
		clear(i.troubles)
	}
	delete(i.troubles, path)
}

// Hold makes requests for a path (as of Misbehave) wait. arrived is closed with the first that waits; release lets all go on, and may be called twice.
func (i *Index) Hold(path string) (arrived <-chan struct{}, release func()) {
	t := &trouble{kind: none, left: -1, gate: make(chan struct{}), here: make(chan struct{})}
	i.mu.Lock()
	i.troubles[path] = t
	i.mu.Unlock()
	return t.here, sync.OnceFunc(func() {
		i.mu.Lock()
		if i.troubles[path] == t {
			delete(i.troubles, path)
		}
		i.mu.Unlock()
		close(t.gate)
	})
}

// troubleOf takes one request's share of the trouble that a path has, and waits where it is held. i.mu is held by the caller, and
// released while waiting.
func (i *Index) troubleOf(path string) Trouble {
	t, found := i.troubles[path]
	for pattern := range maps.Keys(i.troubles) {
		prefix, open := strings.CutSuffix(pattern, "*")
		if !found && open && strings.HasPrefix(path, prefix) {
			t, found = i.troubles[pattern], true
		}
	}
	switch {
	case !found || t.left == 0:
		return none
	case t.left > 0:
		t.left--
	}
	if t.gate != nil {
		select {
		case <-t.here:
		default:
			close(t.here)
		}
		i.mu.Unlock()
		defer i.mu.Lock()
		select {
		case <-t.gate:
		case <-i.done:
		}
	}
	return t.kind
}

func (i *Index) misbehave(kind Trouble, w http.ResponseWriter, r *http.Request) {
	switch kind {
	case SlowHeaders:
		i.wait(r)
	case ServerError, Overloaded, Forbidden, Missing:
		http.Error(w, "this is a test", map[Trouble]int{ServerError: 500, Overloaded: 503, Forbidden: 403, Missing: 404}[kind])
	case Denied:
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	case RedirectLoop:
		http.Redirect(w, r, r.URL.Path+"?"+strings.Repeat("x", len(r.URL.RawQuery)+1), http.StatusFound)
	case Endless:
		i.pour(w, r)
	case Malformed:
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte("{\"files\": [<a href=\"\x00"))
	case Hollow:
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(`{"meta": 1, "files": "none", "name": []}`))
	default:
		i.damage(kind, w, r)
	}
}

// wait waits for the end of the request or of the index; then it ends the connection, so that nothing looks like an answer.
func (i *Index) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-i.done:
	}
	panic(http.ErrAbortHandler)
}

func (i *Index) pour(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", htmlType)
	block := bytes.Repeat([]byte("<a href=\"../../files/x\">x</a>\n"), 1000)
	for r.Context().Err() == nil {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// damage answers as it should, but for the body.
func (i *Index) damage(kind Trouble, w http.ResponseWriter, r *http.Request) {
	recorder := httptest.NewRecorder()
	i.answer(recorder, r)
	body := recorder.Body.Bytes()
	maps.Copy(w.Header(), recorder.Header())
	half := len(body) / 2
	if kind == Corrupt {
		if len(body) > 0 {
			body[half] ^= 0xff
		}
		half = len(body)
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(body[:half])
	if kind == Corrupt {
		return
	}
	_ = http.NewResponseController(w).Flush()
	if kind == StalledBody {
		i.wait(r)
	}
	panic(http.ErrAbortHandler)
}
