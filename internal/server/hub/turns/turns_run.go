package turns

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// hiddenFor is how long the end of a hidden turn can be read.
const hiddenFor = time.Minute

// beginTurn begins to run a turn, which is recorded already.
func (r *Runner) beginTurn(p *plan) *liveTurn {
	ctx, over := telemetry.Span(p.work, live.SpanTurn, slog.String("turn", p.turn.ID), slog.String("conversation", p.turn.Conversation),
		slog.String("session", p.turn.Session), slog.String("model", p.turn.Model))
	ctx, stop := context.WithCancelCause(ctx)
	p.work, p.over = ctx, over
	l := &liveTurn{id: p.turn.ID, project: p.turn.Project, stop: stop, ended: make(chan struct{}), events: p.events, turn: p.turn}
	r.table.add(l)
	return l
}

// runTurn runs a turn to its end and records it. The error says why there is no answer.
func (r *Runner) runTurn(p *plan, l *liveTurn) (record.Turn, loop.Answer, error) {
	defer p.end()
	defer l.stop(nil)
	defer l.events.Close()
	answer, err := r.runInSession(p, l)
	if p.resumed != nil {
		p.resumed.lapse(err)
	}
	t := p.turn
	t.Finished, t.Work = r.work.Now(), l.work
	var body []byte
	var werr error
	var failed *problem.Error
	if err == nil {
		t.State, t.Answer, t.Reason, t.Messages, t.Calls = record.TurnCompleted, answer.Text, string(answer.Reason), answer.Messages, answer.Calls
		t.Usage, t.Steps = answer.Usage, answer.Steps
		r.weighContext(&t, answer.Last)
		if answer.Reason == loop.ClientCalls {
			t.State = record.TurnWaiting
		}
		body, werr = transcript.TurnEvent(answer)
	} else {
		failed = t.MarkFailed(r.work.PublicProblem(p.work, "turn", t.ID, turnProblem(p.work, err)))
		if stopped, ok := errors.AsType[*loop.Stopped](err); ok {
			t.Messages, t.Usage, t.Steps = stopped.Messages, stopped.Usage, stopped.Steps
			r.weighContext(&t, stopped.Last)
		}
		body, werr = transcript.Failure(failed)
		if failed.Kind == problem.Internal {
			r.work.Log.ErrorContext(p.work, "a turn failed", "turn", t.ID, "error", err)
		}
	}
	spent := used(t.Usage, t.Cost)
	switch {
	case t.Tries == nil:
		spent.Turns = 1
	case t.Tries.Of == "": // each try has counted what it took
		about := *t.Tries
		about.Request = nil
		spent, t.Usage, t.Cost, t.Tries = record.Usage{Turns: 1}, p.used, p.cost, &about
	}
	r.meter.AddUsage(p.work, p.who, spent)
	if werr == nil {
		recording, cancel := r.live.RecordingContext(p.hear != nil)
		if werr = r.endTurn(recording, l, &t, body); stream.Refused(werr) {
			werr = r.endBare(recording, l, &t, werr)
		}
		cancel()
	}
	if werr != nil {
		r.work.Log.ErrorContext(p.work, "the end of a turn was not recorded", "turn", t.ID, "error", werr)
		r.table.over(l, t)
	}
	r.dropTries(p.work, t.Project, p.forks...)
	r.turnSeen(p.work, t)
	r.nameConversation(p, t)
	p.over(err)
	close(l.ended)
	if !t.Hidden {
		r.table.remove(t.ID)
		r.askLater(t.Project, t.Conversation)
	} else {
		r.work.RunInBackground(func(ctx context.Context) { r.forgetLater(ctx, t) })
	}
	if failed != nil {
		err = failed
	}
	return t, answer, err
}

// weighContext says what a turn cost by today's prices, and how much of the model's context its last request took.
func (r *Runner) weighContext(t *record.Turn, last model.Usage) {
	about := r.about(t.Model)
	t.Cost, t.Context = about.Cost(t.Usage), record.Context{Used: last.Total(), Size: about.Context}
}

// turnProblem says why a turn failed: the request that stopped the turn gave the cause, and all other errors are its consequence.
func turnProblem(work context.Context, err error) error {
	if cause, ok := errors.AsType[*problem.Error](context.Cause(work)); ok {
		return cause
	}
	return err
}

