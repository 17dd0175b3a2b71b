package e2b

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"

	"cove/internal/core/problem"
	"cove/internal/http/compat/e2b/envd"
)

// homes are the users of a sandbox, and their folders.
var homes = map[string]string{"user": "/home/user", "root": "/root"}

// mostMessage bounds a message of a client to the agent, in bytes: input of a process comes so, files do not.
const mostMessage = 8 << 20

// agent returns the handler of the agent's remote procedures.
func (s *server) agent() http.Handler {
	mux := http.NewServeMux()
	o := connect.WithReadMaxBytes(mostMessage)
	mux.Handle(envd.NewProcessHandler(processes{s}, o))
	mux.Handle(envd.NewFilesystemHandler(files{s}, o))
	return mux
}

// toAgent serves what is for the agent of a sandbox, which E2B has in it.
func (s *server) toAgent(w http.ResponseWriter, r *http.Request, b sandbox) {
	if r.URL.Path == "/health" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	byAddress := r.URL.Path == "/files" && r.URL.Query().Get("signature") != ""
	var err error
	if byAddress {
		err = s.signed(r, b.id)
	} else {
		err = holds(r, s.token(b.id))
	}
	if err != nil {
		p, _ := problem.Public(err)
		code := http.StatusUnauthorized
		if p.Kind == problem.Exhausted {
			code = http.StatusTooManyRequests
		}
		reply(w, code, map[string]any{"code": code, "message": sentence(p)})
		return
	}
	switch {
	case r.URL.Path == "/files" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		s.download(w, r, b)
	case r.URL.Path == "/files" && r.Method == http.MethodPost:
		s.upload(w, r, b)
	case r.URL.Path == "/envs":
		reply(w, http.StatusOK, nonNil(b.record.Env))
	case strings.HasPrefix(r.URL.Path, "/"+envd.ProcessName+"/"), strings.HasPrefix(r.URL.Path, "/"+envd.FilesystemName+"/"):
		s.envd.ServeHTTP(w, r)
	default:
		// Connect's own form: a client makes "unimplemented" of any other 404.
		reply(w, http.StatusNotFound, map[string]any{"code": "not_found", "message": "cove does not have " + r.URL.Path + " of the agent"})
	}
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// userOf returns the user that a request is made as, who is the name of its basic authentication; without one it is the sandbox's own.
func (b sandbox) userOf(h http.Header) (string, error) {
	name := cmp.Or(b.record.User, "user")
	if given, _, ok := (&http.Request{Header: h}).BasicAuth(); ok && given != "" {
		name = given
	}
	return name, knownUser(name)
}

func knownUser(name string) error {
	if homes[name] == "" {
		return connect.NewError(connect.CodeUnauthenticated, errors.New("invalid username: '"+name+"'; there are user and root"))
	}
	return nil
}

// absolute returns the path that a user means: relative ones are in the user's folder.
func absolute(user, p string) (string, error) {
	home := homes[user]
	switch {
	case p == "" || p == "~":
		return home, nil
	case strings.HasPrefix(p, "~/"):
		return path.Join(home, p[2:]), nil
	case strings.HasPrefix(p, "~"):
		return "", connect.NewError(connect.CodeInvalidArgument, errors.New("cannot expand user-specific home dir"))
	case strings.HasPrefix(p, "/"):
		return path.Clean(p), nil
	}
	return path.Join(home, p), nil
}

// ticker returns how often a silent stream says that it is there.
func ticker(h http.Header) *time.Ticker {
	every := 90 * time.Second
	if d, err := time.ParseDuration(h.Get("Keepalive-Ping-Interval") + "s"); err == nil && d >= time.Second {
		every = min(every, d)
	}
	return time.NewTicker(every)
}

// header is that of a request to a remote procedure.
func header(ctx context.Context) http.Header {
	info, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return http.Header{}
	}
	return info.RequestHeader()
}
