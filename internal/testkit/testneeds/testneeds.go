// Package testneeds decides what of the tests runs: what needs more than Go runs when it is asked for by the environment variable COVE_TEST.
//
//	(unset)  nothing that needs more than Go: the quick tier, on every machine
//	there    what this machine has; the rest is left out
//	landing  the quick tier and the landing tier, which `make test` runs; what is not there is a failure
//	full     the full tier alone, which `make test-all` runs after that; what is not there is a failure
//	all      everything; what is not there is a failure
//
// COVE_TEST_BINARY alone, which names the program cove that tests start, asks for what is there.
//
// A test is of the quick tier unless it calls Asked, or a function that does; then it is of the landing tier, unless it called FullTier before. It has a slot from then on (TakeSlot) and a timeout.
//
// A test that is left out is skipped with one line that begins with "left out: " and names what it needs. Tests skip in no other way, so that
// package report can say what each package left out, and `make test` that nothing was.
package testneeds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"cove/internal/core/config"
	"cove/internal/python/pyenv"
)

// Variable is the environment variable that asks for more than the quick tier.
const Variable = "COVE_TEST"

const (
	homeVariable   = "COVE_TEST_HOME"   // names the data folder of tests
	binaryVariable = "COVE_TEST_BINARY" // names the program cove that tests start
)

// LeftOut, Elsewhere and OtherTier begin the reason of every skipped test. Everything follows LeftOut where a package runs none of its tests.
const (
	LeftOut    = "left out: "
	Everything = "everything: "
	Elsewhere  = "elsewhere: "
	OtherTier  = "other tier: "
)

// NotThere is in what a test says that failed because everything is asked for and its need is not there.
const NotThere = " is asked for and is not there"

// Need is something that a test needs beside Go.
type Need string

// The needs.
const (
	Python     Need = "Python"     // with venv, and with an environment of cove's where the test says so: built already, or an index to build it from
	UV         Need = "uv"         // or an index to fetch it from
	Sandboxes  Need = "sandboxes"  // the program cove, or a Go to build it with, and name spaces for gVisor
	PostgreSQL Need = "PostgreSQL" // its programs
	Node       Need = "Node.js"    // with npm
	Browser    Need = "a browser"  // Chromium
	Promtool   Need = "promtool"   // Prometheus's checker of rules
	Index      Need = "an index"   // of packages, over the network
	Docker     Need = "Docker"     // its daemon, dockerd, and root to start it
	Root       Need = "root"       // for mounts, loop devices and cgroups
	Time       Need = "time"       // more than the quick tier has
)

// light are the needs that put no load on the machine by themselves.
var light = map[Need]bool{Promtool: true, Root: true}

// Asked leaves the test out unless what it needs is asked for, and waits for a slot.
func Asked(t testing.TB, need Need) {
	t.Helper()
	AskedForParts(t, need)
	if !light[need] {
		TakeSlot(t)
	}
}

// AskedForParts is Asked for a test that does nothing itself and has parts with slots of their own, which may be parallel.
func AskedForParts(t testing.TB, need Need) {
	t.Helper()
	switch wanted := wanted(); wanted {
	case "":
		t.Skipf("%s%s (%s=all asks for it)", LeftOut, need, Variable)
	case "full":
		if !ownTimeouts().isFull(t.Name()) {
			t.Skipf("%slanding (make test runs it)", OtherTier)
		}
	case "there", "landing", "all":
	default:
		t.Fatalf("%s is %q; it may be there, landing, full or all, or unset", Variable, wanted)
	}
}

// FullTier says that the test, or this part of one, is of the full tier: it takes long, or is about what a change seldom breaks. It is called before anything else is done.
func FullTier(t testing.TB) {
	t.Helper()
	switch wanted() {
	case "":
		t.Skipf("%s%s (%s=all asks for it)", LeftOut, Time, Variable)
	case "landing":
		t.Skipf("%sfull (make test-all runs it)", OtherTier)
	}
	ownTimeouts().setFull(t.Name())
}

// wanted is what is asked for. Naming a program asks for the one that is installed.
func wanted() string {
	if w := os.Getenv(Variable); w != "" || os.Getenv(binaryVariable) == "" {
		return w
	}
	return "there"
}

// MoreThanQuick says whether more than the quick tier is asked for: tests that take as long as they are told to take their time.
func MoreThanQuick() bool { return wanted() != "" }

