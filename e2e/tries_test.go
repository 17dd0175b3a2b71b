package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// solver is a service of three models that compute a total from the variable base, of which openai/two alone computes the right one, 42. What they say differs. With hangs, openai/three never
// answers until that is taken back.
type solver struct {
	*modeltest.Server
	hangs atomic.Bool
}

func newSolver(t *testing.T) *solver {
	t.Helper()
	s := &solver{}
	script := modeltest.NewScript()
	script.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		wrong := map[string]int{"one": 1, "two": 0, "three": 2}[r.Model()]
		switch last := r.Messages()[len(r.Messages())-1]; {
		case r.Model() == "three" && s.hangs.Load():
			return modeltest.Turn{Fault: modeltest.Fault{HangBeforeFirst: true}}
		case last["role"] == "user":
			return modeltest.Run(fmt.Sprintf("total = base + 40 + %d\nopen('total.txt', 'w').write(str(total))\nprint(total)", wrong))
		}
		return modeltest.Say(fmt.Sprintf("The total is %d.", 42+wrong))
	})
	s.Server = modeltest.Serve(script)
	t.Cleanup(s.Close)
	return s
}

// TestTriesOnThisMachine asks three models at once, of which one is right: its answer, its variables and its files go on, in a session that has a name and in that of the conversation.
func TestTriesOnThisMachine(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir, models := t.TempDir(), newSolver(t)
	tries := []string{"--tries", "3", "--models", "openai/one,openai/two,openai/three"}
	command := func(args ...string) *command { return conversing(t, dir, models.Server, args...) }

	command("run", "--session", "lab", "-c", "base = 2").run().ended(t, 0)
	r := command(append([]string{"ask", "--session", "lab", "--assert", "total == 42 and '42' in answer"}, append(tries, "What is the total?")...)...).run()
	r.ended(t, 0)
	r.told(t, "try 2 of 3, which passed the check", "total = base + 40 + 0")
	if r.stdout != "The total is 42.\n" {
		t.Errorf("the answer is %q", r.stdout)
	}
	r = command("run", "--session", "lab", "-c", "print(base, total, open('total.txt').read(), sorted(n for n in globals() if n in ('answer', '_cove_check')))").run()
	r.ended(t, 0)
	if r.stdout != "2 42 42 []\n" {
		t.Errorf("the session has %q", r.stdout)
	}
	command("session", "undo", "lab").run().ended(t, 0)
	// A check that ends Python makes no answer a right one, and no session a poor one.
	r = command(append([]string{"ask", "--session", "lab", "--assert", "__import__('os')._exit(1)"}, append(tries, "What is the total?")...)...).run()
	r.ended(t, 125)
	r.told(t, "the check ended the try's Python")
	r = command("run", "--session", "lab", "-c", "print('total' in globals())").run()
	if r.stdout != "False\n" {
		t.Errorf("before the question the session had %q", r.stdout)
	}

	begin := modeltest.NewServer(modeltest.Run("base = 2"), modeltest.Say("Begun."))
	t.Cleanup(begin.Close)
	conversing(t, dir, begin, "ask", "Begin.").run().ended(t, 0)
	r = command(append([]string{"ask", "--continue", "--assert", "total == 42"}, append(tries, "What is the total?")...)...).run()
	r.ended(t, 0)
	for _, asked := range models.Requests() {
		if strings.Contains(asked.Text(), "another one than before") {
			t.Errorf("the model is told of another session: %s", asked.Text())
		}
	}
	next := modeltest.NewServer(modeltest.Run("print('has', base, total)"), modeltest.Say("That."))
	t.Cleanup(next.Close)
	r = conversing(t, dir, next, "ask", "--continue", "What is there?").run()
	r.ended(t, 0)
	r.told(t, "has 2 42")
	if all := next.Requests()[0].Text(); !strings.Contains(all, "The total is 42.") || strings.Contains(all, "The total is 44.") || strings.Contains(all, "another one than before") {
		t.Errorf("the model is told of the conversation: %s", all)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "sessions", "[^.]*")); err != nil || len(left) != 2 {
		t.Errorf("sessions are left: %v %v", left, err)
	}
}

// TestChatWithTries keeps what answers have made also when the last conversation of a chat is an empty one.
func TestChatWithTries(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir, models := t.TempDir(), newSolver(t)
	conversing(t, dir, models.Server, "run", "--session", "lab", "-c", "base = 2").run().ended(t, 0)
	c := conversing(t, dir, models.Server, "chat", "--session", "lab", "--tries", "3", "--models", "openai/one,openai/two,openai/three", "--assert", "total == 42")
	c.cmd.Stdin = strings.NewReader("What is the total?\n/new\n/quit\n")
	c.run().ended(t, 0)
	r := conversing(t, dir, models.Server, "run", "--session", "lab", "-c", "print(base, total)").run()
	r.ended(t, 0)
	if r.stdout != "2 42\n" {
		t.Errorf("the session has %q", r.stdout)
	}
}

