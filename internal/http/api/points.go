package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// SessionPoint is something that a session was, and can be again.
type SessionPoint struct {
	ID         string     `json:"id" example:"snp_k3v0q8x2m5n7p9r1s4t6"`
	Saved      *time.Time `json:"saved_at,omitempty" doc:"Missing: before anything ran"`
	Executions int        `json:"executions" doc:"How many had run"`
	Before     []string   `json:"before" doc:"The turns that began there"`
	Bytes      int64      `json:"bytes" doc:"On the disk, without what it has in common with older points"`
	Present    bool       `json:"present" doc:"Nothing was saved since"`
}

func sessionPointOf(p hub.Point) SessionPoint {
	before := p.Before
	if before == nil {
		before = []string{}
	}
	return SessionPoint{ID: p.ID, Saved: moment(p.Saved), Executions: p.Executions, Before: before, Bytes: p.Bytes, Present: p.Present}
}

// SessionPoints are the points of a session.
type SessionPoints struct {
	Items []SessionPoint `json:"items" doc:"The oldest first"`
}

// Undo says what to return to.
type Undo struct {
	To string `json:"to,omitempty" maxLength:"64" doc:"A point, or a turn before which there is one; the newest point that is not the present state when left out"`
}

type undoSession struct {
	SessionPath
	Body *Undo
}

func (s *server) addPoints(tag string) {
	add(s, operation{id: "session.points", method: http.MethodGet, path: "/sessions/{session}/points", tag: tag, action: auth.SessionsRead, summary: "List the points of a session",
		about: "What the session can be returned to, and forked from. One is kept from before each turn. How many are kept, and how much disk they may take, is the operator's setting; the oldest go first.", errors: []problem.Code{problem.SessionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/points`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (SessionPoints, error) {
			all, err := s.o.Hub.Points(ctx, who, in.Session)
			return SessionPoints{Items: each(all, sessionPointOf)}, err
		})
	add(s, operation{id: "session.point", method: http.MethodPost, path: "/sessions/{session}/points", tag: tag, action: auth.SessionsWrite, status: http.StatusCreated, summary: "Keep a point of a session",
		about: "Saves the session with its variables and files, and keeps that as a point.", errors: []problem.Code{problem.SessionNotFound, problem.SessionBusy, problem.DiskFull},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions/$SESSION/points`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (SessionPoint, error) {
			p, err := s.o.Hub.KeepPoint(ctx, who, in.Session)
			return sessionPointOf(p), err
		})
	add(s, operation{id: "session.undo", method: http.MethodPost, path: "/sessions/{session}/undo", tag: tag, action: auth.SessionsWrite, summary: "Return a session to a point",
		about:  "Variables and files are as they were then. Later points are deleted; to keep them, fork the session from the point instead. Running code is waited for. `rollback` of the session says what was undone, and its next execution or turn reports it.",
		errors: []problem.Code{problem.SessionNotFound, problem.PointUnknown, problem.NothingToUndo, problem.SessionBusy}, example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions/$SESSION/undo`},
		func(ctx context.Context, who auth.Principal, in *undoSession) (Session, error) {
			to := ""
			if in.Body != nil {
				to = in.Body.To
			}
			out, err := s.o.Hub.ReturnSession(ctx, who, in.Session, to)
			return sessionOf(out), err
		})
}
