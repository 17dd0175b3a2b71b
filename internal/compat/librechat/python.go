package librechat

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"cove/internal/hub"
	"cove/internal/kernel"
	"cove/internal/transcript"
)

const (
	// mostFigures is how many figures of an execution become files.
	mostFigures = 20
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
	out := newText(s.MaxOutput)
	var figures []string
	for n, err := range events {
		if err != nil {
			return err
		}
		if n.Gap {
			out.cut = true
			continue
		}
		event, err := transcript.ParseEvent(n.Event)
		if err != nil {
			return err
		}
		if d, ok := event.(kernel.Done); ok {
			ended = true
			out.into(a)
			a.done(d)
			continue
		}
		if figure := out.take(event); figure != "" && len(figures) < mostFigures {
			figures = append(figures, figure)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.keepFigures(ctx, c, session, e.ID, figures)
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
func (s *server) keepFigures(ctx context.Context, c *call, session hub.Session, execution string, figures []string) error {
	if len(figures) == 0 {
		return nil
	}
	return s.Hub.Tree(ctx, c.who, session.ID, true, func(ctx context.Context, t hub.Tree) error {
		for i, figure := range figures {
			name := fmt.Sprintf("figure_%s_%d.png", execution[max(0, len(execution)-6):], i+1)
			if _, err := t.Write(ctx, name, base64.NewDecoder(base64.StdEncoding, strings.NewReader(figure))); err != nil {
				return err
			}
		}
		return nil
	})
}
