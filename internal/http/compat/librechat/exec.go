package librechat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/server/hub"
)

const (
	// mostOutputs is how many files an answer names.
	mostOutputs = 100
	// lateness is how long after its time limit a program's end has to be heard of.
	lateness = 5 * time.Second
)

// answer is what came of an execution.
type answer struct {
	Session  string   `json:"session_id"`
	Stdout   string   `json:"stdout"`
	Stderr   string   `json:"stderr"`
	Code     int      `json:"code"`
	Signal   *string  `json:"signal"`
	Message  *string  `json:"message"`
	Status   *string  `json:"status"`
	WallTime int64    `json:"wall_time"` // milliseconds
	Files    []output `json:"files"`
	Runtime  string   `json:"runtime_session_id,omitempty"`
}

// output is a file that code has made or changed.
type output struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Storage string `json:"storage_session_id"`
	Path    string `json:"path"`
}

// language is how a program of a language is run. Python has no command: it runs in the session's kernel.
type language struct {
	file    string
	command []string
	python  bool
}

func languages() map[string]language {
	python, node, bash := language{python: true}, language{file: "/tmp/main.cjs", command: []string{"node"}}, language{file: "/tmp/main.sh", command: []string{"bash"}}
	return map[string]language{"py": python, "python": python, "js": node, "bash": bash}
}

func (s *server) exec(c *call) error {
	r, err := s.read(c)
	if err != nil {
		return err
	}
	l, ok := languages()[r.Language]
	if !ok {
		return problem.New(problem.InvalidRequest, fmt.Sprintf("there is no language %.20q here", r.Language)).WithHint("there are py, js and bash")
	}
	ctx := c.Context()
	session, err := s.ready(ctx, c, r)
	if err != nil {
		return err
	}
	a, err := s.answered(ctx, c, session, r, func(a *answer) error {
		if l.python {
			return s.runPython(ctx, c, session, hub.NewExecution{Code: r.Code, Args: r.args, Timeout: s.Timeout}, a)
		}
		return s.runProgram(ctx, c, session, r, l, a)
	})
	if err != nil {
		return err
	}
	return c.reply(a)
}

// ready returns the session of a request, with its files in it.
func (s *server) ready(ctx context.Context, c *call, r request) (hub.Session, error) {
	session, err := s.place(ctx, c, r)
	if err == nil {
		err = s.putInputs(ctx, c, session, r)
	}
	return session, err
}

// answered returns what came of code that run runs: what it leaves in the answer, the time, and the files that are new or have changed.
func (s *server) answered(ctx context.Context, c *call, session hub.Session, r request, run func(*answer) error) (*answer, error) {
	storage := foreign(session.ID)
	_, before, err := s.objects(ctx, c, storage)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	a := &answer{Session: storage, Files: []output{}}
	if r.Hint != "" {
		a.Runtime = storage
	}
	if err = run(a); err != nil {
		return nil, err
	}
	a.WallTime = time.Since(began).Milliseconds()
	_, after, err := s.objects(ctx, c, storage)
	for _, e := range changed(before, after) {
		a.Files = append(a.Files, output{objectID(storage, e.Path), e.Path, storage, "/mnt/data/" + e.Path})
	}
	return a, err
}

// changed returns the files that are new, or have changed.
func changed(before, after []workspace.Entry) (all []workspace.Entry) {
	old := map[string]workspace.Entry{}
	for _, e := range before {
		old[e.Path] = e
	}
	for _, e := range after {
		if was, ok := old[e.Path]; !ok || was.Stamp != e.Stamp || was.Size != e.Size || !was.Modified.Equal(e.Modified) {
			all = append(all, e)
		}
	}
	return all[:min(len(all), mostOutputs)]
}

// runProgram runs a program beside the session's kernel.
func (s *server) runProgram(ctx context.Context, c *call, session hub.Session, r request, l language, a *answer) error {
	if err := s.Hub.CheckProgram(ctx, c.who, ""); err != nil {
		return err
	}
	// The program is in the folder for what does not last, so that it is none of the files that it leaves.
	line := `cat >"$0" && exec "$@"`
	start := process.Start{Args: slices.Concat([]string{"bash", "-c", line, l.file}, l.command, []string{l.file}, r.args), Input: true, Followed: true, Timeout: s.Timeout}
	p, err := s.Hub.StartProcess(ctx, c.who, session.ID, start)
	if err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended {
			_ = s.Hub.SignalProcess(context.WithoutCancel(ctx), c.who, session.ID, p.ID, "KILL", true) // it may have ended
		}
	}()
	if _, err := s.Hub.TellProcess(ctx, c.who, session.ID, p.ID, strings.NewReader(r.Code), true); err != nil {
		return err
	}
	// The limit is kept inside the sandbox, which code may have made slow.
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout+lateness, problem.New(problem.Overloaded, "the sandbox does not end the program in time"))
	defer cancel()
	events, err := s.Hub.FollowProcess(ctx, c.who, session.ID, p.ID, 0)
	if err != nil {
		return err
	}
	out := newText(s.MaxOutput)
	for e, err := range events {
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		switch e.Kind {
		case process.Stdout:
			out.stdout(string(e.Data))
		case process.Stderr:
			out.stderr(string(e.Data))
		case process.Ended:
			if ended = e.Exit != nil; ended {
				out.into(a)
				a.exit(*e.Exit)
				return nil
			}
		}
	}
	return errors.Join(context.Cause(ctx), problem.New(problem.Fault, "the session did not say how the program ended"))
}

// exit says how a program ended.
func (a *answer) exit(e process.Exit) {
	a.Code = e.Status()
	if e.Signal != "" {
		a.Signal = &e.Signal
	}
	switch e.Reason {
	case process.ForTime:
		a.say("the program ran for longer than it may")
	case process.ForMemory:
		a.say("the program used more memory than the session may have")
	}
}

// say tells the user why code did not end by itself.
func (a *answer) say(message string) {
	a.Message = &message
	if a.Stderr != "" && !strings.HasSuffix(a.Stderr, "\n") {
		a.Stderr += "\n"
	}
	a.Stderr += message + "\n"
}
