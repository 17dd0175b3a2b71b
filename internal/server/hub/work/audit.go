package work

import (
	"context"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/stream"
)

// mostRowsLate bounds the rows that are written after their requests have ended, as happens when the store does not answer or the machine is too busy.
const mostRowsLate = 10_000

// WriteAudit writes a row: who asked for action ("session.create") on target (an id), and how that ended. The row is written even when the request has ended
// meanwhile. When the row cannot be written at once, the action is not undone: the row is written later, and no new work begins while the store does not
// answer.
func (c *Core) WriteAudit(ctx context.Context, who auth.Principal, action, target, detail string, err error) {
	for _, row := range c.NewAuditRow(who, action, target, detail, err) {
		werr := audit.Try(ctx, c.o.Audit, row)
		if werr == nil {
			continue
		}
		if stream.Refused(werr) {
			c.reportLostRow(ctx, row, werr)
			continue
		}
		if c.rowsLate.Add(1) > mostRowsLate {
			c.rowsLate.Add(-1)
			c.reportLostRow(ctx, row, werr)
			continue
		}
		c.RunInBackground(func(ctx context.Context) {
			defer c.rowsLate.Add(-1)
			if err := c.WriteUntilStored(ctx, func(ctx context.Context) error { return audit.Try(ctx, c.o.Audit, row) }); err != nil {
				c.reportLostRow(ctx, row, err)
			}
		})
	}
}

func (c *Core) reportLostRow(ctx context.Context, row audit.Row, err error) {
	c.Log.ErrorContext(ctx, "an audit row was not written", "action", row.Action, "target", row.Target, "user", row.User, "outcome", row.Outcome, "error", err)
}

// NewAuditRow returns the row that audit writes, or none without an audit log.
func (c *Core) NewAuditRow(who auth.Principal, action, target, detail string, err error) []audit.Row {
	if c.o.Audit == nil {
		return nil
	}
	outcome := "ok"
	if err != nil {
		outcome = problem.Of(err).Code
	}
	return []audit.Row{{
		ID: ident.New(ident.Audit), At: c.Now(), Project: who.Project, User: who.User, Key: who.Key, Action: action, Target: boundedText(target), Outcome: outcome,
		Detail: boundedText(detail), Request: who.Request, IP: who.IP, Agent: boundedText(who.Agent),
	}}
}

// boundedText shortens what a client sent, so that it cannot fill the audit log, and removes keys that a client sent in the wrong place.
func boundedText(s string) string {
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
