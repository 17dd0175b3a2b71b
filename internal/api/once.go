package api

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"cove/internal/auth"
	"cove/internal/problem"
)

// repeat says what an Idempotency-Key does.
type repeat int

const (
	repeatNever  repeat = iota
	repeatKept          // the first answer is kept here, and given again
	repeatHub           // the hub knows the word and has the answer; here the bodies are compared
	answerLife   = 24 * time.Hour
	answerSize   = 256 << 10
	answersBytes = 64 << 20
	answersCount = 50_000
	maxOnce      = 200
)

// question is a request that may come again: of a caller, to a route, with a word of the caller's.
type question struct {
	id   [32]byte // a hash of all three: what clients send is as long as they like
	word string
	body [32]byte // SHA-256
}

func (s *server) question(r *http.Request) question {
	who, _ := auth.From(r.Context())
	word := r.Header.Get("Idempotency-Key")
	return question{id: sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q", who.Project, who.User, who.Key, r.Method, r.URL.RequestURI(), word)), word: word}
}

// answers keeps what repeated requests are answered with. It is in memory: a restart of the server forgets it, and it forgets the
// oldest when there are too many.
type answers struct {
	now   func() time.Time
	mu    sync.Mutex
	byID  map[[32]byte]*kept
	order list.List // of *kept, the oldest first
	bytes int
}

type kept struct {
	id     [32]byte
	place  *list.Element // nil: forgotten
	hash   [32]byte
	at     time.Time
	done   bool
	status int
	header http.Header
	body   []byte
}

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, byID: map[[32]byte]*kept{}}
}

// serve answers q from what is kept, or has handle answer and keeps it if it was a success.
func (a *answers) serve(w http.ResponseWriter, r *http.Request, how repeat, q question, handle func(http.ResponseWriter, *http.Request)) error {
	was, first, err := a.claim(q)
	switch {
	case err != nil:
		return err
	case !first && was.hash != q.body:
		return errOtherBody()
	case !first && how == repeatKept:
		return was.again(w)
	case !first:
		handle(w, r)
		return nil
	}
	copied := &copying{ResponseWriter: w}
	if how == repeatKept {
		copied.limit = answerSize
	}
	defer func() { a.settle(was, how, q.body, copied) }()
	handle(copied, r)
	return nil
}

// serveUpload is serve for content that is too large to be held: what it was is known when it is over. said are the words about it. The body
// around the content does not count: a form that is sent again has another boundary.
func (a *answers) serveUpload(w http.ResponseWriter, q question, said string, content io.Reader, do func(http.ResponseWriter, io.Reader) error) error {
	was, first, err := a.claim(q)
	if err != nil {
		return err
	}
	if !first && !was.done {
		return errInProgress()
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q", said)
	if !first {
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		if [32]byte(sum.Sum(nil)) != was.hash {
			return errOtherBody()
		}
		return was.again(w)
	}
	copied := &copying{ResponseWriter: w, limit: answerSize}
	defer func() { a.settle(was, repeatKept, [32]byte(sum.Sum(nil)), copied) }()
	return do(copied, io.TeeReader(content, sum))
}

func errOtherBody() error {
	return problem.New(problem.IdempotencyMismatch, "this Idempotency-Key was used with another body").WithHint("use a new one for a new request")
}

func errInProgress() error {
	return problem.New(problem.IdempotencyInProgress, "the first request with this Idempotency-Key is not answered yet").WithHint("repeat it in a moment")
}

// again gives the first answer once more.
func (k *kept) again(w http.ResponseWriter) error {
	if !k.done {
		return errInProgress()
	}
	maps.Copy(w.Header(), k.header)
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(k.status)
	_, _ = w.Write(k.body)
	return nil
}

// claim finds the question, and returns a copy of what is kept of it, or notes it as new, to be settled.
func (a *answers) claim(q question) (was *kept, first bool, err error) {
	if !goodWord(q.word) {
		return nil, false, problem.New(problem.InvalidRequest, "the Idempotency-Key must be 1 to 200 visible ASCII characters")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for front := a.order.Front(); front != nil; front = a.order.Front() {
		k := front.Value.(*kept)
		if a.now().Sub(k.at) < answerLife && a.bytes < answersBytes && a.order.Len() < answersCount {
			break
		}
		a.forget(k)
	}
	if k := a.byID[q.id]; k != nil {
		return new(*k), false, nil
	}
	k := &kept{id: q.id, hash: q.body, at: a.now()}
	k.place = a.order.PushBack(k)
	a.byID[k.id] = k
	return k, true, nil
}

// settle keeps an answer, unless it was a failure, which may be tried again, or is too large. Of what the hub keeps, the question is enough.
func (a *answers) settle(k *kept, how repeat, hash [32]byte, c *copying) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case k.place == nil: // forgotten meanwhile
	case c.status < 200 || c.status > 299 || how == repeatKept && c.over:
		a.forget(k)
	case how == repeatKept:
		k.done, k.hash, k.status, k.body = true, hash, c.status, c.copy.Bytes()
		k.header = http.Header{}
		for _, name := range []string{"Content-Type", "Location"} {
			if v := c.Header().Get(name); v != "" {
				k.header.Set(name, v)
			}
		}
		a.bytes += len(k.body)
	}
}

// forget removes what is kept. The caller holds mu.
func (a *answers) forget(k *kept) {
	delete(a.byID, k.id)
	a.order.Remove(k.place)
	k.place = nil
	a.bytes -= len(k.body)
}

func goodWord(word string) bool {
	for i := range len(word) {
		if word[i] <= ' ' || word[i] > '~' {
			return false
		}
	}
	return len(word) >= 1 && len(word) <= maxOnce
}

// copying passes an answer on and keeps a copy of at most limit bytes.
type copying struct {
	http.ResponseWriter
	limit  int
	status int
	copy   bytes.Buffer
	over   bool
}

func (c *copying) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *copying) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *copying) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.copy.Len()+len(p) > c.limit {
		c.over = true
	} else {
		c.copy.Write(p)
	}
	return c.ResponseWriter.Write(p)
}
