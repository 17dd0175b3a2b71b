package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/model/modeltest"
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

// TestAskKilledIsInTheHistory kills a question in the middle of its code: how far it came is found, and that it ended.
func TestAskKilledIsInTheHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := modeltest.NewServer(modeltest.Run("import time\nprint('so far', flush=True)\ntime.sleep(600)"), modeltest.Say("Done."))
	t.Cleanup(server.Close)
	c := conversing(t, dir, server, "ask", "How far?")
	c.start()
	c.stderr.until(t, "| so far")
	// What is shown is recorded some hundredths of a second later; others see it while it runs.
	for end := time.Now().Add(patience); ; {
		if r := conversing(t, dir, server, "show").run(); strings.Contains(r.stdout, "| so far") && strings.Contains(r.stdout, "this turn is running") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("it is not seen while it runs: %s%s", r.stdout, r.stderr)
		}
	}
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
