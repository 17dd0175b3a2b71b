package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Session is a user's claim on a sandbox.
type Session struct {
	ID         string            `json:"id" example:"ses_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Name       string            `json:"name"`
	Metadata   map[string]string `json:"metadata"`
	State      hub.SessionState  `json:"state" enum:"active,paused,lost,deleted"`
	Reason     string            `json:"reason,omitempty" doc:"Why it is lost"`
	Packages   string            `json:"packages" doc:"The set of packages it began with: standard, standard-2024 or minimal"`
	Memory     int64             `json:"memory_bytes" doc:"That it may take"`
	Taken      int64             `json:"memory_used_bytes,omitempty" doc:"That it takes now, beside what all sessions share; missing where that is not known, as while it is paused"`
	CPUs       float64           `json:"cpus"`
	Image      *SessionImage     `json:"image,omitempty" doc:"That it begins from, whatever its tag means by now; missing: the server's own system"`
	Root       bool              `json:"root,omitempty" doc:"Its programs may run as root and change the system"`
	Idle       int64             `json:"idle_seconds" doc:"Without use, until it is paused; 0: never"`
	Network    *Network          `json:"network,omitempty" doc:"Where its programs may connect to; missing: nowhere"`
	Executions int               `json:"executions"`
	Disk       int64             `json:"disk_bytes" doc:"Of its snapshot; 0 while there is none"`
	Saved      *time.Time        `json:"saved_at,omitempty" doc:"When it was last saved: what it goes back to when its server is killed. Files that clients put in are kept in any case"`
	Rollback   *Rollback         `json:"rollback,omitempty" doc:"What it lost, until that is acknowledged"`
	ForkedFrom string            `json:"forked_from,omitempty" doc:"The id of the session that it was forked from, which may be deleted by now"`
	ForkedAt   *time.Time        `json:"forked_at,omitempty" doc:"It has what ran in that session until then"`
	Created    time.Time         `json:"created_at"`
	Used       time.Time         `json:"used_at"`
	Expires    *time.Time        `json:"expires_at,omitempty" doc:"When it is deleted, unless it is extended"`
	Project    string            `json:"project"`
	User       string            `json:"user"`
	Key        string            `json:"key,omitempty" doc:"The id of the key that made it"`
	Uses       []SessionUse      `json:"conversations,omitempty" doc:"That use it, when a list is asked for them: those used last, at most 4"`
}

// SessionUse is a conversation that uses a session.
type SessionUse struct {
	Conversation string   `json:"id" example:"cnv_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Title        string   `json:"title"`
	Files        []string `json:"files" doc:"Names of those that its first questions brought"`
}

func usesOf(uses []hub.SessionUse) (out []SessionUse) {
	for _, u := range uses {
		u.Files = append([]string{}, u.Files...)
		out = append(out, SessionUse(u))
	}
	return out
}

// SessionImage is the OCI image that a session begins from.
type SessionImage struct {
	Reference string `json:"reference" doc:"As it was asked for"`
	Digest    string `json:"digest" doc:"Of its manifest" example:"sha256:9f1c7a8f2e0d4b6a5c3e1f0a9b8d7c6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c"`
}

func imageOf(i *hub.SessionImage) *SessionImage {
	if i == nil {
		return nil
	}
	return &SessionImage{Reference: i.Reference, Digest: i.Digest}
}

// Rollback says that a session went back to what was saved of it.
type Rollback struct {
	At         time.Time  `json:"at" doc:"When that was found out"`
	To         *time.Time `json:"to,omitempty" doc:"When the state was saved that the session goes on from; missing: it started anew"`
	Reason     string     `json:"reason"`
	Executions []string   `json:"executions" doc:"Ids of the executions whose effects on variables and files are gone, at most 100"`
	More       int        `json:"more_executions,omitempty" doc:"Further ones"`
	Files      []string   `json:"files" doc:"Paths that these executions made or changed, at most 1,000"`
}