// TestTriesOfAStoppedCommand stops or kills a command in the middle of its tries: the session is as it was, and nothing is left of the tries.
func TestTriesOfAStoppedCommand(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir, models := t.TempDir(), newSolver(t)
	models.hangs.Store(true)
	conversing(t, dir, models.Server, "run", "--session", "lab", "-c", "base = 2").run().ended(t, 0)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		c := conversing(t, dir, models.Server, "ask", "--session", "lab", "-f", "x.csv", "--tries", "3", "--models", "openai/one,openai/two,openai/three", "What is the total?")
		c.file("x.csv", "a,b\n1,2\n")
		c.start()
		for end := time.Now().Add(patience); strings.Count(c.stderr.String(), " of 3 answered") < 2; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the tries do not end: %s", c.stderr.String())
			}
		}
		if err := c.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		most := 0
		if signal == syscall.SIGINT {
			c.wait().ended(t, 130)
		} else {
			_ = c.cmd.Wait()
			most = 1 // the copy, for --continue
		}
		r := conversing(t, dir, models.Server, "run", "--session", "lab", "-c", "import os; print(base, 'total' in globals(), os.path.exists('x.csv'))").run()
		r.ended(t, 0)
		if r.stdout != "2 False False\n" {
			t.Errorf("%v: the session has %q", signal, r.stdout)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "sessions", "ses_*")); err != nil || len(left) > most {
			t.Errorf("%v: sessions are left: %v %v", signal, left, err)
		}
	}
}

// TestTriesOutliveAKilledServer kills a server while a question is tried: the next one goes on with the tries that had ended, and the right answer has the right variables.
func TestTriesOutliveAKilledServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	models, key := newSolver(t), testKey(t)
	models.hangs.Store(true)
	dir, env := t.TempDir(), []string{"COVE_MODEL=openai/two", "OPENAI_BASE_URL=" + models.OpenAIURL(), "OPENAI_API_KEY=" + secret}
	s := startServer(t, dir, key, env...)
	session := s.session()
	if _, err := s.execute(t.Context(), session, "base = 2"); err != nil {
		t.Fatal(err)
	}
	type turn struct {
		ID, Conversation, State, Answer, Session string
		Tries                                    struct {
			Of, Chosen, Why string
			Passed          *bool
		}
	}
	var asked turn
	s.must("POST", "/api/v1/turns?background=true", map[string]any{"prompt": "What is the total?", "session": session,
		"tries": map[string]any{"number": 3, "models": []string{"openai/one", "openai/one", "openai/three"}, "check": "total == 44"}}, &asked)
	tries := func() (ended int) {
		var all struct{ Items []turn }
		s.must("GET", "/api/v1/conversations/"+asked.Conversation+"/turns", nil, &all)
		for _, one := range all.Items {
			if one.Tries.Of == asked.ID && one.State == "completed" && one.Tries.Passed != nil {
				ended++
			}
		}
		return ended
	}
	for end := time.Now().Add(patience); tries() < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the tries do not end")
		}
	}
	s.kill()
	models.hangs.Store(false)
	s = startServer(t, dir, key, env...)
	var got turn
	for end := time.Now().Add(patience); got.State != "completed"; time.Sleep(50 * time.Millisecond) {
		r, err := s.call(t.Context(), "GET", "/api/v1/turns/"+asked.ID, nil)
		if err == nil && r.status == 200 { // until it is asked again it is a question of the queue
			r.into(t, &got)
		}
		if err != nil || time.Now().After(end) || got.State == "failed" {
			t.Fatalf("the turn is %+v: %d, %v", got, r.status, err)
		}
	}
	if got.Answer != "The total is 44." || got.Session != session || got.Tries.Why != "check" {
		t.Errorf("the turn is %+v", got)
	}
	all, err := s.execute(t.Context(), session, "print(base, total, open('total.txt').read())")
	if err != nil || printed(all) != "2 44 44\n" {
		t.Errorf("the session has %q, %v", printed(all), err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // the forks are removed when the turn's end is recorded
		var sessions struct{ Items []struct{ ID string } }
		if s.must("GET", "/api/v1/sessions", nil, &sessions); len(sessions.Items) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("sessions are left: %+v", sessions.Items)
		}
	}
}
