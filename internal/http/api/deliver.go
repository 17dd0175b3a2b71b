package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
)

// deliver prepares a request for its operation: a JSON body is read whole and within bounds, the content type that curl -d sends is accepted as JSON, and a
// repeated request gets its first answer. The server that mounts the interface disconnects clients that send or read too slowly.
func (s *server) deliver(w http.ResponseWriter, r *http.Request, o operation, handle func(http.ResponseWriter, *http.Request)) {
	if o.raw || r.Method == http.MethodGet || r.Method == http.MethodHead {
		handle(w, r)
		return
	}
	if err := s.deliverJSON(w, r, o, handle); err != nil {
		s.write(w, r, documentOf(err))
	}
}

func (s *server) deliverJSON(w http.ResponseWriter, r *http.Request, o operation, handle func(http.ResponseWriter, *http.Request)) error {
	body, err := readJSON(w, r)
	if err != nil {
		return err
	}
	ask := s.question(r)
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

// readJSON reads a request's body.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := wantJSON(r); err != nil {
		return nil, err
	}
	body, err := bodybudget.Read(r.Context(), bodybudget.Bounded(w, r.Body, maxJSON))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem.New(problem.BodyTooLarge, "the body is larger than 4 MiB").WithHint("upload data as a file, and have the code read that")
	}
	if _, refused := errors.AsType[*problem.Error](err); refused {
		return nil, err
	}
	if err != nil {
		return nil, unread(err)
	}
	return body, oneSpelling(body)
}

// oneSpelling refuses fields whose names differ from ours in case. The decoder would take "Code" for "code", even beside it, and the validation checks only one
// of them.
func oneSpelling(body []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return nil // the validation reports what is wrong
	}
	for name := range fields {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return invalidRequest(&huma.ErrorModel{Status: http.StatusUnprocessableEntity,
				Errors: []*huma.ErrorDetail{{Location: "body." + clip(name, 60), Message: validation.MsgUnexpectedProperty}}})
		}
	}
	return nil
}

// wantJSON accepts a body without a type and with the one that curl -d gives it.
func wantJSON(r *http.Request) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case kind == "", kind == "application/json", kind == "application/x-www-form-urlencoded", strings.HasSuffix(kind, "+json"), r.ContentLength == 0:
		return nil
	}
	return problem.New(problem.UnsupportedMediaType, "the body must be JSON, not "+clip(kind, 60)).WithHint("send 'Content-Type: application/json'")
}

func clip(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "…"
}

// uploaded returns a request's body as a stream of at most limit bytes. Its errors are problems.
func uploaded(w http.ResponseWriter, r *http.Request, limit int64) io.Reader {
	return upload{bodybudget.Bounded(w, r.Body, limit)}
}

type upload struct{ io.Reader }

func (u upload) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return n, errTooLarge(err)
	}
	if err != nil && err != io.EOF {
		return n, unread(err)
	}
	return n, err
}

func errTooLarge(cause error) error {
	return problem.New(problem.FileTooLarge, "the file is larger than the server takes").WithHint("upload it in parts").WithCause(cause)
}

// unread returns the problem of a body that could not be read to its end. None is the server's fault.
func unread(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.New(problem.RequestTimeout, "the request did not arrive in time").WithCause(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return problem.New(problem.UploadIncomplete, "the request ended before its body did").WithCause(err)
	}
	return problem.New(problem.InvalidBody, "the body could not be read to its end").WithCause(err)
}

// uploadFailed distinguishes an upload that the client broke off from the server's faults.
func uploadFailed(r *http.Request, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) && problem.Of(err).Kind == problem.Internal || r.Context().Err() != nil {
		return unread(io.ErrUnexpectedEOF)
	}
	return err
}
