package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cove/internal/testkit/testneeds"
)

// grace is how long a test that knows its timeout may go on beyond it: it fails by itself then, and says what it waited for.
const grace = time.Minute

// mainTimeouts is how many times as long as a test of the quick tier a TestMain may take beside its tests: some build what the tests start.
const mainTimeouts = 6

// clock is the time of a test with its parts. go test says that a part has ended when the whole test has, so parts have no clocks of their own.
type clock struct {
	since   time.Duration   // of the report, when it or a part of it last began, went on or took a slot
	timeout time.Duration   // the longest that it or a part of it said; 0: none has
	slots   map[string]bool // what of it has taken one
	waiting map[string]bool // what of it waits for other tests or for a slot
}

// key is a package and a test or a part of one; of the package itself, whose TestMain may hang, the test is empty.
type key = [2]string

// tick notes what an event says of the time of a test.
func (r *Report) tick(e event) {
	top, _, part := strings.Cut(e.Test, "/")
	k := key{e.Package, top}
	if begins := e.Action == "start" || e.Action == "run" && !part; begins {
		r.clocks[k] = &clock{since: r.counted, slots: map[string]bool{}, waiting: map[string]bool{}}
	}
	c, whole := r.clocks[k], r.clocks[key{e.Package, ""}]
	if c == nil || whole == nil {
		return // what parts say when all has ended
	}
	switch e.Action {
	case "run", "cont":
		whole.waiting[top] = true
		c.goesOn(e.Test, r.counted)
	case "pause":
		if of := c.slotOver(e.Test); of == "" {
			c.waiting[e.Test] = true
		} else {
			r.failures = append(r.failures, failure{pkg: e.Package, test: e.Test,
				causes: "    it is parallel, and so waits for tests that may wait for the slot of " + of + "; see testneeds.TakeSlot\n", final: "it may hang each time"})
		}
	case "output":
		if !part && strings.HasPrefix(e.Output, "--- ") { // it has ended; test2json says so when the next one says something, which may be long after
			delete(r.clocks, k)
			whole.goesOn(top, r.counted)
		} else if strings.Contains(e.Output, ": "+testneeds.Awaited) {
			c.waiting[e.Test] = true
		} else if _, came, ok := strings.Cut(e.Output, ": "+testneeds.Came); ok {
			c.goesOn(e.Test, r.counted)
			what, after, _ := strings.Cut(came, " after ")
			if what == testneeds.Slot {
				c.slots[e.Test] = true
			}
			seconds, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(after), "s"), 64)
			r.waited[key{e.Package, e.Test}] += seconds
		} else if _, said, ok := strings.Cut(e.Output, ": "+testneeds.TimeoutSet); ok {
			timeout, _ := time.ParseDuration(strings.TrimSpace(said))
			c.timeout = max(c.timeout, timeout)
		}
	}
}

// goesOn notes that a test or a part of it does not wait, or no longer.
func (c *clock) goesOn(test string, now time.Duration) {
	delete(c.waiting, test)
	c.since = now
}

// slotOver returns what has taken a slot of which this is a part, or "".
func (c *clock) slotOver(part string) string {
	for {
		i := strings.LastIndexByte(part, '/')
		if i < 0 {
			return ""
		}
		if part = part[:i]; c.slots[part] {
			return part
		}
	}
}

// Overdue returns the package of a test, or with a TestMain, that runs for longer than it may, and notes that as why the package ends early.
func (r *Report) Overdue() (pkg string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, c := range r.clocks {
		timeout := r.quickTimeout
		if c.timeout > 0 {
			timeout = c.timeout + grace
		} else if k[1] == "" {
			timeout *= mainTimeouts
		}
		if _, ends := r.overdue[k[0]]; ends || timeout == 0 || len(c.waiting) > 0 || r.counted-c.since <= timeout {
			continue
		}
		r.overdue[k[0]] = k[1]
		r.causes[k] += fmt.Sprintf("    %s ran for longer than %s and did not end\n", cmp.Or(k[1], "TestMain"), timeout)
		return k[0], true
	}
	return "", false
}

// count takes note of time that has passed.
func (r *Report) count(passed time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted += testneeds.CountedTime(passed)
}

// watch ends the processes of packages with a test that runs for longer than it may, until go test has said everything.
func (s *suite) watch(r *Report, goTest int, read <-chan struct{}) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-read:
			return
		case <-again.C:
			r.count(time.Second)
		}
		for pkg, ok := r.Overdue(); ok; pkg, ok = r.Overdue() {
			if err := s.quit(goTest, pkg); err != nil {
				fmt.Fprintf(os.Stderr, "report: end the tests of %s: %v\n", pkg, err)
			}
		}
	}
}

// quit ends the process of a package's tests, a child of go test, in a way that has it print what its goroutines do.
func (s *suite) quit(goTest int, pkg string) error {
	list := exec.Command("go", "list", "-f", "{{.Dir}}", pkg)
	list.Dir, list.Env = s.dir, append(os.Environ(), s.env...)
	out, err := list.Output()
	if err != nil {
		return err
	}
	folder, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", goTest))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(text)) {
			if at, _ := os.Readlink("/proc/" + child + "/cwd"); at == folder {
				pid, err := strconv.Atoi(child)
				if err != nil {
					return err
				}
				return syscall.Kill(pid, syscall.SIGQUIT)
			}
		}
	}
	return fmt.Errorf("go test has no process in %s", folder)
}
