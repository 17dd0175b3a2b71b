package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// conversing returns a command that shares its history and its sessions with others of that folder.
func conversing(t *testing.T, dir string, server *modeltest.Server, args ...string) *command {
	t.Helper()
	c := newCommand(t, args...)
	c.setenv("COVE_DATABASE="+filepath.Join(dir, "cove.db"), "COVE_SESSIONS="+filepath.Join(dir, "sessions"), "COVE_MODEL=openai/scripted",
		"OPENAI_BASE_URL="+server.OpenAIURL(), "OPENAI_API_KEY="+secret)
	return c
}

// TestContinueKeepsThePython goes on with the variables and files of a conversation, and says it where they are gone.
func TestContinueKeepsThePython(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	server := modeltest.NewServer(
		modeltest.Run("x = 41\nopen('kept.txt', 'w').write('kept')"), modeltest.Say("Set."),
		modeltest.Run("print(x + 1, open('kept.txt').read())"), modeltest.Say("Read."),
		modeltest.Say("No code."),
		modeltest.Run("print('x' in globals())"), modeltest.Say("Gone."))
	t.Cleanup(server.Close)
	conversing(t, dir, server, "ask", "Set x.").run().ended(t, 0)
	r := conversing(t, dir, server, "ask", "--continue", "What is x?").run()
	r.ended(t, 0)
	r.told(t, "42 kept")
	if strings.Contains(r.stderr, "its Python is gone") {
		t.Errorf("it is said to be gone: %s", r.stderr)
	}
	// Two conversations have one session each, and what ran no code has none.
	conversing(t, dir, server, "ask", "Say something.").run().ended(t, 0)
	kept, err := filepath.Glob(filepath.Join(dir, "sessions", "ses_*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("%d sessions are kept: %v %v", len(kept), kept, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "sessions")); err != nil {
		t.Fatal(err)
	}
	r = conversing(t, dir, server, "ask", "--continue", "Is x there?").run()
	r.ended(t, 0)
	r.told(t, "its Python is gone", "False")
}

// awaitShown waits until the history's last entry has what is wanted.
func awaitShown(t *testing.T, dir string, server *modeltest.Server, wanted ...string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		r := conversing(t, dir, server, "show").run()
		missing := slices.DeleteFunc(slices.Clone(wanted), func(text string) bool { return strings.Contains(r.stdout, text) })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the history does not come to say %q: %s%s", missing, r.stdout, r.stderr)
		}
	}
}

// TestAskKilledIsInTheHistory kills a question in the middle of its code: how far it came is found, and that it ended.
func TestAskKilledIsInTheHistory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	server := modeltest.NewServer(modeltest.Run("import time\nprint('so far', flush=True)\ntime.sleep(600)"), modeltest.Say("Done."))
	t.Cleanup(server.Close)
	c := conversing(t, dir, server, "ask", "How far?")
	c.start()
	c.stderr.until(t, "| so far")
	// What is shown is recorded some hundredths of a second later; others see it while it runs.
	awaitShown(t, dir, server, "| so far", "this turn is running")
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	r := conversing(t, dir, server, "show").run()
	r.ended(t, 0)
	for _, want := range []string{"How far?", "time.sleep(600)", "| so far"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the history does not say %q:\n%s", want, r.stdout)
		}
	}
	if !strings.Contains(r.stdout+r.stderr, "cove ended while the turn ran") {
		t.Errorf("nothing says that it was lost: %s%s", r.stdout, r.stderr)
	}
}

// TestContinueSaysWhatIsNotKept has the sandbox of a conversation end while its code runs. That is said at once, also with --quiet; the next command goes on
// with what was saved before, or says that nothing was.
func TestContinueSaysWhatIsNotKept(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const runs = "\nimport time\nprint('so far', flush=True)\ntime.sleep(600)"
	for _, c := range []struct {
		name   string
		before bool // something was saved before
		then   string
	}{{"saved before", true, "| 41"}, {"never saved", false, "its Python is gone"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			turns := []modeltest.Turn{modeltest.Run("x = 42" + runs), modeltest.Say("Broken."), modeltest.Run("print('x' in globals() and x)"), modeltest.Say("Read.")}
			if c.before {
				turns = append([]modeltest.Turn{modeltest.Run("x = 41"), modeltest.Say("Set.")}, turns...)
			}
			server := modeltest.NewServer(turns...)
			t.Cleanup(server.Close)
			ask := []string{"ask", "--quiet"}
			if c.before {
				conversing(t, dir, server, "ask", "Set x.").run().ended(t, 0)
				ask = append(ask, "--continue")
			}
			broken := conversing(t, dir, server, append(ask, "Set it.")...)
			broken.start()
			awaitShown(t, dir, server, "| so far")
			for _, pid := range sandboxtest.Processes(t, "runsc-sandbox", broken.runtime) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			broken.wait().told(t, "the variables and files are not kept for --continue")
			r := conversing(t, dir, server, "ask", "--continue", "What is x?").run()
			r.ended(t, 0)
			r.told(t, c.then)
		})
	}
}

// TestStoppedTwiceKeepsNoPython interrupts a question twice, which leaves no time to save its variables. That is said.
func TestStoppedTwiceKeepsNoPython(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	server := modeltest.NewServer(modeltest.Run("import time\nwhile True:\n    try:\n        print('so far', flush=True)\n        time.sleep(600)\n    except KeyboardInterrupt: print('once', flush=True)"))
	t.Cleanup(server.Close)
	c := conversing(t, t.TempDir(), server, "ask", "Run for long.")
	c.start()
	for _, seen := range []string{"| so far", "| once"} {
		c.stderr.until(t, seen)
		if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	r := c.wait()
	r.ended(t, 130)
	r.told(t, "the variables and files are not kept for --continue: the command was stopped before they were saved")
}
