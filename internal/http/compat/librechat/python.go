package librechat

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"cove/internal/python/display"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

const (
	// mostFigures is how many figures of an execution become files.
	mostFigures    = 20
	roomForFigures = 64 << 20 // bytes of them
	// farewell bounds the interruption of code whose client has left.
	farewell = 10 * time.Second
)

// runPython runs code in the session's kernel, with the variables of what ran before.
func (s *server) runPython(ctx context.Context, c *call, session hub.Session, n hub.NewExecution, a *answer) error {
	n.Session = session.ID
	e, err := s.Hub.StartExecution(ctx, c.who, n)
	if err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			defer cancel()
			_, _ = s.Hub.InterruptExecution(ctx, c.who, e.ID) // it may have ended
		}
	}()
	events, err := s.Hub.Follow(ctx, c.who, e.ID, 0)
	if err != nil {
		return err
	}
	out := &display.Screen{Room: s.MaxOutput, Pictures: mostFigures, PictureRoom: roomForFigures}
	for n, err := range events {
		if err != nil {
			return err
		}
		if n.Gap {
			out.Cut = true
			continue
		}
		event, err := transcript.ParseEvent(n.Event)
		if err != nil {
			return err
		}
		if d, ok := event.(kernel.Done); ok {
			ended = true
			a.Stdout, a.Stderr = out.Stdout(), out.Stderr()
			if out.Cut {
				a.sayCut(s.MaxOutput)
			}
			if out.LeftOut > 0 {
				a.say(fmt.Sprintf("%d more figures are left out: an answer has %d; save them as files", out.LeftOut, mostFigures))
			}
			a.done(d)
			continue
		}
		out.Add(event)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.keepFigures(ctx, c, session, e.ID, out.Shown())
}

// done says how an execution ended.
func (a *answer) done(d kernel.Done) {
	a.Code = d.ExitCode
	if d.Signal != "" {
		a.Signal = &d.Signal
	}
	if d.Outcome != kernel.OutcomeOK && d.Outcome != kernel.OutcomeError {
		a.Code = max(a.Code, 1)
		a.say(d.Message)
	}
}

// keepFigures writes the figures that code has shown into the workspace: LibreChat shows files.
func (s *server) keepFigures(ctx context.Context, c *call, session hub.Session, execution string, figures []display.Picture) error {
	if len(figures) == 0 {
		return nil
	}
	return s.Hub.Tree(ctx, c.who, session.ID, true, func(ctx context.Context, t hub.Tree) error {
		for i, figure := range figures {
			name := fmt.Sprintf("figure_%s_%d.%s", execution[max(0, len(execution)-6):], i+1, strings.TrimPrefix(figure.MIME, "image/"))
			if _, err := t.Write(ctx, name, bytes.NewReader(figure.Data)); err != nil {
				return err
			}
		}
		return nil
	})
}
