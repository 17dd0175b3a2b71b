package api

import (
	"bytes"
	"crypto/sha256"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

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

// question is a request that may come again.
type question struct {
	caller, route, word string
	body                [32]byte // SHA-256
}

type questionKey struct{ caller, route, word string }

// answers keeps what repeated requests are answered with. It is in memory: a restart of the server forgets it, and it forgets the
// oldest when there are too many.
type answers struct {
	now   func() time.Time
	mu    sync.Mutex
	byKey map[questionKey]*kept
	order []*kept // the oldest first
	bytes int
}

type kept struct {
	key    questionKey
	hash   [32]byte
	at     time.Time
	done   bool
	status int
	header http.Header
	body   []byte
}

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, byKey: map[questionKey]*kept{}}
}

// serve answers q from what is kept, or has handle answer and keeps it if it was a success.
func (a *answers) serve(w http.ResponseWriter, r *http.Request, how repeat, q question, handle func(http.ResponseWriter, *http.Request)) error {
	was, first, err := a.claim(q)
	switch {
	case err != nil:
		return err
	case !first && was.hash != q.body:
		return errOtherBody()
	case how == repeatHub:
		copied := &copying{ResponseWriter: w}
		defer func() { a.settleHub(was.key, first, copied) }()
		handle(copied, r)
		return nil
	case !first:
		return was.again(w)
	}
	copied := &copying{ResponseWriter: w, limit: answerSize}
	defer func() { a.settle(was.key, q.body, copied) }()
	handle(copied, r)
	return nil
}

// serveUpload is serve for a body that is too large to be held: what it was is known when it is over.
func (a *answers) serveUpload(w http.ResponseWriter, r *http.Request, q question, limit int64, handle func(http.ResponseWriter, *http.Request)) error {
	was, first, err := a.claim(q)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if !first {
		if _, err := io.Copy(sum, http.MaxBytesReader(w, r.Body, limit)); err != nil || [32]byte(sum.Sum(nil)) != was.hash {
			return errOtherBody()
		}
		return was.again(w)
	}
	copied := &copying{ResponseWriter: w, limit: answerSize}
	done := false
	defer func() {
		if !done {
			copied.status = 0 // nothing that can be compared
		}
		a.settle(was.key, [32]byte(sum.Sum(nil)), copied)
	}()
	body := r.Body
	r.Body = hashed{io.TeeReader(body, sum), body}
	handle(copied, r)
	_, err = io.Copy(io.Discard, io.LimitReader(r.Body, 64<<10)) // the end of a form
	done = err == nil
	return nil
}

// hashed is a body that is hashed as it is read.
type hashed struct {
	io.Reader
	io.Closer
}

func errOtherBody() error {
	return problem.New(problem.Invalid, "idempotency_mismatch", "this Idempotency-Key was used with another body").WithHint("use a new one for a new request")
}

// again gives the first answer once more.
func (k kept) again(w http.ResponseWriter) error {
	if !k.done {
		return problem.New(problem.Unavailable, "idempotency_in_progress", "the first request with this Idempotency-Key is not answered yet").
			WithHint("repeat it in a moment")
	}
	maps.Copy(w.Header(), k.header)
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(k.status)
	_, _ = w.Write(k.body)
	return nil
}

// claim finds the question, or notes it as new. What it returns is a copy.
func (a *answers) claim(q question) (was kept, first bool, err error) {
	if !goodWord(q.word) {
		return kept{}, false, problem.New(problem.Invalid, "invalid_request", "the Idempotency-Key must be 1 to 200 visible ASCII characters")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget()
	key := questionKey{q.caller, q.route, q.word}
	if k := a.byKey[key]; k != nil {
		return *k, false, nil
	}
	k := &kept{key: key, hash: q.body, at: a.now()}
	a.byKey[key] = k
	a.order = append(a.order, k)
	return *k, true, nil
}

// settle keeps an answer, unless it was a failure, which may be tried again, or is too large.
func (a *answers) settle(key questionKey, hash [32]byte, c *copying) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.byKey[key]
	if k == nil {
		return // forgotten meanwhile
	}
	if c.status < 200 || c.status > 299 || c.over {
		delete(a.byKey, key)
		return
	}
	k.done, k.hash, k.status, k.body = true, hash, c.status, c.copy.Bytes()
	k.header = http.Header{}
	for _, name := range []string{"Content-Type", "Location"} {
		if v := c.Header().Get(name); v != "" {
			k.header.Set(name, v)
		}
	}
	a.bytes += len(k.body)
}

// settleHub forgets a question whose answer was a failure: the hub has nothing under its word.
func (a *answers) settleHub(key questionKey, first bool, c *copying) {
	if first && (c.status < 200 || c.status > 299) {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.byKey, key)
	}
}

// forget removes what is too old and what is too much.
func (a *answers) forget() {
	for len(a.order) > 0 {
		k := a.order[0]
		current := a.byKey[k.key] == k
		if current && a.now().Sub(k.at) < answerLife && a.bytes < answersBytes && len(a.order) < answersCount {
			return
		}
		if current {
			delete(a.byKey, k.key)
		}
		a.bytes -= len(k.body)
		a.order[0] = nil
		a.order = a.order[1:]
	}
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