// endTurn stores the end and then shows it to followers. A client that sees the end may begin the next turn at once.
func (r *Runner) endTurn(ctx context.Context, l *liveTurn, t *record.Turn, body []byte) error {
	return r.storeTurnEnd(ctx, l, t, body, func(last []stream.Event) []stream.Event { return last })
}

// endBare stores a turn as failed, without its texts, after the store has refused its end: one of the texts may be the reason.
func (r *Runner) endBare(ctx context.Context, l *liveTurn, t *record.Turn, refused error) error {
	r.work.Log.ErrorContext(ctx, "the end of a turn was refused by the store; it is recorded as failed", "turn", t.ID, "error", refused)
	t.Answer, t.Messages, t.Calls = "", nil, nil
	body, err := transcript.Failure(t.MarkFailed(problem.New(problem.TurnUnrecorded, "the turn ended, but its end could not be recorded").WithHint("ask again")))
	if err != nil {
		return err
	}
	return r.storeTurnEnd(ctx, l, t, body, stream.Shortened)
}

func (r *Runner) storeTurnEnd(ctx context.Context, l *liveTurn, t *record.Turn, body []byte, keep func(last []stream.Event) []stream.Event) error {
	return r.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		return l.events.Finish(ctx, stream.Origin{}, body, func(ctx context.Context, last []stream.Event) error {
			t.Events = last[len(last)-1].Seq
			last = keep(last)
			var err error
			if t.Hidden {
				err = r.work.Store.AddEvents(ctx, last) // its record stays unfinished, and a restart removes it
			} else {
				_, err = r.work.Store.FinishTurn(ctx, *t, last)
			}
			if err == nil {
				r.table.over(l, *t)
			}
			return err
		})
	})
}

// runInSession runs the turn and puts its events into its stream, all but the end.
func (r *Runner) runInSession(p *plan, l *liveTurn) (answer loop.Answer, err error) {
	for _, notice := range p.notices {
		if err := r.publishEvent(p.work, p, l, loop.Notice{Text: notice}, "", 0); err != nil {
			return answer, err
		}
	}
	who := p.who
	who.Scopes = nil
	for _, file := range p.files {
		if _, err := r.live.PutFile(p.work, who, p.turn.Session, file, p.names[file]); err != nil {
			return answer, err
		}
	}
	if p.tries != nil {
		return r.tryTurn(p, l)
	}
	if !p.spec.Python {
		return r.runLoop(p.work, p, l, nil)
	}
	if p.looks {
		defer r.lookAtSteps(p)()
	}
	s, err := r.live.AcquireSession(p.work, who.Project, p.turn.Session)
	if err != nil {
		if p.resumed != nil && p.work.Err() == nil {
			p.resumed.unclaim() // the results can be brought again when there is room for the session
			p.resumed = nil
		}
		return answer, err
	}
	held := &live.Lease{Seat: s}
	err = r.live.LendSession(p.work, held, func(ctx context.Context) error {
		if gone := r.live.TakeRollback(ctx, p.turn.Project, p.turn.Session); gone != nil {
			lost := gone.Event()
			p.spec.Rolledback = lost.String()
			if p.unheard {
				p.lost = &lost
			}
			if err := r.publishEvent(ctx, p, l, loop.Notice{Text: p.spec.Rolledback}, "", 0); err != nil {
				return err
			}
		}
		marked := r.markTurn(ctx, p)
		defer func() { <-marked }()
		answer, err = r.runLoop(ctx, p, l, &stepper{Live: s.Live, lease: held, r: r, turn: p.turn, who: who, offer: p.offer, resumed: p.resumed, marked: marked})
		return err
	})
	return answer, err
}

