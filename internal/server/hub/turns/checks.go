package turns

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"time"

	"cove/internal/code/advice"
	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// Code is checked in sessions of their own, which are deleted afterwards: what is installed for a check, and what the code does, stays out of those of users. Each
// script of a check is an execution there, with the record, the bounds and the quotas of one.

// checkLife is how long a session for checks lives at most: what a killed server leaves of one goes then.
const checkLife = time.Hour

// lookPatience bounds one script of a look at a turn's code.
const lookPatience = 30 * time.Second

// CheckKind says what is asked about code.
type CheckKind string

// The kinds of checks.
const (
	CheckFindings  CheckKind = "findings" // mistakes and slow forms, and with NewCheck.Profile what its lines take
	CheckReference CheckKind = "reference"
	CheckOpenAPI   CheckKind = "openapi"
	CheckBenchmark CheckKind = "benchmark"
)

// NewCheck says what to check.
type NewCheck struct {
	Kind CheckKind // "": CheckFindings
	Name string    // of the file; one that ends in .ipynb is a notebook's. "": program.py, or the name of Path
	Code string
	// Before are programs that ran before Code in the same interpreter. Names that they make are there, and only what is found in Code is told.
	Before []string

	// Session and Path, in the place of Code, are a file of a session's workspace. What the code does when it runs, it does in a fork of the session.
	Session, Path string

	Measure bool // with CheckFindings, as in advice.Options
	Profile bool
	Ignore  []string
	Args    []string // of the program, where it runs

	Against string // with CheckBenchmark: the code of another program to measure beside it, or ""
	Sizes   []int
	Runs    int

	Timeout time.Duration // of each look and run, and of all runs of a benchmark; at most the server's of an execution, which 0 stands for
}

// Checked is what a check gave: the field of its kind is set.
type Checked struct {
	Report    *advice.Report
	Reference *advice.Reference
	OpenAPI   json.RawMessage
	Benchmark *advice.Benchmark
}

// runs says whether the code itself runs.
func (n NewCheck) runs() bool {
	return n.Kind == CheckOpenAPI || n.Kind == CheckBenchmark || n.Profile
}

// check says what is wrong with the request by itself.
func (n NewCheck) check() error {
	wrong := func(text, hint string) error { return problem.New(problem.CheckInvalid, text).WithHint(hint) }
	switch {
	case (n.Session == "") != (n.Path == ""):
		return wrong("a file of a session has a session and a path", "send both, or code")
	case (n.Code == "") == (n.Session == ""):
		return wrong("there is nothing to check, or there are two things", "send code, or session and path")
	case len(n.Before) > 0 && (n.Code == "" || n.runs() || n.Kind != CheckFindings):
		return wrong("programs before the code are for checks of the kind findings, of code that does not run", "leave out before")
	case n.Kind != CheckFindings && (n.Measure || n.Profile || len(n.Ignore) > 0):
		return wrong("measure, profile and ignore are for checks of the kind findings", "send a request for each kind")
	case n.Kind != CheckBenchmark && (n.Against != "" || len(n.Sizes) > 0 || n.Runs != 0):
		return wrong("against, sizes and runs are for checks of the kind benchmark", "send a request for each kind")
	case len(n.Args) > 0 && !n.Profile && n.Kind != CheckBenchmark:
		return wrong("the program does not run, so it can have no arguments", "args are for profile, and for the kind benchmark")
	}
	return nil
}

// Check looks at code, and returns when that is done; the end of ctx stops it. Needs auth.SessionsExecute, and for a file of a session auth.FilesRead. Problems:
// check_invalid, those of advice, of reading the file, of StartExecution, and of making a session.
func (r *Runner) Check(ctx context.Context, who auth.Principal, n NewCheck) (Checked, error) {
	n.Kind = cmp.Or(n.Kind, CheckFindings)
	err := who.Require(auth.SessionsExecute)
	if err == nil {
		err = n.check()
	}
	var out Checked
	if err == nil {
		out, err = r.checkCode(ctx, who, n)
	}
	r.work.WriteAudit(ctx, who, "check.run", n.Session, string(n.Kind), err)
	return out, err
}

func (r *Runner) checkCode(ctx context.Context, who auth.Principal, n NewCheck) (Checked, error) {
	work, end, err := r.live.BeginWork(ctx)
	if err != nil {
		return Checked{}, err
	}
	defer end()
	work, stop := context.WithCancelCause(work)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	src, against, err := r.checkSources(work, who, n)
	if err != nil {
		return Checked{}, err
	}
	origin := ""
	if n.runs() {
		origin = n.Session
	}
	session, err := r.openCheck(work, who, "check of "+src.Name, origin)
	if err != nil {
		return Checked{}, err
	}
	defer func() { // who asks in a row for checks does not meet quotas that the last one still takes up
		select {
		case <-session.close():
		case <-time.After(live.RemovePatience):
		case <-work.Done():
		}
	}()
	checker := &advice.Checker{Session: session, Timeout: record.Tighter(n.Timeout, r.o.Limits.Execution)}
	return n.do(work, checker, src, against)
}