// AbsenceFails says whether a test fails whose need is not there.
func AbsenceFails() bool { return slices.Contains([]string{"landing", "full", "all"}, wanted()) }

// Absent ends a test whose need was asked for and is not there, for this reason: it is left out, or fails when everything was asked for.
func Absent(t testing.TB, need Need, why any) {
	t.Helper()
	Asked(t, need)
	if need == Root && os.Geteuid() != 0 {
		RunsElsewhere(t, string(need), fmt.Sprint(why)) // nothing that an ordinary user installs makes up for it
	}
	if AbsenceFails() {
		t.Fatalf("%s%s: %v", need, NotThere, why)
	}
	t.Skipf("%s%s (%v)", LeftOut, need, why)
}

// RunsElsewhere ends a test that is about another kind of machine or user than this one, which nothing that is installed makes up for: where says
// which.
func RunsElsewhere(t testing.TB, where, why string) {
	t.Helper()
	t.Skipf("%s%s (%s)", Elsewhere, where, why)
}

// Config returns the settings that tests go by. Data is never the user's own: it is the folder that COVE_TEST_HOME names, or cove-test in the user's
// cache.
func Config() (config.Config, error) {
	home := os.Getenv(homeVariable)
	if home == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return config.Config{}, fmt.Errorf("find the data folder of tests: %w", err)
		}
		home = filepath.Join(cache, "cove-test")
	}
	return config.Load(func(name string) string {
		if name == "COVE_HOME" {
			return home
		}
		return os.Getenv(name)
	})
}

// Main is the TestMain of a package whose every test needs something, and starts programs that go by the environment: none of them gets the user's own
// data folder.
func Main(m *testing.M, need Need) {
	if wanted() == "" {
		fmt.Printf("%s%s%s (%s=all asks for it)\n", LeftOut, Everything, need, Variable)
		return
	}
	c, err := Config()
	if err == nil {
		err = os.Setenv("COVE_HOME", c.Folders.Data)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Environment returns one of cove's Python environments, shared by all tests and built when it is missing.
func Environment(t testing.TB, set pyenv.Set) *pyenv.Environment {
	t.Helper()
	Asked(t, Python)
	env, err := Ensure(set)
	if err != nil {
		Absent(t, Python, err)
	}
	return env
}

// FindUV returns the path of uv, fetched when it is missing.
func FindUV(t testing.TB) string {
	t.Helper()
	Asked(t, UV)
	uv, err := EnsureUV()
	if err != nil {
		Absent(t, UV, err)
	}
	return uv
}

// FindPython returns the Python that environments are built on.
func FindPython(t testing.TB) pyenv.Interpreter {
	t.Helper()
	Asked(t, Python)
	found, err := findPython()
	if err != nil {
		Absent(t, Python, err)
	}
	return found
}

// Ensure is Environment for a process that has no test.
func Ensure(set pyenv.Set) (*pyenv.Environment, error) {
	if set == pyenv.Minimal {
		return minimal()
	}
	return standard()
}

// What is found stays so for the process; sync.OnceValues makes one value for all its tests.
var (
	minimal  = sync.OnceValues(func() (*pyenv.Environment, error) { return ensure(pyenv.Minimal) })
	standard = sync.OnceValues(func() (*pyenv.Environment, error) { return ensure(pyenv.Standard) })

	// EnsureUV is FindUV for a process that has no test.
	EnsureUV = sync.OnceValues(func() (string, error) {
		c, err := Config()
		if err != nil {
			return "", err
		}
		return pyenv.UV(context.Background(), c.Folders.Data, os.Stderr)
	})

	findPython = sync.OnceValues(func() (pyenv.Interpreter, error) {
		c, err := Config()
		if err != nil {
			return pyenv.Interpreter{}, err
		}
		return pyenv.FindPython(context.Background(), pyenv.Standard, c.Packages.Python)
	})
)

func ensure(set pyenv.Set) (*pyenv.Environment, error) {
	c, err := Config()
	if err != nil {
		return nil, err
	}
	return pyenv.Ensure(context.Background(), pyenv.Options{Data: c.Folders.Data, Set: set, Python: c.Packages.Python, Progress: os.Stderr})
}

// Program writes a program for a test that starts it. A child that another test starts meanwhile would have the file open for writing for a moment, and a
// program that is open so cannot be started ("text file busy").
func Program(t testing.TB, path, content string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}
