package gvisor

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/sentry/control"
	"gvisor.dev/gvisor/pkg/sentry/kernel/auth"
)

// BootArgs name a container, and the host's file of its guest.
type BootArgs struct {
	ID    string
	Guest string
}

// Boot implements sandbox.Booter. gVisor makes the id of a boot for each file system of the kind of /proc, so that one that is mounted anew has another.
func (s *running) Boot(ctx context.Context) error {
	if err := s.ask(ctx, "Boot", BootArgs{s.ID(), s.guest}, &struct{}{}); err != nil {
		return fmt.Errorf("boot sandbox %s: %w", s.ID(), s.withLogs(err))
	}
	return nil
}

// Boot has the guest's program mount /proc anew. It is the one process of a sandbox that may mount anything, and it ends before anything of the user's runs again. The program is the host's file, not
// what is at a path that a root in there could have changed, and it looks at nothing else.
func (w *warden) Boot(a BootArgs, _ *struct{}) error {
	path, err := w.root.find(a.Guest)
	if err != nil {
		return err
	}
	program, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	may := auth.CapabilitySetOf(linux.CAP_SYS_ADMIN)
	return w.do(a.ID, func(d *ward) error {
		pid, err := d.c.Execute(d.conf, &control.ExecArgs{
			Argv: []string{"cove-guest", "--new-proc"}, WorkingDirectory: "/", NoNewPrivileges: true, FilePayload: control.NewFilePayload(nil, program),
			Capabilities: &auth.TaskCapabilities{PermittedCaps: may, EffectiveCaps: may, BoundingCaps: may},
		})
		if err != nil {
			return err
		}
		status, err := d.c.WaitPID(pid)
		if err == nil && status != unix.WaitStatus(0) {
			err = fmt.Errorf("the guest's program ended with status %d", status)
		}
		return err
	})
}
