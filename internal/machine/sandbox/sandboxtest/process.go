package sandboxtest

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
)

// processPatience bounds what a process of the contract is waited for.
const processPatience = time.Minute

// hasProcesses starts processes that belong to the sandbox, and looks at them, writes to them, and ends them.
func hasProcesses(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	start := func(s process.Start) process.Info {
		t.Helper()
		return begin(ctx, t, l, s, "FOO=bar")
	}
	p := start(process.Start{Args: []string{"sh", "-c", `cat; echo "$FOO"; echo no >&2; exit 3`}, Input: true, Label: "first"})
	if n, err := l.WriteProcess(ctx, p.ID, strings.NewReader("hello "), true); err != nil || n != 6 {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	if out, errs, exit := told(ctx, t, l, p.ID); out != "hello bar\n" || errs != "no\n" || exit.Code != 3 || exit.Signal != "" {
		t.Errorf("it said %q and %q and ended with %+v", out, errs, exit)
	}
	tty := start(process.Start{Args: []string{"sh", "-c", "read x; stty size; sleep 1000"}, Terminal: &process.Size{Columns: 80, Rows: 24}})
	if err := l.ResizeProcess(ctx, tty.ID, process.Size{Columns: 91, Rows: 31}); err != nil {
		t.Error(err)
	}
	if _, err := l.WriteProcess(ctx, tty.ID, strings.NewReader("\n"), false); err != nil {
		t.Error(err)
	}
	shown := ""
	for event, err := range l.FollowProcess(ctx, tty.ID, 0) {
		if shown += string(event.Data); err != nil || strings.Contains(shown, "31 91") {
			break
		}
	}
	if !strings.Contains(shown, "31 91") {
		t.Errorf("the terminal shows %q", shown)
	}
	all, err := l.Processes(ctx)
	if err != nil || len(all) != 2 || all[0].Label != "first" || all[0].Exit == nil || all[1].Exit != nil || all[1].Terminal == nil || all[1].Terminal.Columns != 91 {
		t.Errorf("got %+v, %v", all, err)
	}
	if err := l.SignalProcess(ctx, tty.ID, int(syscall.SIGKILL), true); err != nil {
		t.Error(err)
	}
	if _, _, exit := told(ctx, t, l, tty.ID); exit.Signal != "SIGKILL" {
		t.Errorf("it ended with %+v", exit)
	}
	gives(t, "processes, terminals", "yes")
	for name, bad := range map[string]struct {
		start wire.ProcessStart
		code  problem.Code
	}{
		"no program": {guestlink.ToStart(ident.New(ident.Process), process.Start{Args: []string{"no-such-program"}}, []string{searchPath}, "", 0), problem.ProgramMissing},
		"no folder":  {guestlink.ToStart(ident.New(ident.Process), process.Start{Args: []string{"true"}}, []string{searchPath}, "/no/such/folder", 0), problem.InvalidPath},
		"id twice":   {guestlink.ToStart(p.ID, process.Start{Args: []string{"true"}}, []string{searchPath}, "", 0), problem.FileExists},
		"no words":   {wire.ProcessStart{ID: "x"}, problem.InvalidRequest},
	} {
		if _, err := l.StartProcess(ctx, bad.start); !problem.Has(err, bad.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// searchPath is the environment of processes of the contract.
const searchPath = "PATH=/usr/local/bin:/usr/bin:/bin"

// begin starts a process, with more variables than the search path where it needs them.
func begin(ctx context.Context, t *testing.T, l *guestlink.Link, s process.Start, variables ...string) process.Info {
	t.Helper()
	info, err := l.StartProcess(ctx, guestlink.ToStart(ident.New(ident.Process), s, append(variables, searchPath), "", 0))
	if err != nil {
		t.Fatalf("start %v: %v", s, err)
	}
	return info
}

// shellScript starts a script of the shell's.
func shellScript(ctx context.Context, t *testing.T, l *guestlink.Link, script string, s process.Start) (id string) {
	t.Helper()
	s.Args = []string{"sh", "-c", script}
	return begin(ctx, t, l, s).ID
}

// told follows a process to its end.
func told(ctx context.Context, t *testing.T, l *guestlink.Link, id string) (out, errs string, exit process.Exit) {
	t.Helper()
	for event, err := range l.FollowProcess(ctx, id, 0) {
		switch {
		case err != nil:
			t.Fatalf("follow: %v", err)
		case event.Kind == process.Stdout:
			out += string(event.Data)
		case event.Kind == process.Stderr:
			errs += string(event.Data)
		case event.Kind == process.Ended:
			exit = *event.Exit
		}
	}
	return out, errs, exit
}
