// Package unmount does one command of gVisor's before the rest of the program is prepared. Each sandbox that starts runs cove once more to have /proc
// unmounted; to prepare for that all that cove can do was 6 % of the processor's work in a whole `cove run`.
//
// It works because Go initialises packages in the order of their paths, each after what it imports (https://go.dev/ref/spec#Program_initialization): this
// one imports next to nothing.
package unmount

import (
	"io"
	"os"
	"syscall"
)

const (
	gvisorSelf = "/proc/self/exe" // what gVisor calls the program that it runs again
	failed     = 128              // gVisor's exit code for what went wrong
)

func init() {
	if len(os.Args) == 4 && os.Args[0] == gvisorSelf && os.Args[1] == "umount" && os.Args[2] == "--sync-fd=3" {
		os.Exit(umount(os.NewFile(3, "sync"), os.Args[3]))
	}
}

// umount waits for a byte, unmounts a folder, lazily, and returns the exit code.
func umount(sync io.Reader, folder string) int {
	_, err := io.ReadFull(sync, make([]byte, 1))
	if err == nil {
		err = syscall.Unmount(folder, syscall.MNT_DETACH)
	}
	if err != nil {
		_, _ = os.Stderr.WriteString("umount " + folder + ": " + err.Error() + "\n")
		return failed
	}
	return 0
}
