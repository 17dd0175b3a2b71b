package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// The coves of these tests: two builds that differ in nothing but their version, and one that says that it has another release of gVisor. All three are copies of one
// program, in which anyVersion and anyState are replaced by text of the same length: to link each of them would take ten seconds.
const (
	anyVersion   = "0.0.0-any"
	oneVersion   = "1.0.0-one"
	twoVersion   = "2.0.0-two"
	otherVersion = "3.0.0-six"

	anyState   = "state-any"
	otherState = "state-six"
)

// builds is a variable because sync.OnceValues makes one value for all tests of a process.
var builds = sync.OnceValues(func() (map[string]string, error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return nil, err
	}
	linked := filepath.Join(root, "bin", "cove-"+anyVersion+"-"+strconv.Itoa(os.Getpid()))
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+anyVersion+" -X cove/internal/machine/sandbox/gvisor.stateFormat="+anyState, "-o", linked, "cove/cmd/cove")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, &exec.Error{Name: string(out), Err: err}
	}
	program, err := os.ReadFile(linked)
	if err = errors.Join(err, os.Remove(linked)); err != nil {
		return nil, err
	}
	made := map[string]string{}
	for version, state := range map[string]string{oneVersion: anyState, twoVersion: anyState, otherVersion: otherState} {
		path := filepath.Join(root, "bin", "cove-"+version)
		fresh := path + "-" + strconv.Itoa(os.Getpid()) // another test process may be running the file
		own := bytes.ReplaceAll(bytes.ReplaceAll(program, []byte(anyVersion), []byte(version)), []byte(anyState), []byte(state))
		if err := errors.Join(os.WriteFile(fresh, own, 0o755), os.Rename(fresh, path)); err != nil {
			return nil, err
		}
		made[version] = path
	}
	return made, nil
})

// lab is a folder in which several coves work one after the other, as on a machine where cove is upgraded.
type lab struct {
	t   *testing.T
	dir string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if _, err := builds(); err != nil {
		t.Fatal(err)
	}
	return &lab{t, t.TempDir()}
}

// program is the file of one of the coves.
func (l *lab) program(version string) string {
	made, _ := builds()
	return made[version]
}

// try runs a cove, which may fail.
func (l *lab) try(program string, args ...string) (out, said string, err error) {
	l.t.Helper()
	cmd := inSession(l.t, l.dir, args...)
	cmd.Path = program
	cmd.Env = append(cmd.Env, "COVE_UNDO_DEPTH=2")
	var errs strings.Builder
	cmd.Stderr = &errs
	stdout, err := cmd.Output()
	return string(stdout), errs.String(), err
}

func (l *lab) run(program string, args ...string) (out, said string) {
	l.t.Helper()
	out, said, err := l.try(program, args...)
	if err != nil {
		l.t.Fatalf("%s: %v: %s%s", strings.Join(args, " "), err, out, said)
	}
	return out, said
}

// expect looks for what the doctor of a cove says of the sessions, and that it changes none.
func (l *lab) expect(program, whose string, want ...string) {
	l.t.Helper()
	out, said, err := l.try(program, "doctor", "--json")
	var report struct {
		Checks []struct {
			Name     string
			Detail   string
			Sessions map[string]json.RawMessage
		}
	}
	if jerr := json.Unmarshal([]byte(out), &report); jerr != nil {
		l.t.Fatalf("doctor: %v, %v: %s%s", jerr, err, out, said)
	}
	for _, c := range report.Checks {
		if c.Name != "sessions" {
			continue
		}
		for _, w := range want {
			if got := string(c.Sessions[whose]); !strings.Contains(got, w) {
				l.t.Errorf("the doctor does not say %s: %s (%s)", w, got, c.Detail)
			}
		}
		return
	}
	l.t.Errorf("the doctor says nothing of sessions: %s", out)
}

