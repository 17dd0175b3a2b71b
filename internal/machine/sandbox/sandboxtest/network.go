package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
)

// echo is a network with one host, which says back what it hears.
type echo struct{}

func (echo) Allows() []string { return []string{"echo.test:7"} }

func (echo) Certificates() []byte { return nil }

func (echo) LookUp(_ context.Context, name string) error {
	if name != "echo.test" {
		return errors.New("there is no such host")
	}
	return nil
}

func (e echo) Connect(ctx context.Context, host string, port int, conn guestlink.Stream, ready func() error) error {
	if err := e.LookUp(ctx, host); err != nil && host != "203.0.113.7" || port != 7 {
		return fmt.Errorf("%s:%d may not be reached", host, port)
	}
	if err := ready(); err != nil {
		return err
	}
	_, err := io.Copy(conn, conn)
	return errors.Join(err, conn.CloseWrite())
}

// hasANetwork gives a sandbox a network, uses it by name and by address, and takes it away. An engine that does not isolate has none to give: its sandboxes have the host's.
func hasANetwork(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	stop, err := l.ServeNetwork(ctx, echo{})
	if !e.Isolates() {
		if !problem.Has(err, problem.NetworkAbsent) {
			t.Errorf("the sandbox has a network: %v", err)
		}
		gives(t, "a network by rules", "no")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.ServeNetwork(ctx, echo{}); !problem.Has(err, problem.NetworkAbsent) {
		t.Errorf("there are two networks: %v", err)
	}
	say := func(host string) string {
		t.Helper()
		line := fmt.Sprintf(`exec 2>&1; exec 3<>/dev/tcp/%s && echo hello >&3 && head -1 <&3`, host)
		info, err := l.StartProcess(ctx, guestlink.ToStart(ident.New(ident.Process), process.Start{Args: []string{"bash", "-c", line}}, []string{"PATH=/usr/bin:/bin"}, "", 0))
		if err != nil {
			t.Fatal(err)
		}
		out, _, _ := told(ctx, t, l, info.ID)
		return out
	}
	for _, host := range []string{"echo.test/7", "203.0.113.7/7"} {
		if got := say(host); got != "hello\n" {
			t.Errorf("%s said %q", host, got)
		}
	}
	if got := say("other.test/7"); !strings.Contains(got, "Name or service not known") {
		t.Errorf("a name that is not there said %q", got)
	}
	for _, host := range []string{"echo.test/8", "203.0.113.8/7"} {
		if got := say(host); strings.Contains(got, "hello") {
			t.Errorf("%s said %q", host, got)
		}
	}
	stop()
	if got := say("echo.test/7"); strings.Contains(got, "hello") {
		t.Errorf("after the end of the network it said %q", got)
	}
	if stop, err = l.ServeNetwork(ctx, echo{}); err != nil {
		t.Fatal(err)
	}
	defer stop()
	if got := say("echo.test/7"); got != "hello\n" {
		t.Errorf("with a network again it said %q", got)
	}
	gives(t, "a network by rules", "yes")
}
