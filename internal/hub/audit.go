package hub

import (
	"context"
	"strings"
	"time"

	"cove/internal/audit"
	"cove/internal/auth"
	"cove/internal/ident"
	"cove/internal/problem"
	"cove/internal/telemetry"
)

// auditPatience bounds how long a change that was made waits for its row.
const auditPatience = 10 * time.Second

// audit writes a row: who asked for action ("session.create") on target (an id), and how that ended. The row is written also when the request has
// ended meanwhile. What was done is not undone because the row cannot be written; the log has it then.
func (h *Hub) audit(ctx context.Context, who auth.Principal, action, target, detail string, err error) {
	for _, row := range h.auditRow(who, action, target, detail, err) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditPatience)
		defer cancel()
		if werr := h.o.Audit.AddRow(ctx, row); werr != nil {
			h.log.ErrorContext(ctx, "an audit row was not written", "action", action, "target", row.Target, "user", who.User, "outcome", row.Outcome, "error", werr)
		}
	}
}

// auditRow is the row that audit writes; none where there is no audit log.
func (h *Hub) auditRow(who auth.Principal, action, target, detail string, err error) []audit.Row {
	if h.o.Audit == nil {
		return nil
	}
	outcome := "ok"
	if err != nil {
		outcome = problem.Of(err).Code
	}
	return []audit.Row{{
		ID: ident.New(ident.Audit), At: h.now(), Project: who.Project, User: who.User, Key: who.Key, Action: action, Target: bounded(target), Outcome: outcome,
		Detail: bounded(detail), Request: who.Request, IP: who.IP, Agent: bounded(who.Agent),
	}}
}

// bounded keeps what a client says from filling the audit log, and keys that he wrote in the wrong place from being in it.
func bounded(s string) string {
	const most = 200
	if len(s) > 64*most {
		s = s[:64*most]
	}
	s = telemetry.Clean(s)
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
