package api

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"cove/internal/auth"
	"cove/internal/problem"
)

// deliver prepares a request for its operation: a JSON body is read whole and within bounds, curl's content type is taken for what it is,
// and a repeated request gets its first answer.
func (s *surface) deliver(w http.ResponseWriter, r *http.Request, o operation, handle func(http.ResponseWriter, *http.Request)) {
	who, _ := auth.From(r.Context())
	word := r.Header.Get("Idempotency-Key")
	ask := question{caller: who.Project + " " + who.User + " " + who.Key, route: r.Method + " " + r.URL.RequestURI(), word: word}
	var err error
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodHead, o.raw && (o.repeat == repeatNever || word == ""):
		handle(w, r)
	case o.raw:
		err = s.once.serveUpload(w, r, ask, s.o.MaxFile+maxJSON, handle)
	default:
		err = s.deliverJSON(w, r, o, ask, handle)
	}
	if err != nil {
		s.write(w, r, documentOf(err))
	}
}

func (s *surface) deliverJSON(w http.ResponseWriter, r *http.Request, o operation, ask question, handle func(http.ResponseWriter, *http.Request)) error {
	body, err := s.readJSON(w, r)
	if err != nil {
		return err
	}
	r = r.Clone(r.Context()) // the header is changed below
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	if o.repeat == repeatNever || ask.word == "" {
		handle(w, r)
		return nil
	}
	ask.body = sha256.Sum256(body)
	return s.once.serve(w, r, o.repeat, ask, handle)
}

// readJSON reads a request's body. The connection's deadline is lifted afterwards: it would end a stream of events.
func (s *surface) readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := wantJSON(r); err != nil {
		return nil, err
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(s.o.Reading)) // the clock of the connection, not ours
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJSON))
	_ = c.SetReadDeadline(time.Time{})
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem.New(problem.Invalid, "body_too_large", "the body is larger than 4 MiB").WithHint("upload data as a file, and read it there")
	}
	if err != nil {
		return nil, problem.New(problem.Invalid, "invalid_body", "the body could not be read to its end").WithCause(err)
	}
	return body, nil
}

// wantJSON accepts a body without a type and with the one that curl -d gives it.
func wantJSON(r *http.Request) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case kind == "", kind == "application/json", kind == "application/x-www-form-urlencoded", strings.HasSuffix(kind, "+json"), r.ContentLength == 0:
		return nil
	}
	return problem.New(problem.Invalid, "unsupported_media_type", "the body must be JSON, not "+clip(kind, 60)).WithHint("send 'Content-Type: application/json'")
}

func clip(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "…"
}

// pieces reads an upload: each piece has the reading time, and the whole its bound.
type pieces struct {
	from    io.Reader
	control *http.ResponseController
	reading time.Duration
}

// upload returns a request's body as a stream of at most limit bytes, and what lifts the deadline again.
func (s *surface) upload(w http.ResponseWriter, r *http.Request, limit int64) (io.Reader, func()) {
	p := &pieces{from: http.MaxBytesReader(w, r.Body, limit), control: http.NewResponseController(w), reading: s.o.Reading}
	return p, func() { _ = p.control.SetReadDeadline(time.Time{}) }
}

func (p *pieces) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(p.reading))
	n, err := p.from.Read(b)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		err = errTooLarge(err)
	}
	return n, err
}

func errTooLarge(cause error) error {
	return problem.New(problem.Exhausted, "file_too_large", "the file is larger than the server takes").WithHint("upload it in parts").WithCause(cause)
}

// paced writes a download: a client that leaves a piece unread for too long is cut off.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

func (s *surface) paced(w http.ResponseWriter) *paced {
	return &paced{ResponseWriter: w, control: http.NewResponseController(w), stall: s.o.Stall}
}

func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *paced) Write(b []byte) (int, error) {
	done := 0
	for len(b) > 0 { // in pieces, so that a slow client that does read has the time for each
		piece := b[:min(len(b), 64<<10)]
		_ = p.control.SetWriteDeadline(time.Now().Add(p.stall))
		n, err := p.ResponseWriter.Write(piece)
		done += n
		if err != nil {
			return done, err
		}
		b = b[len(piece):]
	}
	return done, nil
}

// finish lifts the deadline, for the next request of the connection.
func (p *paced) finish() { _ = p.control.SetWriteDeadline(time.Time{}) }