// runLoop consumes the interpreter's events. steps is nil without Python.
func (r *Runner) runLoop(ctx context.Context, p *plan, l *liveTurn, steps *stepper) (answer loop.Answer, err error) {
	var session loop.Executor
	if steps != nil {
		session = steps
	}
	ending, cancel := record.WithLimit(ctx, r.o.Turns.Time)
	defer func() { cancel() }()
	if steps != nil {
		p.spec.Screen = r.screenTurn(ctx, p)
		p.spec.Resume = steps.Resume
		defer steps.leave()
		p.spec.Approve = func(ctx context.Context, _ int) (loop.Decision, error) { return r.awaitWord(ctx, p, l, steps) }
		if p.decide != nil {
			p.spec.Approve, p.spec.Screen = p.decide, askedAll(p.spec.Screen)
		}
	}
	for event, err := range loop.Run(ctx, p.model, session, r.o.Turns, p.spec) {
		if stopped, ok := errors.AsType[*loop.Stopped](err); ok {
			stopped.Err = turnProblem(ctx, stopped.Err)
			return answer, stopped
		}
		l.work.NoteEvent(event)
		room, execution, step := ending, "", 0
		switch e := event.(type) {
		case loop.Approval:
			if p.decide == nil {
				err = r.noteWaiting(ctx, l, e)
			}
			if err != nil {
				return answer, err
			}
		case loop.Start:
			cancel()
			ending, cancel = record.WithLimit(ctx, r.o.Turns.Time) // the user may have taken long
			room = ending
			execution, step = steps.announce(e), e.Step
			e.Execution = execution
			event = e
		case loop.Output:
			room, execution, step = cmp.Or(steps.time, ending), steps.execution(e.Step), e.Step
		case loop.Answer:
			if answer = e; e.Suspended == nil {
				continue
			}
			if err := steps.suspend(e.Suspended); err != nil {
				return answer, err
			}
			continue
		}
		if err := r.publishEvent(room, p, l, event, execution, step); err != nil {
			return answer, err
		}
		if _, began := event.(loop.Start); began && p.lost != nil {
			if err := r.publishEvent(room, p, l, loop.Output{Step: step, Event: *p.lost}, execution, step); err != nil {
				return answer, err
			}
			p.lost = nil
		}
	}
	if answer.Reason == "" {
		return answer, problem.New(problem.TurnUnfinished, "the turn ended without an answer")
	}
	return answer, nil
}

// askedAll has all code wait that screen lets run.
func askedAll(screen func(string) loop.Screening) func(string) loop.Screening {
	return func(code string) loop.Screening {
		s := screen(code)
		s.Ask = true
		return s
	}
}

// publishEvent puts an event into a turn's stream. It waits for room until ctx ends, unless the turn's caller gets each event directly.
func (r *Runner) publishEvent(ctx context.Context, p *plan, l *liveTurn, event record.TurnEvent, execution string, step int) error {
	body, err := transcript.TurnEvent(event)
	if err != nil {
		return err
	}
	from := stream.Origin{Part: execution, Step: step}
	if p.hear == nil {
		l.events.Append(ctx, from, body)
		return nil
	}
	l.events.Offer(from, body)
	return p.hear(event)
}

// forgetLater removes a hidden turn after hiddenFor, or when the hub ends.
func (r *Runner) forgetLater(ctx context.Context, t record.Turn) {
	timer := time.NewTimer(hiddenFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	r.live.DetachedEnded(ctx, t.ID) // code of it that waits for a client
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), live.TellPatience)
	defer cancel()
	if err := r.forgetTurn(ctx, t); err != nil && problem.Of(err).Kind != problem.NotFound {
		r.work.Log.ErrorContext(ctx, "a turn that is not to be stored was not removed; the next start removes it", "turn", t.ID, "error", err)
	}
}

// forgetTurn removes every record of a hidden turn, and its conversation if it was made for the turn.
func (r *Runner) forgetTurn(ctx context.Context, t record.Turn) error {
	err := r.work.Store.DeleteTurn(ctx, t.Project, t.ID)
	if err != nil {
		return err
	}
	r.table.remove(t.ID)
	if _, ok := r.table.reserve(t.Conversation, ""); !ok {
		return nil // the conversation is used
	}
	defer r.table.free(t.Conversation)
	c, err := r.work.Store.Conversation(ctx, t.Project, t.Conversation)
	if err != nil || c.Turns > 0 || !c.Created.Equal(t.Created) {
		return err
	}
	return r.work.Store.DeleteConversation(ctx, t.Project, c.ID)
}
