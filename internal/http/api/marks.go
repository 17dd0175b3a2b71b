package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Undone says what follows a turn goes on with.
type Undone struct {
	From    string    `json:"from" doc:"The turn from before which the variables and files are: what follows this turn goes on with them"`
	Session string    `json:"session" doc:"That has them"`
	At      time.Time `json:"at"`
}

// Rerun is a step that a person ran again.
type Rerun struct {
	Step      int       `json:"step"`
	Execution string    `json:"execution"`
	Session   string    `json:"session,omitempty" doc:"In which it ran; absent where an older server noted it"`
	At        time.Time `json:"at"`
}

func (t *Turn) mark(m *hub.TurnMarks) {
	if m == nil {
		return
	}
	if u := m.Undone; u != nil {
		t.Undone = &Undone{From: u.From, Session: u.Session, At: u.At.UTC()}
	}
	t.Reruns = each(m.Reruns, func(r hub.Rerun) Rerun {
		return Rerun{Step: r.Step, Execution: r.Execution, Session: r.Session, At: r.At.UTC()}
	})
}

type (
	undoTurns struct {
		TurnPath
		Body struct {
			From string `json:"from" maxLength:"64" doc:"A turn of its branch, or itself"`
		}
	}
	// StepPath names a step of a turn in an address.
	StepPath struct {
		TurnPath
		Step int `path:"step" minimum:"1" maximum:"1000" example:"1"`
	}
	noteRerun struct {
		StepPath
		Body struct {
			Execution string `json:"execution" minLength:"1" maxLength:"64"`
		}
	}
)

func (s *server) addMarks(tag string) {
	add(s, operation{id: "turn.undo", method: http.MethodPut, path: "/turns/{turn}/undone", tag: tag, action: auth.ConversationsWrite, summary: "Go on with the state from before a turn",
		about:   "What follows this turn goes on with the variables and files from before `from`, in a fork of the session: nothing is lost, and it can be taken back. It takes the right `sessions:write` as well.",
		errors:  []problem.Code{problem.TurnNotFound, problem.TurnRunning, problem.TurnInvalid, problem.PointUnknown},
		example: `curl -H "Authorization: Bearer $KEY" -X PUT $COVE/turns/$TURN/undone -d '{"from":"'$TURN'"}'`},
		func(ctx context.Context, who auth.Principal, in *undoTurns) (Turn, error) {
			out, err := s.o.Hub.UndoTurns(ctx, who, in.Turn, in.Body.From)
			return turnOf(out), err
		})
	addSilent(s, operation{id: "turn.redo", method: http.MethodDelete, path: "/turns/{turn}/undone", tag: tag, action: auth.ConversationsWrite, summary: "Go on with the state after a turn again",
		errors: []problem.Code{problem.TurnNotFound, problem.TurnRunning}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/turns/$TURN/undone`},
		func(ctx context.Context, who auth.Principal, in *TurnPath) error {
			_, err := s.o.Hub.RedoTurns(ctx, who, in.Turn)
			return err
		})
	add(s, operation{id: "turn.rerun", method: http.MethodPut, path: "/turns/{turn}/reruns/{step}", tag: tag, action: auth.ConversationsWrite, summary: "Note that a step ran again",
		about:   "With an execution that you have had run, which the answer does not know of. Exported and shared copies say so. It takes the right `sessions:read` as well.",
		errors:  []problem.Code{problem.TurnNotFound, problem.TurnRunning, problem.TurnInvalid, problem.ExecutionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X PUT $COVE/turns/$TURN/reruns/1 -d '{"execution":"'$EXECUTION'"}'`},
		func(ctx context.Context, who auth.Principal, in *noteRerun) (Turn, error) {
			out, err := s.o.Hub.NoteRerun(ctx, who, in.Turn, in.Step, in.Body.Execution)
			return turnOf(out), err
		})
	addSilent(s, operation{id: "turn.unrerun", method: http.MethodDelete, path: "/turns/{turn}/reruns/{step}", tag: tag, action: auth.ConversationsWrite, summary: "Show a step as it was",
		errors: []problem.Code{problem.TurnNotFound, problem.TurnRunning, problem.ExecutionNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/turns/$TURN/reruns/1`},
		func(ctx context.Context, who auth.Principal, in *StepPath) error {
			_, err := s.o.Hub.NoteRerun(ctx, who, in.Turn, in.Step, "")
			return err
		})
}