func rollbackOf(r *hub.Rollback) *Rollback {
	if r == nil {
		return nil
	}
	return &Rollback{At: r.At.UTC(), To: moment(r.To), Reason: r.Reason, Executions: append([]string{}, r.Executions...), More: r.More, Files: append([]string{}, r.Files...)}
}

func sessionOf(s hub.Session) Session {
	var origin hub.SessionOrigin
	if s.Origin != nil {
		origin = *s.Origin
	}
	return Session{ForkedFrom: origin.Session, ForkedAt: moment(origin.At), Saved: moment(s.Saved), Rollback: rollbackOf(s.Rollback), ID: s.ID, Name: s.Name, Metadata: notNil(s.Metadata), State: s.State, Reason: s.Reason, Packages: s.Packages, Memory: s.Memory, Taken: s.Taken, CPUs: s.CPUs, Root: s.System > 0, Image: imageOf(s.Image), Network: networkOf(s.Network),
		Idle: int64(s.Idle.Seconds()), Executions: s.Executions, Disk: s.Disk, Created: s.Created.UTC(), Used: s.Used.UTC(), Expires: moment(s.Expires),
		Project: s.Project, User: s.User, Key: s.Key, Uses: usesOf(s.Uses)}
}

// moment is a time that may be missing.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}

func notNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// List is one page of things.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"Send it as after to get the next page; missing on the last one"`
}

func listOf[A, B any](l hub.Listing[A], of func(A) B) List[B] {
	return List[B]{Items: each(l.Items, of), Next: l.Next}
}

func each[A, B any](in []A, of func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, a := range in {
		out = append(out, of(a))
	}
	return out
}

// Paging is how every list is paged.
type Paging struct {
	After string `query:"after" maxLength:"500" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Order string `query:"order" enum:"newest,oldest" default:"newest"`
}

func (p Paging) page() hub.Page {
	return hub.Page{After: p.After, Limit: p.Limit, Oldest: p.Order == "oldest"}
}

// NewSession says what session to make. All of it may be left out.
type NewSession struct {
	Name     string            `json:"name,omitempty" maxLength:"200"`
	Metadata map[string]string `json:"metadata,omitempty" maxProperties:"32" doc:"Words of your own; lists can be narrowed by them"`
	Packages string            `json:"packages,omitempty" enum:"standard,standard-2024,minimal" doc:"The set of packages to begin with"`
	Memory   int64             `json:"memory_bytes,omitempty" minimum:"0"`
	CPUs     float64           `json:"cpus,omitempty" minimum:"0"`
	Image    string            `json:"image,omitempty" maxLength:"1024" doc:"An OCI image of a registry to begin from, as python:3.12-slim, where the server's operator allows that; it is fetched when it is not there yet, for which the answer waits" example:"python:3.12-slim"`
	Idle     int64             `json:"idle_seconds,omitempty" minimum:"0" maximum:"31536000" doc:"Without use, until it is paused"`
	Life     int64             `json:"life_seconds,omitempty" minimum:"0" maximum:"315360000" doc:"Until it is deleted"`
	Files    []string          `json:"files,omitempty" maxItems:"100" doc:"Ids of stored files that are put into its workspace"`
	Network  *Network          `json:"network,omitempty" doc:"Where its programs may connect to; nowhere when left out, and a fork as its origin"`
	Root     bool              `json:"root,omitempty" doc:"Its programs may run as root and change the system outside of the workspace, where the server's operator allows that"`
}

func (n *NewSession) hub() hub.NewSession {
	if n == nil {
		return hub.NewSession{}
	}
	return hub.NewSession{Name: n.Name, Metadata: n.Metadata, Packages: n.Packages, Memory: n.Memory, CPUs: n.CPUs, Image: n.Image, Idle: seconds(n.Idle), Life: seconds(n.Life), Files: n.Files, Network: n.Network.hub(), Root: n.Root}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// Fork says what session to make of another. All of it may be left out.
type Fork struct {
	NewSession
	Point string `json:"point,omitempty" maxLength:"64" doc:"The point of the origin that it goes on from, or a turn before which there is one; the present state when left out"`
}

func (f *Fork) hub() hub.NewSession {
	if f == nil {
		return hub.NewSession{}
	}
	n := f.NewSession.hub()
	n.Point = f.Point
	return n
}

type (
	// SessionPath names a session in an address.
	SessionPath struct {
		Session string `path:"session" maxLength:"64" example:"ses_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	createSession struct{ Body *NewSession }
	forkSession   struct {
		SessionPath
		Body *Fork
	}
	listSessions struct {
		Paging
		State string   `query:"state" enum:"active,paused,lost,deleted" doc:"All but deleted ones when left out"`
		User  string   `query:"user" maxLength:"64" doc:"Id of who made them"`
		Name  string   `query:"name" maxLength:"200" doc:"What the name begins with"`
		Meta  []string `query:"meta,explode" maxItems:"16" doc:"KEY:VALUE of the metadata; more than once: all must hold"`
		Uses  bool     `query:"conversations" doc:"Say which conversations use each session"`
	}
	changeSession struct {
		SessionPath
		Body SessionChange
	}
)

