package gvisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/testkit/testneeds"
)

// unified makes a group in a folder that stands for a mount of version 2, and returns the group's folder.
func unified(t *testing.T, l sandbox.Limits) (g *group, root, dir string) {
	t.Helper()
	root = t.TempDir()
	g, err := cgroupV2{root}.create("one", l)
	if err != nil {
		t.Fatal(err)
	}
	return g, root, filepath.Join(root, "cove", "one")
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUnifiedLimits reads what is asked of version 2 for a sandbox. That the kernel takes it is for a machine with version 2 to show (make cgroup2).
func TestUnifiedLimits(t *testing.T) {
	t.Parallel()
	_, root, dir := unified(t, sandbox.Limits{Memory: 1 << 30, CPUs: 1.5})
	for file, want := range map[string]string{
		"memory.high":      "1342177280", // a quarter of a gibibyte above the limit
		"memory.max":       "2147483648",
		"memory.swap.max":  "0",
		"memory.oom.group": "1",
		"cpu.max":          "150000 100000",
		"pids.max":         "16384",
	} {
		if got := readTrimmed(filepath.Join(dir, file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	for _, above := range []string{root, filepath.Dir(dir)} {
		if got := readTrimmed(filepath.Join(above, "cgroup.subtree_control")); got != "+cpu +memory +pids" {
			t.Errorf("%s gives its groups %q", above, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.subtree_control")); err == nil {
		t.Error("the sandbox's group gives controllers away, and could not hold processes")
	}
}

// TestNoControllers makes a group where the root has processes of its own, as in a container: it cannot give controllers away, and nothing is left behind.
func TestNoControllers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "cgroup.subtree_control"), 0o755); err != nil { // what cannot be written to, not even by root
		t.Fatal(err)
	}
	e := &Engine{cgroups: cgroupV2{root}}
	s := &running{instance: &instance{&sandbox.Folder{ID: "one"}}}
	e.limit(s)()
	if s.cgroup != nil {
		t.Error("there is a group without limits")
	}
	if _, err := os.Stat(filepath.Join(root, "cove")); err == nil {
		t.Error("its parent was left behind")
	}
}

// TestDelegatedGroup finds the group that an ordinary user was given to divide, and leaves every other alone. That the kernel has it divided is for `make cgroup2` and `make machine-check` to show.
func TestDelegatedGroup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	unit := filepath.Join(root, "system.slice", "cove.service")
	group := func(dir, controllers, procs string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "cgroup.controllers", controllers)
		write(t, dir, "cgroup.subtree_control", "")
		write(t, dir, "cgroup.procs", procs)
	}
	group(unit, "cpu io memory pids\n", "1\n")
	group(filepath.Join(unit, "server"), "\n", "")
	group(filepath.Join(root, "user.slice"), "memory pids\n", "")
	for membership, want := range map[string]string{
		"0::/system.slice/cove.service\n":                         unit,
		"0::/system.slice/cove.service/server\n":                  unit, // where cove has moved to
		"0::/user.slice\n":                                        "",   // it may not limit processors
		"0::/elsewhere\n":                                         "",
		"0::/../system.slice/cove.service\n":                      "",
		"4:memory:/system.slice/cove.service\n1:name=systemd:/\n": "",
		"4:memory:/cove\n0::/system.slice/cove.service\n":         unit,
		"": "",
	} {
		if got := delegatedBelow(root, membership); got != want {
			t.Errorf("%q: %q, want %q", membership, got, want)
		}
	}
	if err := divide(unit); err == nil || !strings.Contains(err.Error(), "process 1 ") {
		t.Errorf("process 1 would be moved: %v", err)
	}
	write(t, unit, "cgroup.procs", "")
	if err := divide(unit); err != nil {
		t.Error(err)
	}
}

// TestUnifiedCounts reads what version 2 says of a group.
func TestUnifiedCounts(t *testing.T) {
	t.Parallel()
	g, _, dir := unified(t, sandbox.Limits{Memory: 1 << 30, CPUs: 1})
	write(t, dir, "memory.events", "low 0\nhigh 812\nmax 9\noom 4\noom_kill 3\noom_group_kill 1\n")
	write(t, dir, "cpu.stat", "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\nnr_periods 0\n")
	if n := g.oomKills(); n != 3 {
		t.Errorf("%d processes were killed, want 3", n)
	}
	if d, err := g.cpu(); err != nil || d != 1500*time.Millisecond {
		t.Errorf("it used %v, %v", d, err)
	}
}

// TestSlowedIsStarved looks at a sandbox whose group has more memory than the kernel lets it have at its full speed: what does not answer then lacks memory.
func TestSlowedIsStarved(t *testing.T) {
	t.Parallel()
	g, _, dir := unified(t, sandbox.Limits{Memory: 1 << 30, CPUs: 1})
	s := &running{cgroup: g}
	for _, c := range []struct {
		high, current string
		starves       bool
	}{
		{"1342177280\n", "1342177280\n", false},
		{"1342177280\n", "1342181376\n", true},
		{"max\n", "1342181376\n", false},
		{"", "", false},
	} {
		write(t, dir, "memory.high", c.high)
		write(t, dir, "memory.current", c.current)
		if got := s.WaitsForMemory(); got != c.starves {
			t.Errorf("with %s of %s it starves: %v", strings.TrimSpace(c.current), strings.TrimSpace(c.high), got)
		}
	}
	if (&running{cgroup: cgroupV1{}.open("one")}).WaitsForMemory() || (&running{}).WaitsForMemory() {
		t.Error("a sandbox that nothing slows down starves")
	}
}

// TestSlowedIsLent has a sandbox that is slowed down get some of the reserve, keep it for as long as it needs it, and give it back.
func TestSlowedIsLent(t *testing.T) {
	t.Parallel()
	const high = 1 << 30
	g, _, dir := unified(t, sandbox.Limits{Memory: high - sentryMemory/2, CPUs: 1})
	use := func(n int64) { write(t, dir, "memory.current", strconv.FormatInt(n, 10)) }
	use(high + 1)
	s := &running{cgroup: g, done: make(chan struct{})}
	over := make(chan bool, 1)
	go func() { over <- s.lend(g) }()
	for deadline := time.Now().Add(time.Minute); g.threshold.place() <= high; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was lent")
		}
	}
	if err := g.threshold.lower(high); err == nil {
		t.Error("taken back while it is in use")
	}
	if !s.WaitsForMemory() || s.Shortages() != 1 {
		t.Errorf("it starves: %v, for the time %d", s.WaitsForMemory(), s.Shortages())
	}
	use(high)
	if !<-over || g.threshold.place() != high || s.WaitsForMemory() {
		t.Errorf("afterwards it may have %d", g.threshold.place())
	}
}

// TestReserveIsUsedUp has a sandbox stay slowed down whatever it is lent: that ends.
func TestReserveIsUsedUp(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Time)
	g, _, dir := unified(t, sandbox.Limits{Memory: 1 << 30, CPUs: 1})
	write(t, dir, "memory.current", strconv.FormatInt(8<<30, 10))
	s := &running{cgroup: g, done: make(chan struct{})}
	base := g.threshold.place()
	if s.lend(g) {
		t.Error("it is as if nothing were slowed down")
	}
	if lent := g.threshold.place() - base; lent != reserveMemory {
		t.Errorf("%d bytes were lent", lent)
	}
	if most := number(filepath.Join(dir, "memory.max")); g.threshold.place() >= most {
		t.Errorf("it may have %d, and is killed at %d", g.threshold.place(), most)
	}
}
