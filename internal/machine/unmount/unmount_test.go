package unmount

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestUmount starts this program as gVisor starts cove. That /proc is gone afterwards is what gVisor itself looks for, at each start of a sandbox.
func TestUmount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent string
		want string
	}{
		"nobody says when": {"", "EOF"},
		"no such folder":   {"x", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.WriteString(c.sent); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Args = []string{gvisorSelf, "umount", "--sync-fd=3", "/nowhere/at/all"}
			cmd.ExtraFiles = []*os.File{r}
			var said bytes.Buffer
			cmd.Stderr = &said
			err = cmd.Run()
			_ = r.Close()
			if cmd.ProcessState.ExitCode() != failed || !strings.Contains(said.String(), "umount /nowhere/at/all: "+c.want) {
				t.Errorf("%v, and it says %q", err, said.String())
			}
		})
	}
}
