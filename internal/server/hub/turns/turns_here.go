package turns

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"

	"cove/internal/code/screen"
	"cove/internal/core/telemetry"
	"cove/internal/llm/loop"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// RunTurn is StartTurn for a caller in this process. It calls hear for each event at once, one call after the other, and an loop.Answer comes last. An error
// of hear stops the turn, as the end of ctx does. RunTurn returns when the turn has ended; the error says why there is no answer. NewTurn.Hidden and NewTurn.Once
// are ignored.
func (r *Runner) RunTurn(ctx context.Context, who auth.Principal, n record.NewTurn, hear func(record.TurnEvent) error) (record.Turn, error) {
	if err := mayStart(who, n); err != nil {
		return record.Turn{}, err
	}
	n.Heard = true
	p, err := r.planTurn(ctx, who, n)
	if err != nil {
		return record.Turn{}, err
	}
	p.hear = hear
	running := r.beginTurn(p)
	defer context.AfterFunc(ctx, func() { running.stop(canceledTurn()) })()
	t, answer, err := r.runTurn(p, running)
	if err == nil {
		err = hear(answer)
	}
	return t, err
}

// markTurn is mark beside the beginning of a turn, which does not end for it. The channel is closed when it is done: no code of the turn may run before that. A turn that
// begins in the middle of code marks nothing.
func (r *Runner) markTurn(ctx context.Context, p *plan) <-chan struct{} {
	done, t := make(chan struct{}), p.turn
	if p.resumed != nil || r.o.Limits.Points == 0 || !r.live.CanSave() {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		if err := r.live.MarkPoint(ctx, t.Session, t.ID); err != nil && ctx.Err() == nil {
			r.work.Log.WarnContext(ctx, "the session cannot be returned to before a turn", "session", t.Session, "turn", t.ID, "error", err)
		}
	}()
	return done
}

// redactTold takes things out of what a model is told of files.
func (r *Runner) redactTold(ctx context.Context, t record.Turn, told []workspace.Told) []workspace.Told {
	kinds := r.live.RedactionIn(ctx, t.Project, t.Key, t.Session)
	if kinds.None() {
		return told
	}
	out := slices.Clone(told)
	for i, t := range out {
		out[i].What, _ = kinds.String(t.What)
		lines, _ := kinds.String(strings.Join(t.Lines, "\n"))
		if len(t.Lines) > 0 {
			out[i].Lines = strings.Split(lines, "\n")
		}
	}
	return out
}

// screenTurn is loop.Turn's Screen: what becomes of the model's code.
func (r *Runner) screenTurn(ctx context.Context, p *plan) func(code string) loop.Screening {
	return func(code string) loop.Screening {
		out := loop.Screening{Ask: p.asks}
		rules, err := r.meter.CodeRules(ctx, p.turn.Project, p.turn.Key)
		if err != nil {
			r.work.Log.WarnContext(ctx, "the rules for code could not be read, so that code of a turn waits for its user", "error", err)
			return loop.Screening{Ask: true}
		}
		if cmp.Or(rules.Policy, record.CodeOff) == record.CodeOff {
			return out
		}
		found := screen.Look(code)
		if !rules.Concern(found) {
			return out
		}
		why := screen.Describe(found)
		if rules.Policy == record.CodeRefuse || rules.Policy == record.CodeAsk && p.alone {
			out.Refuse = why
		} else if rules.Policy == record.CodeAsk {
			out.Ask, out.Why = true, why
		}
		return out
	}
}

// turnSeen counts and logs the end of a turn.
func (r *Runner) turnSeen(ctx context.Context, t record.Turn) {
	telemetry.Count(ctx, telemetry.Turns, 1, string(t.State))
	telemetry.Note(ctx, slog.String("outcome", string(t.State)), slog.Int("steps", t.Steps))
	r.work.Log.LogAttrs(ctx, slog.LevelInfo, "turn finished", slog.String("outcome", string(t.State)), slog.Float64("seconds", t.Finished.Sub(t.Created).Seconds()),
		slog.Int("steps", t.Steps), slog.Int64("tokens_in", t.Usage.InputTokens), slog.Int64("tokens_out", t.Usage.OutputTokens), slog.String("model", t.Model),
		slog.String("turn", t.ID), slog.String("conversation", t.Conversation), slog.String("session", t.Session), slog.String("project", t.Project))
}
