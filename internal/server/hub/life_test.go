package hub_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func TestASessionGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	if got, done := l.run(who, s.ID, "remember one\nsay hello\nrecall"); fmt.Sprint(got) != "[hello one]" || done.Outcome != kernel.OutcomeOK {
		t.Errorf("got %q %+v", got, done)
	}
	paused, err := l.PauseSession(t.Context(), who, s.ID)
	if err != nil || paused.State != hub.SessionPaused || paused.Disk == 0 || paused.Executions != 1 {
		t.Fatalf("paused: %+v %v", paused, err)
	}
	if got, _ := l.run(who, s.ID, "remember two\nrecall"); fmt.Sprint(got) != "[one two]" {
		t.Errorf("after the pause: %q", got)
	}
	if l.state(who, s.ID) != hub.SessionActive || l.toys.starts != 2 {
		t.Errorf("state %s, started %d times", l.state(who, s.ID), l.toys.starts)
	}
	fork, err := l.ForkSession(t.Context(), who, s.ID, hub.NewSession{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	l.run(who, s.ID, "remember three")
	if got, _ := l.run(who, fork.ID, "recall"); fmt.Sprint(got) != "[one two]" {
		t.Errorf("the fork has %q", got)
	}
	if err := l.DeleteSession(t.Context(), who, s.ID); err != nil {
		t.Fatal(err)
	}
	_, err = l.Session(t.Context(), who, s.ID)
	fails(t, err, "session_not_found")
	_, err = l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello"})
	fails(t, err, "session_not_found")
	fails(t, l.DeleteSession(t.Context(), who, s.ID), "session_not_found")
}

func TestOthersSeeNothing(t *testing.T) {
	t.Parallel()
	l, who, other := newLife(t, nil), someone(auth.LocalProject), someone("prj_other")
	s := l.session(who)
	e := l.start(who, s.ID, "say hello")
	l.wait(who, e.ID)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"session":   func() error { _, err := l.Session(ctx, other, s.ID); return err },
		"change":    func() error { _, err := l.ChangeSession(ctx, other, s.ID, hub.SessionChange{}); return err },
		"pause":     func() error { _, err := l.PauseSession(ctx, other, s.ID); return err },
		"resume":    func() error { _, err := l.ResumeSession(ctx, other, s.ID); return err },
		"fork":      func() error { _, err := l.ForkSession(ctx, other, s.ID, hub.NewSession{}); return err },
		"delete":    func() error { return l.DeleteSession(ctx, other, s.ID) },
		"kernels":   func() error { _, err := l.Kernels(ctx, other, s.ID); return err },
		"start":     func() error { _, err := l.StartExecution(ctx, other, hub.NewExecution{Session: s.ID}); return err },
		"execution": func() error { _, err := l.Execution(ctx, other, e.ID); return err },
		"interrupt": func() error { _, err := l.InterruptExecution(ctx, other, e.ID); return err },
		"follow":    func() error { _, err := l.Follow(ctx, other, e.ID, 0); return err },
	} {
		want := "session_not_found"
		if slices.Contains([]string{"execution", "interrupt", "follow"}, name) {
			want = "execution_not_found"
		}
		if err := call(); err == nil {
			t.Errorf("%s is done for another project", name)
		} else {
			fails(t, err, want)
		}
	}
	reader := who
	reader.Role = auth.Viewer
	_, err := l.CreateSession(ctx, reader, hub.NewSession{})
	fails(t, err, "forbidden")
	_, err = l.StartExecution(ctx, reader, hub.NewExecution{Session: s.ID})
	fails(t, err, "forbidden")
	rows, err := l.store.Rows(ctx, audit.Query{Project: who.Project, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, r := range rows {
		told = append(told, r.Action+" "+r.Outcome)
	}
	if want := "[execution.start forbidden session.create forbidden execution.start ok session.create ok]"; fmt.Sprint(told) != want {
		t.Errorf("the audit log says %q", told)
	}
}

func TestEveryExecutionEndsOnce(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	running := l.start(who, s.ID, "say on\nwait never")
	l.began(who, running.ID)
	waiting := l.start(who, s.ID, "say two")
	for _, e := range []hub.Execution{waiting, running} {
		if _, err := l.InterruptExecution(t.Context(), who, e.ID); err != nil {
			t.Fatal(err)
		}
		if got, done := l.wait(who, e.ID); done.Outcome != kernel.OutcomeInterrupted {
			t.Errorf("ended as %+v with %q", done, got)
		}
		if e, err := l.Execution(t.Context(), who, e.ID); err != nil || e.State != "interrupted" || e.Finished.IsZero() || e.Events == 0 {
			t.Errorf("%+v %v", e, err)
		}
	}
	died := l.start(who, s.ID, "remember one\ndie")
	if _, done := l.wait(who, died.ID); done.Outcome != kernel.OutcomeSandboxDied {
		t.Errorf("%+v", done)
	}
	if got, _ := l.run(who, s.ID, "recall"); fmt.Sprint(got) != "[]" {
		t.Errorf("after the death: %q", got)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s, idle := l.session(who), l.session(who)
	l.run(who, idle.ID, "remember one")
	e := l.start(who, s.ID, "say on\nremember two\nwait never")
	l.began(who, e.ID)
	queued := l.start(who, s.ID, "say two")
	follower, err := l.Follow(t.Context(), who, e.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	last := kernel.Done{}
	for n, err := range follower {
		if err != nil {
			t.Fatal(err)
		}
		last, _ = n.Event.(kernel.Done)
	}
	if last.Outcome != kernel.OutcomeInterrupted {
		t.Errorf("the follower ended with %+v", last)
	}
	for _, id := range []string{e.ID, queued.ID} {
		if e, err := l.store.Execution(t.Context(), who.Project, id); err != nil || e.State != "interrupted" {
			t.Errorf("%+v %v", e, err)
		}
	}
	_, err = l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID})
	fails(t, err, "draining")
	_, err = l.CreateSession(t.Context(), who, hub.NewSession{})
	fails(t, err, "draining")
	fails(t, l.Ready(t.Context()), "draining")

	next := lifeIn(t, l.dir, openStore(t, l.dir), nil)
	if next.state(who, s.ID) != hub.SessionPaused || next.state(who, idle.ID) != hub.SessionPaused {
		t.Errorf("the sessions are %s and %s", next.state(who, s.ID), next.state(who, idle.ID))
	}
	for id, want := range map[string]string{s.ID: "[two]", idle.ID: "[one]"} {
		if got, _ := next.run(who, id, "recall"); fmt.Sprint(got) != want {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

func TestADrainPausesWhatNobodyUsesWhileOthersWork(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s, idle := l.session(who), l.session(who)
	e := l.start(who, s.ID, "say on\nwait never")
	l.began(who, e.ID)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.Drain(ctx) }()
	for l.state(who, idle.ID) != hub.SessionPaused {
		runtime.Gosched()
	}
	if row, err := l.store.Execution(t.Context(), who.Project, e.ID); err != nil || row.State != "running" || l.state(who, s.ID) != hub.SessionActive {
		t.Errorf("the work that runs was not let run: %+v %v", row, err)
	}
	cancel()
	if err := <-ended; err != nil || l.state(who, s.ID) != hub.SessionPaused {
		t.Errorf("%s, %v", l.state(who, s.ID), err)
	}
}

func TestASandboxThatDiesUnused(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	l.run(who, s.ID, "remember one")
	if _, err := l.PauseSession(t.Context(), who, s.ID); err != nil {
		t.Fatal(err)
	}
	l.run(who, s.ID, "remember two")
	l.toys.last.die()
	synced(t, func() bool { return l.state(who, s.ID) == hub.SessionLost })
	if row, err := l.Session(t.Context(), who, s.ID); err != nil || row.Reason == "" {
		t.Errorf("%+v %v", row, err)
	}
	if got, _ := l.run(who, s.ID, "recall"); fmt.Sprint(got) != "[one]" {
		t.Errorf("got %q", got)
	}
}

func TestASessionThatCannotStart(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	l.toys.refuse = problem.Received(problem.Unavailable, "engine_broken", "the engine is broken")
	_, err := l.CreateSession(t.Context(), who, hub.NewSession{})
	fails(t, err, "engine_broken")
	l.toys.refuse = nil
	s := l.session(who)
	synced(t, func() bool {
		list, err := l.Sessions(t.Context(), who, hub.SessionFilter{}, hub.Page{})
		return err == nil && len(list.Items) == 1 && list.Items[0].ID == s.ID
	})
	for name, n := range map[string]hub.NewSession{
		"memory": {Memory: 1}, "packages": {Packages: "other"}, "life": {Life: -1}, "name": {Name: strings.Repeat("x", 201)}, "cpus": {CPUs: -1}, "hardly any cpu": {CPUs: 1e-9}, "half a least cpu": {CPUs: 0.005}, "too many cpus": {CPUs: 255},
	} {
		if _, err := l.CreateSession(t.Context(), who, n); problem.Of(err) == nil || problem.Of(err).Code != "session_invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadyWhereNothingStarts: a server whose sandboxes do not start cannot serve, until they do again.
func TestReadyWhereNothingStarts(t *testing.T) {
	t.Parallel()
	var why error
	l := newLife(t, func(o *hub.Options) { o.Unstartable = func() error { return why } })
	if err := l.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	why = errors.New("fork: too many processes at 10.0.0.1")
	fails(t, l.Ready(t.Context()), "nothing_starts")
	if p, _ := problem.Public(l.Ready(t.Context())); strings.Contains(fmt.Sprint(p.Message, p.Hint), "10.0.0.1") {
		t.Errorf("whoever asks is told %v", p)
	}
	why = nil
	if err := l.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
