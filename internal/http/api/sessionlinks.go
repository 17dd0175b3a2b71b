package api

import (
	"context"
	"net/http"
	"path"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ports"
)

// Links are a hub's links to files and ports of sessions.
type Links interface {
	AddLink(ctx context.Context, who auth.Principal, n hub.NewLink) (hub.SessionLink, string, error)
	Links(ctx context.Context, who auth.Principal, session string) ([]hub.SessionLink, error)
	DeleteLink(ctx context.Context, who auth.Principal, session, id string) error
	LinkOf(ctx context.Context, code string) (hub.SessionLink, auth.Principal, error)
}

// SessionLink is a link to a file or a port of a session, for all who have it.
type SessionLink struct {
	ID      string     `json:"id" example:"lnk_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Session string     `json:"session"`
	Purpose string     `json:"purpose" enum:"read,write,port,machine" doc:"machine: all of the session, for clients of another interface such as E2B's, which makes it"`
	Path    string     `json:"path,omitempty"`
	Port    int        `json:"port,omitempty"`
	Open    bool       `json:"open,omitempty" doc:"The port's own name is open to all who know it"`
	Wakes   bool       `json:"wakes,omitempty" doc:"It loads a session that is paused"`
	User    string     `json:"created_by"`
	Created time.Time  `json:"created_at"`
	Expires *time.Time `json:"expires_at,omitempty" doc:"Missing: never"`
}

func sessionLinkOf(l hub.SessionLink) SessionLink {
	return SessionLink{ID: l.ID, Session: l.Session, Purpose: l.Purpose, Path: l.Path, Port: l.Port, Open: l.Open, Wakes: l.Wakes, User: l.User, Created: l.Created.UTC(), Expires: moment(l.Expires)}
}

// MadeLink is a link with its code.
type MadeLink struct {
	Secret string `json:"code" doc:"Not shown again"`
	At     string `json:"at" doc:"Below the server's address, with the code" example:"/p/8s2k5r7w9x1z4/"`
	URL    string `json:"url,omitempty" doc:"Of a port: its own name, with the code where it needs one; missing where ports have no names"`
	SessionLink
}

type (
	newLink struct {
		SessionPath
		Body struct {
			Purpose string `json:"purpose" enum:"read,write,port"`
			Path    string `json:"path,omitempty" maxLength:"4096" doc:"Of a file; see the file system"`
			Port    int    `json:"port,omitempty" minimum:"1" maximum:"65535"`
			Open    bool   `json:"open,omitempty" doc:"The port's own name needs no code"`
			Wakes   bool   `json:"wakes,omitempty" doc:"Who comes by it loads a session that is paused; links to files always do"`
			Seconds *int64 `json:"seconds,omitempty" minimum:"0" maximum:"315360000" doc:"How long it lives; a day when left out, 0: without an end"`
		}
	}
	sessionLinkPath struct {
		SessionPath
		Link string `path:"link" maxLength:"64" example:"lnk_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	linkedPath struct {
		Code string `path:"linkcode" maxLength:"200" doc:"Of the link"`
	}
	portPath struct {
		SessionPath
		Port int    `path:"port" minimum:"1" maximum:"65535" example:"8000"`
		Path string `path:"path" doc:"What the server in the session is asked for"`
	}
)

const portExample = `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/processes \
  -d '{"command":["python","-m","http.server","8000"]}'
curl --retry 60 --retry-delay 1 --retry-all-errors -H "Authorization: Bearer $KEY" \
  $COVE/sessions/$SESSION/ports/8000/http/`

const (
	linkLife = 24 * time.Hour
	// linkedAtOnce bounds how many files are read and written by links at the same time.
	linkedAtOnce   = 64
	linkedPatience = 5 * time.Second
)

