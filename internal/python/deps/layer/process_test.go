package layer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/python/deps/layer"
	"cove/internal/testkit/testneeds"
)

// errand is what a process started by a test does: it has a closure made of wheels that lie in a folder.
type errand struct {
	Store   string
	Folder  string // of wheels, named by hash
	Log     string // gets a line for each download
	Hold    bool   // stop in the middle of a download
	Closure layer.Closure
}

const errandVariable = "COVE_LAYER_TEST"

func TestMain(m *testing.M) {
	text := os.Getenv(errandVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var e errand
	err := json.Unmarshal([]byte(text), &e)
	if err == nil {
		err = e.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (e errand) run() error {
	s, err := layer.Open(e.Store, layer.Limits{})
	if err != nil {
		return err
	}
	l, made, err := s.Ensure(context.Background(), e.Closure, e.fetch, nil)
	if err != nil {
		return err
	}
	fmt.Println(l.Name, made)
	return nil
}

func (e errand) fetch(_ context.Context, w layer.Wheel, out io.Writer, _ func(int64, int64)) error {
	log, err := os.OpenFile(e.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintln(log, w.Name)
	text, err := os.ReadFile(filepath.Join(e.Folder, w.SHA256))
	if err != nil {
		return err
	}
	if e.Hold {
		if _, err := out.Write(text[:len(text)/2]); err != nil {
			return err
		}
		time.Sleep(time.Hour) // until it is killed
	}
	_, err = out.Write(text)
	return err
}

// newErrand puts an index's files into a folder.
func newErrand(t *testing.T, x *index, c layer.Closure) errand {
	t.Helper()
	dir := t.TempDir()
	e := errand{Store: filepath.Join(dir, "store"), Folder: filepath.Join(dir, "wheels"), Log: filepath.Join(dir, "log"), Closure: c}
	if err := os.Mkdir(e.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for hash, text := range x.files {
		if err := os.WriteFile(filepath.Join(e.Folder, hash), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func (e errand) start(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), errandVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, &out
}

func TestProcessesMakeItOnce(t *testing.T) {
	t.Parallel()
	x := newIndex()
	e := newErrand(t, x, closure(t))
	e.Closure = closure(t, x.add(t, dist("spam", "spam.py", "a = 1\n")), x.add(t, dist("eggs", "eggs.py", "a = 1\n")))
	e = newErrand(t, x, e.Closure)
	var made int
	found := map[string]bool{}
	var all []*exec.Cmd
	var said []*bytes.Buffer
	for range 10 {
		cmd, out := e.start(t)
		all, said = append(all, cmd), append(said, out)
	}
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, said[i])
		}
		name, fresh, _ := strings.Cut(strings.TrimSpace(said[i].String()), " ")
		found[name] = true
		if fresh == "true" {
			made++
		}
	}
	if len(found) != 1 || made != 1 {
		t.Errorf("%d layers, made %d times", len(found), made)
	}
	if log, err := os.ReadFile(e.Log); err != nil || strings.Count(string(log), "\n") != 2 {
		t.Errorf("downloads: %q, %v", log, err)
	}
}

const (
	modules   = 1000
	pycHeader = 16 // bytes before the code in a compiled module
)

// TestKilled kills a process in each part of the making, as seen from outside, and has another one make the layer.
func TestKilled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	x := newIndex()
	d := dist("spam")
	source := strings.Repeat("def f(a, b=1, *c):\n    return [x for x in c if x > a and x < b]\n", 15)
	for i := range modules {
		d.files = append(d.files, file{name: fmt.Sprintf("spam/part%d/m%d.py", i/100, i), text: source + fmt.Sprintf("n = %d\n", i)})
	}
	c := closure(t, x.add(t, d), x.add(t, dist("eggs", "eggs.py", "")))
	for name, during := range map[string]struct {
		hold  bool   // stop in the middle of a download
		ready bool   // the wheels are there
		seen  string // a pattern below the store for what exists only in that part
	}{
		"download": {hold: true, seen: "work/*/wheel.whl"},
		"unpack":   {seen: "work/*/whole/tree/spam/part2/*.py"},
		"compile":  {seen: "work/*/whole/tree/spam/part2/__pycache__/*.pyc"},
		"link":     {ready: true, seen: "work/*/????????????????????????????????????????/spam/part0/*.py"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 { // a busy machine may look too late
				e := newErrand(t, x, c)
				e.Hold = during.hold
				if during.ready {
					s := open(t, e.Store, layer.Limits{})
					if err := os.RemoveAll(filepath.Join(s.Folder(), ensure(t, s, c, x).Name)); err != nil {
						t.Fatal(err)
					}
				}
				if e.killWhen(t, during.seen) {
					e.comesBack(t, x)
					return
				}
			}
			t.Fatal("it was never seen in time")
		})
	}
}

// killWhen starts a process and kills it as soon as something is there. It says whether that was before the end.
func (e errand) killWhen(t *testing.T, pattern string) bool {
	t.Helper()
	cmd, out := e.start(t)
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		found, err := filepath.Glob(filepath.Join(e.Store, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			break
		}
		select {
		case <-ended:
			t.Logf("it ended before %s was seen: %s", pattern, out)
			return false
		default:
		}
	}
	_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended just now
	<-ended
	return out.Len() == 0
}

// comesBack makes sure that what was cut short is made whole, and that nothing of it stays.
func (e errand) comesBack(t *testing.T, x *index) {
	t.Helper()
	s := open(t, e.Store, layer.Limits{})
	if _, ok := s.Find(e.Closure); ok {
		t.Error("found half-made")
	}
	if got := names(t, s.Folder()); len(got) > 0 {
		t.Errorf("sandboxes see %q", got)
	}
	if got := names(t, filepath.Join(e.Store, "work")); len(got) == 0 {
		t.Error("nothing was left: the test shows nothing")
	}
	l := ensure(t, s, e.Closure, x)
	if got := contents(t, filepath.Join(s.Folder(), l.Name)); len(got) < modules+7 {
		t.Errorf("only %d files", len(got))
	}
	if sources, _ := filepath.Glob(filepath.Join(s.Folder(), l.Name, "spam/part*/*.py")); len(sources) != modules {
		t.Errorf("only %d modules", len(sources))
	}
	// How many are compiled depends on the machine: that has a limit in time. Those that are must be whole, and nothing else be there.
	compiled, _ := filepath.Glob(filepath.Join(s.Folder(), l.Name, "spam/part*/__pycache__/*"))
	for _, path := range compiled {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		_, err := os.Stat(filepath.Join(filepath.Dir(path), "..", name+".py"))
		if info, serr := os.Stat(path); err != nil || serr != nil || filepath.Ext(path) != ".pyc" || info.Size() <= pycHeader {
			t.Errorf("%s was left in the layer: %v, %v", path, err, serr)
		}
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if err := s.Sweep(nil, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := names(t, filepath.Join(e.Store, "work")); len(got) == 0 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the sweep left %q; processes %q", got, mentioning(e.Store))
		}
	}
	if left := mentioning(e.Store); len(left) > 0 {
		t.Errorf("processes live on: %q", left)
	}
	if _, ok := s.Find(e.Closure); !ok {
		t.Error("the sweep took too much")
	}
}

// mentioning lists the command lines of other processes that name a path.
func mentioning(path string) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		if text, err := os.ReadFile(p); err == nil && bytes.Contains(text, []byte(path)) && filepath.Base(filepath.Dir(p)) != strconv.Itoa(os.Getpid()) {
			found = append(found, string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
	}
	return found
}
