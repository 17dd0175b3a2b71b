package cli

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// recordsTime bounds how long a command waits for the database to open, and for its hub to end.
const recordsTime = 10 * time.Second

// localHub is the hub of this process: executions and turns run and are recorded there, in a session that the command opens and closes.
type localHub struct {
	p       *Program
	models  *chosenModel
	opening chan opened
	abandon context.CancelFunc // of opening
	records *Records
	session string // the id of the attached session, or ""
}

// opened is what came of opening the database.
type opened struct {
	records *Records
	err     error
}

// chosenModel is the model that a command asks, or those that tries of one question ask, by their names.
type chosenModel struct {
	model.Model
	others map[string]model.Model
}

// Open implements hub.Models.
func (c *chosenModel) Open(_ context.Context, name string) (model.Model, error) {
	if m := c.others[name]; m != nil {
		return m, nil
	}
	if c.Model == nil {
		return nil, problem.New(problem.ModelMissing, "the command asks no model")
	}
	return c.Model, nil
}

// List implements hub.Models.
func (c *chosenModel) List(context.Context) ([]hub.ModelInfo, error) { return nil, nil }

// openHub opens the database, while the caller starts other things. Where no history is kept or the database cannot be used, it opens one in memory instead.
// m, which may be nil, is the model that is asked.
func (p *Program) openHub(ctx context.Context, c config.Config, m model.Model, o RecordsOptions) *localHub {
	ctx, abandon := context.WithTimeout(context.WithoutCancel(ctx), recordsTime)
	h := &localHub{p: p, models: &chosenModel{Model: m}, opening: make(chan opened, 1), abandon: abandon}
	go func() {
		o.Models, o.Scratch = h.models, !c.Store.History
		if o.Log == nil {
			o.Log = p.warnings(slog.LevelError) // failures of the history, which do not end the command
		}
		records, err := p.Records(ctx, c, o)
		if err != nil && c.Store.History && !errors.Is(ctx.Err(), context.Canceled) {
			notef(p.Err, "this is not kept in the history: %s", oneLine(spoken(err)))
			o.Scratch = true
			records, err = p.Records(context.WithoutCancel(ctx), c, o)
		}
		h.opening <- opened{records, err}
	}()
	return h
}

// warnings is a log that shows the user what is of that level.
func (p *Program) warnings(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// wait returns the database as soon as it is open.
func (h *localHub) wait(ctx context.Context) (*Records, error) {
	if h.records != nil {
		return h.records, nil
	}
	select {
	case o := <-h.opening:
		h.opening <- o // close looks again
		h.records = o.records
		return o.records, o.err
	case <-ctx.Done():
		return nil, problem.New(problem.GivenUp, "stopped before the history was open")
	}
}

// attach has the hub use the command's session.
func (h *localHub) attach(ctx context.Context, a hub.Attachment, s hub.Live) error {
	records, err := h.wait(ctx)
	if err != nil {
		return err
	}
	row, err := records.Hub.AttachSession(ctx, auth.Local(), a, s)
	h.session = row.ID
	return err
}

// detach ends the hub's use of the session, when nothing runs in it any more. Then end closes the session, and returns the state that is recorded of it.
func (h *localHub) detach(ctx context.Context, end func() (hub.SessionState, string)) error {
	if h.session == "" {
		end()
		return nil
	}
	err := h.records.Hub.DetachSession(ctx, auth.Local(), h.session, end)
	h.session = ""
	return err
}

// close ends the hub and closes the database.
func (h *localHub) close() {
	h.abandon()
	o := <-h.opening
	if o.records == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordsTime)
	defer cancel()
	_ = o.records.Hub.Drain(ctx)
	_ = o.records.Close()
}

// execute runs code in the attached session and records it. Breaking off the range interrupts it.
func (h *localHub) execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		heard := true
		_, err := h.records.Hub.RunExecution(ctx, auth.Local(), h.session, req, func(e kernel.Event) error {
			if heard = yield(e, nil); !heard {
				return errUnheard
			}
			return nil
		})
		if err != nil && heard {
			yield(nil, err)
		}
	}
}

// errUnheard stops an execution or a turn whose events the command does not want any more.
var errUnheard = errors.New("nobody listens any more")

// closedAs is the state of a session that was saved and closed, or could not be (err), with the reason.
func closedAs(err error) (hub.SessionState, string) {
	if err == nil {
		return hub.SessionPaused, ""
	}
	return hub.SessionLost, cmp.Or(message(err), "it could not be saved")
}
