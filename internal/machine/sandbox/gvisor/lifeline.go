package gvisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// A lifeline is a pipe with a name in an instance's directory. The owner of the sandbox, which is cove, holds it open for writing, and writes once, to say that the start is over; the
// sentry reads it. When cove is gone, however it went, the kernel closes the end that was cove's, the sentry reads the end of the pipe and ends itself.
// So a sandbox outlives its warden and not cove. The warden sees cove go as well, and kills: a sentry that does not hold to this has it from there.
const lifelineName = "life"

// holdLifeline makes the lifeline of an instance and holds it until the file is closed.
func holdLifeline(in *instance) (*os.File, error) {
	path := in.Join(lifelineName)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make the sandbox's lifeline: %w", err)
	}
	// For reading too, or it could not be opened before somebody reads.
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("hold the sandbox's lifeline: %w", err)
	}
	return f, nil
}

// openLifeline opens the lifeline in a bundle as a descriptor that outlives an exec.
func openLifeline(bundle string) (int, error) {
	for {
		fd, err := unix.Open(filepath.Join(bundle, lifelineName), unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// endWith ends this process when the other end of the lifeline is closed, and closes started when something is written there.
func endWith(lifeline int, started chan<- struct{}) {
	f := os.NewFile(uintptr(lifeline), lifelineName)
	var b [1]byte
	for tell := sync.OnceFunc(func() { close(started) }); ; tell() {
		if n, err := f.Read(b[:]); n == 0 || err != nil {
			os.Exit(1)
		}
	}
}
