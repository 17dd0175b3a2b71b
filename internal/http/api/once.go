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

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// repeat says what an Idempotency-Key does.
type repeat int

const (
	repeatNever  repeat = iota
	repeatKept          // this package keeps the first answer, and repeats it
	repeatHub           // the hub knows the key and has the answer; this package compares the bodies
	answerLife   = 24 * time.Hour
	answerSize   = 256 << 10
	answersBytes = 64 << 20
	answersCount = 50_000
	maxOnce      = 200
)

// question is a request that may be repeated: of a caller, to a route, with an idempotency key.
type question struct {
	id   [32]byte // a hash of all three: clients can send keys of any length
	word string
	body [32]byte // SHA-256
}

func (s *server) question(r *http.Request) question {
	who, _ := auth.From(r.Context())
	word := r.Header.Get("Idempotency-Key")
	return question{id: sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q", who.Project, who.User, who.Key, r.Method, r.URL.RequestURI(), word)), word: word}
}

// answers keeps the answers for repeated requests. It is in memory: a restart of the server loses it, and when there are too many, the oldest is dropped.
type answers struct {
	now   func() time.Time
	mu    sync.Mutex
	byID  map[[32]byte]*kept
	order list.List // of *kept, the oldest first
	bytes int
}

type kept struct {
	id     [32]byte
	place  *list.Element // nil: dropped
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

// serve answers q with the answer that is kept, or has handle answer and keeps that answer if it is a success.
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

// serveUpload is serve for content that is too large for memory: its hash is known at its end. said are the fields that describe the content. The rest of the
// body does not count: a repeated form has another boundary.
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

// again repeats the first answer.
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

// claim returns a copy of what is kept for the question, or records the question as new; then settle has to be called.
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

// settle keeps an answer, unless the answer is too large, or a failure, which may be tried again. For answers that the hub keeps, only the question is kept here.
func (a *answers) settle(k *kept, how repeat, hash [32]byte, c *copying) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case k.place == nil: // dropped meanwhile
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

// forget removes a question and its answer. The caller holds mu.
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

// copying writes an answer and keeps a copy of at most limit bytes.
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
