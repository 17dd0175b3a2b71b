package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
)

// GivesMark begins what tests log of an engine for the table in docs/engines.md, which `make engines` makes of it: "gives: what: how".
const GivesMark = "gives: "

// gives notes what an engine gives, when the test has passed.
func gives(t testing.TB, what, how string) {
	t.Helper()
	if !t.Failed() {
		t.Logf("%s%s: %s", GivesMark, what, how)
	}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// tellsWhatHolds notes which limits hold what runs in a sandbox, and whose kernel that meets. Files are bounded in every engine that isolates; processes and memory where the
// machine can, which engines have tests of their own for.
func tellsWhatHolds(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{Limits: sandbox.Limits{Processes: 60, OpenFiles: 100, Tmp: 16 << 20, Workspace: 16 << 20}})
	gives(t, "the kernel that code meets", kernelOf(t, l))
	_, files := Shell(t, l, "ulimit -n")
	held := func(what string, is bool) {
		if e.Isolates() && !is {
			t.Errorf("there is no %s", what)
		}
		gives(t, what, yes(is))
	}
	held("bound on open files", strings.TrimSpace(files) == "100")
	for _, place := range []struct{ what, file string }{{"bound on the workspace", "full"}, {"bound on /tmp", "/tmp/full"}} {
		code, _ := Shell(t, l, "dd if=/dev/zero of="+place.file+" bs=1M count=64 2>&1; code=$?; rm -f "+place.file+"; exit $code")
		held(place.what, code != 0)
	}
	code, _ := Shell(t, l, "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null; kill $(jobs -p); exit 0")
	gives(t, "bound on processes", yes(code != 0))
	if os.Getenv("COVE_SOAK") == "full" { // it takes gigabytes
		gives(t, "bound on memory", memoryHeld(t, e))
	}
}

// kernelOf tells whose kernel it is: gVisor says so when it begins.
func kernelOf(t *testing.T, l *guestlink.Link) string {
	t.Helper()
	if _, log := Shell(t, l, "dmesg 2>/dev/null | head -1"); strings.Contains(log, "gVisor") {
		return "gVisor's"
	}
	_, version := Shell(t, l, "cat /proc/version")
	if host, err := os.ReadFile("/proc/version"); err != nil || string(host) != version {
		return fmt.Sprintf("an unknown one (%v)", err)
	}
	if _, mode := Shell(t, l, "grep ^Seccomp: /proc/self/status"); strings.Contains(mode, "2") {
		return "**the host's**, behind seccomp"
	}
	return "**the host's**"
}

// memoryHeld has a program take and hold much more than the sandbox may have: the program is ended, or all of the sandbox.
func memoryHeld(t *testing.T, e sandbox.Engine) string {
	t.Helper()
	_, l := Start(t, e, sandbox.Spec{Limits: sandbox.Limits{Memory: 300 << 20}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	spec := wire.ProcessSpec{Args: []string{"/bin/sh", "-c", "head -c 2000000000 /dev/zero | tail -c 2000000000 | (sleep 5; wc -c)"}, Env: []string{"PATH=/usr/bin:/bin"}}
	_, err := l.Run(ctx, spec, &out, io.Discard)
	return yes(err != nil || strings.TrimSpace(out.String()) != "2000000000")
}
