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
	if h.o.Audit == nil {
		return
	}
	row := audit.Row{
		ID: ident.New(ident.Audit), At: h.now(), Project: who.Project, User: who.User, Key: who.Key, Action: action, Target: bounded(target), Outcome: "ok",
		Detail: bounded(detail), Request: who.Request, IP: who.IP, Agent: bounded(who.Agent),
	}
	if err != nil {
		row.Outcome = problem.Of(err).Code
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditPatience)
	defer cancel()
	if werr := h.o.Audit.AddRow(ctx, row); werr != nil {
		h.log.ErrorContext(ctx, "an audit row was not written", "action", action, "target", row.Target, "user", who.User, "outcome", row.Outcome, "error", werr)
	}
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
