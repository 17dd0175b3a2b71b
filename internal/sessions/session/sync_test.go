package session_test

import (
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// TestSyncFlood has code ask the guest, on its kernel's own socket, to pass on output that there is none of, a million times. That may cost the kernel,
// never the sandbox with its files.
func TestSyncFlood(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		if err := s.Put(t.Context(), "kept.txt", strings.NewReader("kept"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := execute(t, s, cell{req: kernel.Request{Code: `
import os
for fd in map(int, os.listdir('/proc/self/fd')):
    try:
        if os.readlink(f'/proc/self/fd/{fd}').startswith('socket:'):
            frames = b'\0\0\0\0\2' * 1_000_000
            while frames:
                frames = frames[os.write(fd, frames):]
    except OSError:
        pass
`}})
		if r.done.Lost == kernel.LostSession || r.done.Outcome != kernel.OutcomeProtocol {
			t.Errorf("ended as %s", describe(r.done))
		}
		runCell(t, s, code("print(open('kept.txt').read())", "stdout \"kept\\n\"\nok"))
	})
}