// SessionChange says what to change; what is left out stays.
type SessionChange struct {
	Name     *string           `json:"name,omitempty" maxLength:"200"`
	Metadata map[string]string `json:"metadata,omitempty" maxProperties:"32" doc:"Takes the place of what was there"`
	Life     *int64            `json:"life_seconds,omitempty" minimum:"1" maximum:"315360000" doc:"From now on: extends the session, or shortens it"`
	Idle     *int64            `json:"idle_seconds,omitempty" minimum:"1" maximum:"31536000"`
	Network  *Network          `json:"network,omitempty" doc:"Takes the place of what was there; connections that there are end"`
}

func (c SessionChange) hub() hub.SessionChange {
	out := hub.SessionChange{Name: c.Name, Metadata: c.Metadata, Network: c.Network.hub()}
	if c.Life != nil {
		out.Life = new(seconds(*c.Life))
	}
	if c.Idle != nil {
		out.Idle = new(seconds(*c.Idle))
	}
	return out
}

// pairs reads KEY:VALUE words.
func pairs(words []string) (map[string]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, ":")
		if !ok || key == "" {
			return nil, problem.New(problem.InvalidRequest, "meta must be KEY:VALUE (query.meta)")
		}
		out[key] = value
	}
	return out, nil
}

func (s *server) addSessions() {
	const tag = "sessions"
	add(s, operation{id: "session.create", method: http.MethodPost, path: "/sessions", tag: tag, action: auth.SessionsWrite, status: http.StatusCreated, repeat: repeatKept,
		summary: "Create a session", about: "The session is ready for code when the answer comes. The body may be empty.",
		errors: []problem.Code{problem.QuotaSessions, problem.FileNotFound, problem.ImageDenied, problem.ImageMissing}, example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions -d '{"name":"sales","metadata":{"team":"a"}}'`},
		func(ctx context.Context, who auth.Principal, in *createSession) (Session, error) {
			out, err := s.o.Hub.CreateSession(ctx, who, in.Body.hub())
			return sessionOf(out), err
		})
	add(s, operation{id: "session.list", method: http.MethodGet, path: "/sessions", tag: tag, action: auth.SessionsRead, summary: "List sessions", about: "The newest first.",
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions?state=paused&meta=team:a&limit=50"`},
		func(ctx context.Context, who auth.Principal, in *listSessions) (List[Session], error) {
			meta, err := pairs(in.Meta)
			if err != nil {
				return List[Session]{}, err
			}
			f := hub.SessionFilter{State: hub.SessionState(in.State), User: in.User, Name: in.Name, Meta: meta}
			list := s.o.Hub.Sessions
			if in.Uses {
				list = s.o.Hub.SessionsInUse
			}
			out, err := list(ctx, who, f, in.page())
			return listOf(out, sessionOf), err
		})
	add(s, operation{id: "session.get", method: http.MethodGet, path: "/sessions/{session}", tag: tag, action: auth.SessionsRead, summary: "Get a session", errors: []problem.Code{problem.SessionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION`}, s.session(Hub.Session))
	add(s, operation{id: "session.change", method: http.MethodPatch, path: "/sessions/{session}", tag: tag, action: auth.SessionsWrite, summary: "Change or extend a session",
		errors: []problem.Code{problem.SessionNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X PATCH $COVE/sessions/$SESSION -d '{"life_seconds":86400}'`},
		func(ctx context.Context, who auth.Principal, in *changeSession) (Session, error) {
			out, err := s.o.Hub.ChangeSession(ctx, who, in.Session, in.Body.hub())
			return sessionOf(out), err
		})
	add(s, operation{id: "session.pause", method: http.MethodPost, path: "/sessions/{session}/pause", tag: tag, action: auth.SessionsWrite, summary: "Pause a session",
		about: "It is saved with its variables and files, and its memory is freed. Running code is waited for. What cannot be saved stays in memory.", errors: []problem.Code{problem.SessionNotFound, problem.DiskFull},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions/$SESSION/pause`}, s.session(Hub.PauseSession))
	add(s, operation{id: "session.resume", method: http.MethodPost, path: "/sessions/{session}/resume", tag: tag, action: auth.SessionsWrite, summary: "Resume a session",
		about: "Every other request that needs the session resumes it by itself; this does it ahead of time.", errors: []problem.Code{problem.SessionNotFound, problem.QuotaSessions},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions/$SESSION/resume`}, s.session(Hub.ResumeSession))
	add(s, operation{id: "session.acknowledge", method: http.MethodPost, path: "/sessions/{session}/acknowledge", tag: tag, action: auth.SessionsWrite,
		summary: "Acknowledge what a session lost", about: "Removes `rollback` from the session. Its next execution or turn reports the loss in any case.", errors: []problem.Code{problem.SessionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions/$SESSION/acknowledge`}, s.session(Hub.AcknowledgeRollback))
	add(s, operation{id: "session.fork", method: http.MethodPost, path: "/sessions/{session}/fork", tag: tag, action: auth.SessionsWrite, status: http.StatusCreated, repeat: repeatKept,
		summary: "Fork a session", about: "Makes a session that goes on from the present state of this one, or from one of its points, with its variables and files.",
		errors:  []problem.Code{problem.SessionNotFound, problem.PointUnknown, problem.QuotaSessions},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions/$SESSION/fork -d '{"name":"what if"}'`},
		func(ctx context.Context, who auth.Principal, in *forkSession) (Session, error) {
			out, err := s.o.Hub.ForkSession(ctx, who, in.Session, in.Body.hub())
			return sessionOf(out), err
		})
	s.addPoints(tag)
	addSilent(s, operation{id: "session.delete", method: http.MethodDelete, path: "/sessions/{session}", tag: tag, action: auth.SessionsWrite, summary: "Delete a session",
		about: "What runs in it is interrupted. What it ran stays in the history.", errors: []problem.Code{problem.SessionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/sessions/$SESSION`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) error {
			return s.o.Hub.DeleteSession(ctx, who, in.Session)
		})
}

// session is an operation on one session that answers with it.
func (s *server) session(do func(Hub, context.Context, auth.Principal, string) (hub.Session, error)) func(context.Context, auth.Principal, *SessionPath) (Session, error) {
	return func(ctx context.Context, who auth.Principal, in *SessionPath) (Session, error) {
		out, err := do(s.o.Hub, ctx, who, in.Session)
		return sessionOf(out), err
	}
}