func (s *server) addSessionLinks() {
	const tag, at = "links", "/sessions/{session}/links"
	add(s, operation{id: "link.create", method: http.MethodPost, path: at, tag: tag, action: auth.SessionsRead, status: http.StatusCreated, repeat: repeatNever, summary: "Make a link to a file or a port",
		about:  "Its code is in the answer and is not shown again. It takes the right to what it lets others do: `files:read`, `files:write`, or for a port and for an absolute path `sessions:execute`.",
		errors: []problem.Code{problem.SessionNotFound, problem.TooManyLinks, problem.LifeInvalid, problem.InvalidPath, problem.Forbidden},
		example: `READ=$(curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/links \
  -d '{"purpose":"read","path":"data/sales.csv","seconds":3600}' | field code)
WRITE=$(curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/links \
  -d '{"purpose":"write","path":"data/new.csv"}' | field code)
PORT_LINK=$(curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/links \
  -d '{"purpose":"port","port":8000,"wakes":true}' | field id)`},
		s.createLink)
	add(s, operation{id: "link.list", method: http.MethodGet, path: at, tag: tag, action: auth.SessionsRead, summary: "List the links of a session", errors: []problem.Code{problem.SessionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/links`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (List[SessionLink], error) {
			all, err := s.o.Hub.Links(ctx, who, in.Session)
			return List[SessionLink]{Items: each(all, sessionLinkOf)}, err
		})
	addSilent(s, operation{id: "link.delete", method: http.MethodDelete, path: at + "/{link}", tag: tag, action: auth.SessionsWrite, summary: "Withdraw a link of a session", about: "At once.",
		errors: []problem.Code{problem.SessionNotFound, problem.LinkNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/sessions/$SESSION/links/$PORT_LINK`},
		func(ctx context.Context, who auth.Principal, in *sessionLinkPath) error {
			return s.o.Hub.DeleteLink(ctx, who, in.Session, in.Link)
		})
	addRaw(s, operation{id: "link.read", method: http.MethodGet, path: "/linked/{linkcode}", tag: tag, public: true, summary: "Read a file by a link",
		about: "As `fs.read`. What never was, was withdrawn or has expired is the same 404.", errors: []problem.Code{problem.LinkNotFound, problem.FileNotFound, problem.TooManyFailedLogins},
		example: `curl $COVE/linked/$READ`},
		func(w http.ResponseWriter, r *http.Request, _ auth.Principal, in *linkedPath) error {
			return s.byLink(r, in.Code, hub.LinkRead, func(l hub.SessionLink, who auth.Principal) error {
				return s.readPath(w, r, who, &PathQuery{SessionPath: SessionPath{Session: l.Session}, Path: l.Path})
			})
		})
	addRaw(s, operation{id: "link.write", method: http.MethodPut, path: "/linked/{linkcode}", tag: tag, public: true, raw: true, status: http.StatusCreated, summary: "Write a file by a link",
		about: "As `fs.write`.", errors: []problem.Code{problem.LinkNotFound, problem.FileTooLarge, problem.WorkspaceFull, problem.TooManyFailedLogins}, example: `curl -T sales.csv $COVE/linked/$WRITE`},
		func(w http.ResponseWriter, r *http.Request, _ auth.Principal, in *linkedPath) error {
			return s.byLink(r, in.Code, hub.LinkWrite, func(l hub.SessionLink, who auth.Principal) error {
				return s.writePath(w, r, who, &writePath{PathQuery: PathQuery{SessionPath: SessionPath{Session: l.Session}, Path: l.Path}})
			})
		})
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		o := operation{id: "port." + strings.ToLower(method), method: method, path: "/sessions/{session}/ports/{port}/http/{path...}", tag: "ports", action: auth.SessionsExecute, raw: true, anyQuery: true,
			summary: method + " what a server in a session has", about: "The answer is the server's, whatever it is: also a stream, or a WebSocket. A browser shows it without an origin.",
			errors:  []problem.Code{problem.SessionNotFound, problem.PortRefused, problem.PortBroken, problem.SessionTaken},
			example: `curl -X ` + method + ` -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/ports/8000/http/ || true # whatever it says`}
		if method == http.MethodGet {
			o.example = portExample
		}
		addRaw(s, o, s.forwardPort)
	}
}

func (s *server) createLink(ctx context.Context, who auth.Principal, in *newLink) (MadeLink, error) {
	b := in.Body
	n := hub.NewLink{Session: in.Session, Purpose: b.Purpose, Path: b.Path, Port: b.Port, Open: b.Open, Wakes: b.Wakes, Life: linkLife}
	if b.Seconds != nil {
		n.Life = seconds(*b.Seconds)
	}
	made, code, err := s.o.Hub.AddLink(ctx, who, n)
	if err != nil {
		return MadeLink{}, err
	}
	out := MadeLink{Secret: code, SessionLink: sessionLinkOf(made), At: Prefix + "/linked/" + code}
	if made.Purpose == hub.LinkPort {
		out.At = ports.PathPrefix + code + "/"
		if out.URL = s.o.Ports().URL(made.Session, made.Port); out.URL != "" && !made.Open {
			out.URL += "?" + ports.Parameter + "=" + code
		}
	}
	return out, nil
}

// byLink has use do what a link is for.
func (s *server) byLink(r *http.Request, code, purpose string, use func(l hub.SessionLink, who auth.Principal) error) error {
	ctx, cancel := context.WithTimeout(r.Context(), linkedPatience)
	defer cancel()
	select {
	case s.linked <- struct{}{}:
		defer func() { <-s.linked }()
	case <-ctx.Done():
		return problem.New(problem.Overloaded, "too many links are used at this moment").WithHint("try again in a moment")
	}
	var l hub.SessionLink
	var who auth.Principal
	err := auth.VisitOf(r.Context()).Look(r.Context(), func(ctx context.Context) (err error) {
		if l, who, err = s.o.Hub.LinkOf(ctx, code); err == nil && l.Purpose != purpose {
			err = problem.New(problem.LinkNotFound, "this link is not for that").WithHint("it is for " + l.Purpose)
		}
		return err
	})
	if err != nil {
		return err
	}
	visitor := auth.VisitOf(r.Context()).Visitor()
	who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
	return use(l, who)
}

// forwardPort hands a request to a server in a session.
func (s *server) forwardPort(w http.ResponseWriter, r *http.Request, who auth.Principal, in *portPath) error {
	prefix := strings.TrimSuffix(strings.TrimSuffix(r.URL.Path, in.Path), "/") + "/"
	begun := false
	err := s.o.Hub.UsePort(r.Context(), who, in.Session, in.Port, func(ctx context.Context, stream guestlink.Stream) error {
		begun = true
		w.Header().Del("Cache-Control")
		ports.Forward(ctx, w, r, stream, ports.Way{Session: in.Session, Port: in.Port, Prefix: path.Clean(prefix) + "/"}, func(w http.ResponseWriter, r *http.Request, p *problem.Error) { s.write(w, r, documentOf(p)) })
		return nil
	})
	if begun {
		return nil
	}
	return err
}
