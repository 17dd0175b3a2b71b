package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/sessions/session"
	"cove/internal/sessions/template"
)

// templates is the folder of the warm interpreters.
func templates(c config.Config) string { return filepath.Join(c.Folders.Data, "templates") }

// templatesAhead is the folder of those that were made ahead, "" where there is none.
func templatesAhead(c config.Config) string {
	if c.Folders.Ahead == "" {
		return ""
	}
	c.Folders.Data = c.Folders.Ahead
	return templates(c)
}

// templateOf says which template sessions with these options start from.
func templateOf(c config.Config, saver sandbox.Saver, o session.Options, progress io.Writer) template.Options {
	return template.Options{Dir: templates(c), Ahead: templatesAhead(c), Engine: saver, Env: o.Env, Limits: o.Limits, Packages: o.Packages, Share: c.Sandbox.ShareTemplate, Progress: progress}
}

// openWarm opens a session from the warm interpreter, where the engine can restore one. A template that does not work is made
// again, once; where none can be made, the session starts cold and says so.
func openWarm(ctx context.Context, c config.Config, o session.Options, progress io.Writer) (*session.Live, error) {
	saver, ok := o.Engine.(sandbox.Saver)
	if !ok || len(o.Volumes) > 0 { // a checkpoint has the volumes that it was made with
		return session.Open(ctx, o)
	}
	for attempt := 1; ; attempt++ {
		wanted := templateOf(c, saver, o, progress)
		if attempt > 1 {
			wanted.Ahead = "" // it may have come from there
		}
		t, err := template.Ensure(ctx, wanted)
		if err == nil {
			warm := o
			warm.Checkpoint, warm.Reseed = t.Checkpoint(), true
			var s *session.Live
			if s, err = session.Open(ctx, warm); err == nil {
				return s, nil
			}
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if attempt == 1 && t != nil {
			_, _ = fmt.Fprintf(progress, "The warm interpreter did not start (%s) and is made again.\n", problem.Of(err).Message)
			if template.Remove(t) == nil {
				continue
			}
		}
		_, _ = fmt.Fprintf(progress, "cove: starting without the warm interpreter, which takes longer: %s\n", problem.Of(err).Message)
		return session.Open(ctx, o)
	}
}
