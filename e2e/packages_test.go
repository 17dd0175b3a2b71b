package e2e_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/python/deps/indextest"
	"cove/internal/testkit/testneeds"
)

// shopping is a data folder of a test's own, and an index with one package, cowsay.
func shopping(t *testing.T) (home string, index *indextest.Index, wheel indextest.Wheel) {
	t.Helper()
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	wheel = indextest.Wheel{Name: "cowsay", Version: "6.1", Files: map[string]string{"cowsay.py": "def say(): return 'moo'\n"}, Padding: 1 << 20}
	index = indextest.New(t)
	index.Add(wheel)
	return emptyHome(t, cfg), index, wheel
}

func shop(t *testing.T, home string, index *indextest.Index) *command {
	c := newCommand(t, "run", "-c", "import cowsay; cowsay.say()")
	c.setenv("COVE_HOME="+home, "UV_DEFAULT_INDEX="+index.URL)
	return c
}

// TestScaleCommandsAtOnce has ten processes want the same new package.
func TestScaleCommandsAtOnce(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	home, index, wheel := shopping(t)
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() {
			r := shop(t, home, index).run()
			if r.code != 0 || r.stdout != "'moo'\n" || !strings.Contains(r.stderr, "installed cowsay 6.1") {
				t.Errorf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.stdout, r.stderr)
			}
		})
	}
	running.Wait()
	if n := index.Downloads(wheel.Filename()); n != 1 {
		t.Errorf("the wheel was downloaded %d times", n)
	}
	if layers := folders(t, home+"/packages/store/layers"); len(layers) != 1 {
		t.Errorf("layers: %q", layers)
	}
}

// TestKilledWhileInstalling kills a command with its download half done; the next one installs all the same.
func TestKilledWhileInstalling(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	home, index, wheel := shopping(t)
	arrived, release := index.Hold("/files/" + wheel.Filename())
	c := shop(t, home, index)
	c.start()
	select {
	case <-arrived:
	case <-time.After(patience):
		t.Fatal("the wheel was never asked for")
	}
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	release()
	if layers := folders(t, home+"/packages/store/layers"); len(layers) > 0 {
		t.Errorf("layers of a killed command: %q", layers)
	}
	r := shop(t, home, index).run()
	if r.code != 0 || r.stdout != "'moo'\n" {
		t.Errorf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.stdout, r.stderr)
	}
	if left := folders(t, home+"/packages/store/work"); len(left) > 1 {
		t.Errorf("left behind: %q", left)
	}
}
