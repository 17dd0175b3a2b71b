package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"connectrpc.com/connect"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

// fault is an error of the control plane with a status that the problem alone does not tell.
type fault struct {
	status  int
	message string
}

func (f *fault) Error() string { return f.message }

// HTTPStatus implements protocol.Answer.
func (f *fault) HTTPStatus() int { return f.status }

func invalid(message string) error { return &fault{http.StatusBadRequest, message} }

// absent is what clients are told of a sandbox that is not there, or not theirs.
func absent(id string) error {
	return &fault{http.StatusNotFound, `Sandbox "` + id + `" doesn't exist or you don't have access to it`}
}

// refuse writes a problem of the control plane: {"code","message"}, which SDKs need on every status.
func refuse(w http.ResponseWriter, err error) {
	if _, own := errors.AsType[*fault](err); !own {
		p, _ := problem.Public(err)
		if wait := int(math.Ceil(httpstatus.RetryAfter(p).Seconds())); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
	}
	code, message := said(err)
	reply(w, code, map[string]any{"code": code, "message": message})
}

// said is an error as a status and a text.
func said(err error) (code int, message string) {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.status, f.message
	}
	p, _ := problem.Public(err)
	return httpstatus.Of(p), sentence(p)
}

// sentence is what went wrong, and what can be done.
func sentence(p *problem.Error) string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + " (" + p.Hint + ")"
}

// problemText is what a client may be told of an error.
func problemText(err error) string {
	p, _ := problem.Public(err)
	return sentence(p)
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // nobody can be told
}

// rpcFault says in Connect's words what went wrong in the hub.
func rpcFault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*connect.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	}
	p, _ := problem.Public(err)
	return connect.NewError(rpcCode(p), errors.New(sentence(p)))
}

func rpcCode(p *problem.Error) connect.Code {
	switch {
	case problem.Has(p, problem.FileExists, problem.AlreadyExists):
		return connect.CodeAlreadyExists
	case problem.Has(p, problem.Unauthenticated):
		return connect.CodeUnauthenticated
	case problem.Has(p, problem.ProgramMissing, problem.ProcessInvalid, problem.IsFolder):
		return connect.CodeInvalidArgument
	case problem.Has(p, problem.ProcessEnded):
		return connect.CodeNotFound
	}
	switch p.Kind {
	case problem.Invalid:
		return connect.CodeInvalidArgument
	case problem.NotFound:
		return connect.CodeNotFound
	case problem.Denied:
		return connect.CodePermissionDenied
	case problem.Exhausted:
		return connect.CodeResourceExhausted
	case problem.Unavailable:
		return connect.CodeUnavailable
	case problem.Timeout:
		return connect.CodeDeadlineExceeded
	case problem.Canceled:
		return connect.CodeCanceled
	}
	return connect.CodeInternal
}