// TestServerSessionsOutliveUpgrades is both for a server, whose clients are told what was not carried over.
func TestServerSessionsOutliveUpgrades(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	l := newLab(t)
	key := testKey(t)
	work := func(s *server, session, code string) ([]event, string) {
		t.Helper()
		all, err := s.execute(t.Context(), session, code)
		if err != nil {
			t.Fatal(err)
		}
		return all, printed(all)
	}
	s := startServerOf(t, l.program(oneVersion), l.dir, key)
	session := s.session()
	work(s, session, "x = 5; f = lambda: 1; open('made.txt', 'w').write('made')")
	s.must("PUT", "/api/v1/sessions/"+session+"/files/put.txt", []byte("put"), nil)
	s.stop()

	s = startServerOf(t, l.program(twoVersion), l.dir, key)
	if all, got := work(s, session, "print(x, open('made.txt').read(), open('put.txt').read())"); got != "5 made put\n" || told(all, "rollback") {
		t.Errorf("another build: %q %v", got, all)
	}
	s.stop()

	s = startServerOf(t, l.program(otherVersion), l.dir, key)
	for began := time.Now(); !strings.Contains(s.stderr.String(), "sessions=1 go_on=0 new=0 carried_over=1"); time.Sleep(20 * time.Millisecond) { // the log comes through a pipe
		if time.Since(began) > patience {
			t.Errorf("the start does not say what becomes of the session: %s", s.stderr.String())
			break
		}
	}
	all, got := work(s, session, "print(x, 'f' in globals(), open('made.txt').read(), open('put.txt').read())")
	if got != "5 False made put\n" || !told(all, "rollback") {
		t.Errorf("another release: %q %v", got, all)
	}
	if all, got := work(s, session, "print(open('put.txt').read())"); got != "put\n" || told(all, "rollback") {
		t.Errorf("the second time: %q %v", got, all)
	}
	s.stop()
}

func told(all []event, kind string) bool {
	for _, e := range all {
		if e.data["type"] == kind {
			return true
		}
	}
	return false
}

// TestSessionsOutliveABuild: another build of cove with the same gVisor goes on with what was saved, and with what is in memory.
func TestSessionsOutliveABuild(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	l := newLab(t)
	one, two := l.program(oneVersion), l.program(twoVersion)
	l.run(one, "run", "--session", "lab", "-c", "x = [1, 2, 3]; print(x, file=open('kept.txt', 'w'))")
	for range 2 { // there and back: the guest is the first one's all the time
		if out, said := l.run(two, "run", "--session", "lab", "-c", "x.append(4); print(sum(x), open('kept.txt').read().strip())"); !strings.HasSuffix(out, " [1, 2, 3]\n") || said != "" {
			t.Errorf("the newer cove: %q %q", out, said)
		}
		if out, said := l.run(one, "run", "--session", "lab", "-c", "print(x[3], len(x))"); !strings.HasPrefix(out, "4 ") || said != "" {
			t.Errorf("the older cove: %q %q", out, said)
		}
	}
	l.run(one, "session", "resume", "lab")
	if out, _ := l.run(two, "run", "--session", "lab", "-c", "print(len(x))"); out != "5\n" {
		t.Errorf("in the memory of the older cove: %q", out)
	}
	l.run(two, "session", "pause", "lab")
	if out, _ := l.run(two, "run", "--session", "lab", "-c", "print(len(x))"); out != "5\n" {
		t.Errorf("after that: %q", out)
	}
}

