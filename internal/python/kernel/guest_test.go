package kernel_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/machine/guest/program"
	"cove/internal/machine/guestlink"
	"cove/internal/python/kernel"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// world is a guest process that connects to a socket of the test's, as it does in a sandbox that can be saved.
type world struct {
	socket    string
	workspace string
	config    kernel.Config
	listener  *net.UnixListener
	stream    net.Conn // of the latest link
}

// newWorld starts a guest. Nobody listens to it yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	env := testneeds.Environment(t, pyenv.Standard)
	dir, err := os.MkdirTemp("", "cove-test-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{socket: filepath.Join(dir, "host"), workspace: filepath.Join(dir, "workspace")}
	for _, name := range []string{"workspace", "run", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tmp := filepath.Join(dir, "tmp")
	w.config = kernel.Config{Python: env.Python, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + w.workspace, "TMPDIR=" + tmp, "LANG=C.UTF-8"}}
	for k, v := range env.Variables(env.Dir, "") {
		w.config.Env = append(w.config.Env, k+"="+v)
	}
	var said bytes.Buffer
	guest, err := program.Install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(guest)
	cmd.Args = []string{"cove-guest", "--connect=" + w.socket, "--workspace=" + w.workspace, "--run=" + filepath.Join(dir, "run")}
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it would wait for a host for ever
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("the guest ended by itself: %v %s", err, said.String())
		}
	})
	return w
}

// listen lets the guest connect.
func (w *world) listen(t *testing.T) {
	t.Helper()
	var err error
	if w.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: w.socket, Net: "unix"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.listener.Close() })
}

// connect returns the guest's next connection.
func (w *world) connect(t *testing.T) *guestlink.Link {
	t.Helper()
	var err error
	if w.stream, err = w.listener.Accept(); err != nil {
		t.Fatal(err)
	}
	l, err := guestlink.Open(t.Context(), w.stream, guestlink.Session{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// begin starts a kernel over the guest's first connection.
func begin(t *testing.T) (*world, *guestlink.Link, *kernel.Kernel) {
	t.Helper()
	w := newWorld(t)
	w.listen(t)
	l := w.connect(t)
	k, err := kernel.Start(t.Context(), l, w.config)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return w, l, k
}

func (w *world) attach(t *testing.T, l *guestlink.Link, pid int) *kernel.Kernel {
	t.Helper()
	k, err := kernel.Attach(t.Context(), l, w.config, pid)
	if err != nil {
		t.Fatalf("attach: %+v", err)
	}
	return k
}

// run runs code that must end well and returns what it printed.
func run(t *testing.T, k *kernel.Kernel, code string) string {
	t.Helper()
	var out strings.Builder
	for ev, err := range k.Execute(t.Context(), kernel.Request{Code: code}) {
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		switch ev := ev.(type) {
		case kernel.Stream:
			out.Write(ev.Data)
		case kernel.Error:
			t.Errorf("%s: %s", code, strings.Join(ev.Traceback, "\n"))
		case kernel.Done:
			if ev.Outcome != kernel.OutcomeOK {
				t.Errorf("%s: %+v", code, ev)
			}
		}
	}
	return out.String()
}

// underway runs code that does not end, until it has printed something, and returns the end that it is given later.
func underway(t *testing.T, k *kernel.Kernel, req kernel.Request) <-chan kernel.Done {
	t.Helper()
	printed, end := make(chan bool, 1), make(chan kernel.Done, 1)
	go func() {
		defer close(end)
		for ev, err := range k.Execute(t.Context(), req) {
			if err != nil {
				t.Errorf("%s: %v", req.Code, err)
			}
			switch ev := ev.(type) {
			case kernel.Stream:
				select {
				case printed <- true:
				default:
				}
			case kernel.Done:
				end <- ev
			}
		}
	}()
	select {
	case <-printed:
	case done := <-end:
		t.Fatalf("%s: ended too soon: %+v", req.Code, done)
	}
	return end
}

// appears waits for a file that code makes.
func (w *world) appears(t *testing.T, name string) {
	t.Helper()
	await(t, name, func() bool {
		_, err := os.Stat(filepath.Join(w.workspace, name))
		return err == nil
	})
}

func await(t *testing.T, what string, come func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !come() {
		select {
		case <-look.C:
		case <-t.Context().Done():
			t.Fatalf("%s never came", what)
		}
	}
}
