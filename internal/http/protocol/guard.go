package protocol

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// Answer is an error that says what a surface answers its client, in the words of what it stands for. Nothing went wrong in the server.
type Answer interface {
	error
	HTTPStatus() int
}

// Guard returns the handler of a route: it looks whether the caller may do all that the route needs, has handle answer, and has refuse tell an error, unless the client has left.
// hint says where a key goes, to a client that sends none. What is the server's own fault is logged.
func Guard(needs []auth.Action, hint string, log *slog.Logger, handle func(w http.ResponseWriter, r *http.Request, who auth.Principal) error, refuse func(w http.ResponseWriter, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := auth.From(r.Context())
		if !ok {
			refuse(w, problem.New(problem.Unauthenticated, "a key is needed").WithHint(hint))
			return
		}
		var err error
		for _, action := range needs {
			if err = who.Require(action); err != nil {
				break
			}
		}
		if err == nil {
			err = handle(w, r, who)
		}
		if err == nil || r.Context().Err() != nil {
			return // it was answered, or nobody is there to be told
		}
		if _, own := errors.AsType[Answer](err); own {
			refuse(w, err)
			return
		}
		_, long := errors.AsType[*http.MaxBytesError](err) // which each surface says in its own words
		if p, less := problem.Public(err); !long && (p.Kind == problem.Internal || less) {
			log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", strings.ToValidUTF8(r.URL.Path, "?"), "request", who.Request, "error", err)
		}
		refuse(w, err)
	}
}