// do does what the request asks for.
func (n NewCheck) do(ctx context.Context, c *advice.Checker, src advice.Source, against *advice.Source) (out Checked, err error) {
	switch n.Kind {
	case CheckFindings:
		var r advice.Report
		o := advice.Options{Measure: n.Measure, Profile: n.Profile, Args: n.Args, Ignore: n.Ignore}
		if len(n.Before) > 0 {
			r, err = c.CheckLast(ctx, src.Name, append(slices.Clone(n.Before), src.Text), o)
		} else {
			r, err = c.Check(ctx, src, o)
		}
		out.Report = &r
	case CheckReference:
		var r advice.Reference
		r, err = c.Document(ctx, src)
		out.Reference = &r
	case CheckOpenAPI:
		out.OpenAPI, err = c.OpenAPI(ctx, src)
	case CheckBenchmark:
		var b advice.Benchmark
		b, err = c.Benchmark(ctx, src, advice.Comparison{Against: against, Sizes: n.Sizes, Args: n.Args, Runs: n.Runs})
		out.Benchmark = &b
	default:
		err = problem.New(problem.CheckInvalid, "there is no such kind of check").WithHint("the kinds are findings, reference, openapi and benchmark")
	}
	if err != nil {
		return Checked{}, err
	}
	return out, nil
}

// checkSources reads what is to be checked, and what it is to be measured beside.
func (r *Runner) checkSources(ctx context.Context, who auth.Principal, n NewCheck) (src advice.Source, against *advice.Source, err error) {
	content, name := []byte(n.Code), cmp.Or(n.Name, "program.py")
	if n.Session != "" {
		name = cmp.Or(n.Name, path.Base(n.Path))
		if content, err = r.checkedFile(ctx, who, n.Session, n.Path); err != nil {
			return src, nil, err
		}
	}
	if src, err = advice.ReadSource(name, content); err != nil || n.Against == "" {
		return src, nil, err
	}
	other, err := advice.ReadSource("against.py", []byte(n.Against))
	return src, &other, err
}

// checkedFile reads a file of a workspace.
func (r *Runner) checkedFile(ctx context.Context, who auth.Principal, session, name string) ([]byte, error) {
	var content bytes.Buffer
	err := r.live.Tree(ctx, who, session, false, func(ctx context.Context, t live.Tree) error {
		at, err := t.Stat(ctx, name)
		if err == nil && at.Size > advice.MaxNotebook {
			err = problem.New(problem.CodeTooBig, fmt.Sprintf("the file has more than %d MiB, the most that is checked", advice.MaxNotebook>>20))
		}
		if err == nil {
			err = bodybudget.Recall(ctx, copiesOfRecord*at.Size)
		}
		if err == nil {
			_, err = t.Read(ctx, name, 0, advice.MaxNotebook, &content)
		}
		return err
	})
	return content.Bytes(), err
}

// lookAtSteps has each program of a turn looked at when it has run, and returns what ends that.
func (r *Runner) lookAtSteps(p *plan) (end func()) {
	steps := &advice.Steps{Timeout: lookPatience, Open: func(ctx context.Context) (advice.Session, func(), error) {
		s, err := r.openCheck(ctx, p.who, "check of the code of "+p.turn.ID, "")
		if err != nil {
			return nil, nil, err
		}
		return s, func() { s.close() }, nil
	}}
	p.spec.Look = func(ctx context.Context, _ int, code string) advice.Report { return steps.Look(ctx, code) }
	return steps.Close
}

// checkSession is a session in which code is checked.
type checkSession struct {
	r    *Runner
	who  auth.Principal
	id   string
	what string
}

var _ advice.Session = (*checkSession)(nil)

// openCheck makes a session for a check: a new one, or a fork of origin where that is not "".
func (r *Runner) openCheck(ctx context.Context, who auth.Principal, what, origin string) (*checkSession, error) {
	who.Scopes = nil // a caller with the right to a check may make what the check needs
	n := live.NewSession{Name: what, Life: checkLife}
	if len(n.Name) > record.LongestName {
		n.Name = "check"
	}
	var row record.Session
	var err error
	if origin == "" {
		row, err = r.live.CreateSession(ctx, who, n)
	} else {
		row, err = r.live.ForkSession(ctx, who, origin, n)
	}
	if err != nil {
		return nil, err
	}
	return &checkSession{r: r, who: who, id: row.ID, what: what}, nil
}

// close begins to delete the session, and returns what is closed when that is done.
func (s *checkSession) close() (gone <-chan struct{}) {
	done := make(chan struct{})
	s.r.work.RunInBackground(func(ctx context.Context) {
		defer close(done)
		err := s.r.work.WriteUntilStored(ctx, func(ctx context.Context) error { return s.r.live.DeleteSessionRow(ctx, s.who.Project, s.id) })
		if err != nil && !problem.Is(err, problem.NotFound) {
			s.r.work.Log.WarnContext(ctx, "the session of a check was not deleted; it goes at the end of its life", "session", s.id, "error", err)
		}
	})
	return done
}

// Execute implements advice.Session. The record of the execution says what it was for, in the place of the script.
func (s *checkSession) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		deaf := false
		err := s.r.meter.MayRun(ctx, s.who.Project, s.who.Key)
		if err == nil {
			err = s.r.live.UseSession(ctx, s.who, s.id, func(ctx context.Context, _ live.Live) error {
				e := record.Execution{Project: s.who.Project, User: s.who.User, Key: s.who.Key, Session: s.id, Code: "# " + s.what}
				_, err := s.r.live.RunAndRecord(ctx, e, req, func(_ context.Context, event record.Event) error {
					if deaf = deaf || !yield(event, nil); deaf {
						return live.ErrUnheard
					}
					return nil
				})
				return err
			})
		}
		if err != nil && !deaf {
			yield(nil, err)
		}
	}
}

// ReadFile implements advice.Session.
func (s *checkSession) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	var content bytes.Buffer
	err := s.r.live.UseSession(ctx, s.who, s.id, func(ctx context.Context, l live.Live) error {
		_, err := l.Read(ctx, name, 0, limit, &content)
		return err
	})
	return content.Bytes(), err
}