// TestSessionsOutliveAnotherRelease: where gVisor changes, files and packages are carried over, it is said what was not, and the way back is kept.
func TestSessionsOutliveAnotherRelease(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	l := newLab(t)
	one, other := l.program(oneVersion), l.program(otherVersion)
	l.run(one, "run", "--session", "lab", "-c", `
import os
import pandas as pd
x = 5
df = alias = pd.DataFrame({"n": [1, 2, 3]})
def double(n): return 2 * n
class Own: pass
own, stream = Own(), open("/dev/null")
os.makedirs("a/b 空")
open("a/b 空/data.bin", "wb").write(bytes(range(256)) * 4096)
open("notes.txt", "w").write("text")
os.makedirs("empty")
os.symlink("/etc/passwd", "link")
`)
	l.expect(other, "command_line", `"carried_over":1`, `"cove `+oneVersion)
	l.expect(one, "command_line", `"go_on":1`, `"carried_over":0`)
	if out, said, err := l.try(other, "session", "resume", "lab", "--check"); err == nil || !strings.Contains(said, "starts it anew with its files") {
		t.Errorf("only looking at it: %v %q %q", err, out, said)
	}
	look := `import os
print(open("notes.txt").read(), sum(open("a/b 空/data.bin", "rb").read()), os.path.isdir("empty"), os.path.lexists("link"), x, df["n"].sum(), alias is df, pd.__name__, [n for n in ("double", "Own", "own", "stream") if n in globals()],
    [n for n in os.listdir() if n.startswith(".")])`
	const all = "text 133693440 True False 5 6 True pandas [] []\n"
	out, said := l.run(other, "run", "--session", "lab", "-c", look)
	if out != all {
		t.Errorf("carried over: %q %s", out, said)
	}
	for _, want := range []string{"was saved by cove " + oneVersion, "its 2 files", "5 of its variables", "not carried over are the variables double, Own, own, stream", "session undo lab"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
	if out, said := l.run(other, "run", "--session", "lab", "-c", look); out != all || said != "" {
		t.Errorf("the second time: %q %q", out, said)
	}
	l.expect(other, "command_line", `"go_on":1`, `"ways_back":1`)
	var shown struct {
		Undo []struct {
			Made struct{ Cove string }
			Size int64 `json:"size_bytes"`
		}
		Executions int
	}
	text, _ := l.run(other, "session", "show", "lab", "--json")
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown.Undo) != 1 || shown.Undo[0].Made.Cove != oneVersion || shown.Undo[0].Size == 0 || shown.Executions != 3 {
		t.Errorf("the way back is not shown: %v %s", err, text)
	}
	// Executions that can be undone do not push it out.
	for range 3 {
		l.run(other, "run", "--session", "lab", "--undoable", "-c", "y = 1")
	}
	for range 3 {
		l.run(other, "session", "undo", "lab")
	}
	if out, said := l.run(one, "run", "--session", "lab", "-c", "print(x)"); out != "5\n" || said != "" {
		t.Errorf("the way back: %q %q", out, said)
	}
}

// TestWithoutTheOtherCove: where nobody can read what was saved, it is said who could, and nothing is changed.
func TestWithoutTheOtherCove(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	l := newLab(t)
	one, other := l.program(oneVersion), l.program(otherVersion)
	data := t.TempDir() // in which a cove is kept for these sessions alone
	shared, err := filepath.Abs(os.Getenv("COVE_HOME"))
	if err != nil || os.Getenv("COVE_HOME") == "" {
		home, herr := os.UserHomeDir()
		if herr != nil {
			t.Fatal(herr)
		}
		shared = filepath.Join(home, ".local", "share", "cove")
	}
	if err := os.Symlink(filepath.Join(shared, "pyenv"), filepath.Join(data, "pyenv")); err != nil {
		t.Fatal(err)
	}
	env := "COVE_HOME=" + data
	run := func(program string, args ...string) (string, error) {
		cmd := inSession(t, l.dir, args...)
		cmd.Path, cmd.Env = program, append(cmd.Env, env)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(one, "run", "--session", "lab", "-c", "x = 5"); err != nil {
		t.Fatal(out)
	}
	if err := os.RemoveAll(filepath.Join(data, "coves")); err != nil {
		t.Fatal(err)
	}
	out, err := run(other, "run", "--session", "lab", "-c", "print(x)")
	if err == nil || !strings.Contains(out, "saved by cove "+oneVersion) || !strings.Contains(out, "use cove "+oneVersion) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run(one, "run", "--session", "lab", "-c", "print(x)"); err != nil || out != "5\n" {
		t.Errorf("%v: %q", err, out)
	}
}
