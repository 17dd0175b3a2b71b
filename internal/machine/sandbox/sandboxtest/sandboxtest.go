// Package sandboxtest is the contract suite that every engine passes, and what
// tests that need real sandboxes share: the built binary and a guest's shell.
package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
	"cove/internal/testkit/testneeds"
)

// Binary returns the path of cove's own static binary, built once per test process. Engines start it as runsc and as guest; the
// test binary itself cannot serve, because under the race detector it is not static.
func Binary(t testing.TB) string {
	t.Helper()
	testneeds.Asked(t, testneeds.Sandboxes)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Built is Binary for what starts nothing itself and waits for no slot.
func Built() (string, error) { return build() }

// build is a variable because sync.OnceValues makes one value for all tests of a process.
var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("COVE_TEST_BINARY"); path != "" {
		return path, nil
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", err
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "bin", "cove-test")
	// Other test processes may be starting the file just now: it must never be gone or half there.
	fresh := path + "-" + strconv.Itoa(os.Getpid())
	cmd := exec.Command("go", "build", "-o", fresh, "cove/cmd/cove")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New("build cove: " + string(out))
	}
	return path, os.Rename(fresh, path)
})

// Start starts a sandbox, connects to its guest and stops it when the test ends.
func Start(t testing.TB, e sandbox.Engine, spec sandbox.Spec) (sandbox.Sandbox, *guestlink.Link) {
	t.Helper()
	if spec.ID == "" {
		spec.ID = sandbox.NewID("test")
	}
	sb, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("start: %+v", err)
	}
	t.Cleanup(func() {
		if err := sb.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	stream, err := sb.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := guestlink.Open(t.Context(), stream, guestlink.Session{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return sb, l
}

// Shell runs a command line in the sandbox and returns its exit status and output, stderr after stdout.
func Shell(t testing.TB, l *guestlink.Link, script string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	spec := wire.ProcessSpec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
	code, err := l.Run(t.Context(), spec, &out, &errs)
	if err != nil {
		t.Fatalf("run %q: %v", script, err)
	}
	return code, out.String() + errs.String()
}

// Run is the contract suite. newEngine returns an engine with a state folder of its own.
func Run(t *testing.T, newEngine func(t *testing.T) sandbox.Engine) {
	for name, test := range map[string]func(*testing.T, sandbox.Engine){
		"runs programs":             runsPrograms,
		"has processes":             hasProcesses,
		"meets hostile terminals":   meetsHostileTerminals,
		"watches many files":        watchesManyFiles,
		"has a root":                hasARoot,
		"has volumes":               hasVolumes,
		"begins from an image":      beginsFromAnImage,
		"has system packages":       hasALayer,
		"has a file system":         hasAFileSystem,
		"confines relative paths":   confinesRelativePaths,
		"searches files":            searchesFiles,
		"watches files":             watchesFiles,
		"has a network":             hasANetwork,
		"keeps files":               keepsFiles,
		"refuses paths outside":     refusesPathsOutside,
		"follows no symlink out":    followsNoSymlinkOut,
		"lists folders":             listsFolders,
		"moves and removes":         movesAndRemoves,
		"never leaves half a file":  leavesNoHalfFile,
		"meets strange names":       meetsStrangeNames,
		"meets large trees":         meetsLargeTrees,
		"dials once or again":       dialsOnceOrAgain,
		"stops with all it started": stopsWithAll,
		"survives its code's death": survivesDeath,
		"sweeps only the dead":      sweepsOnlyDead,
		"saves and restores":        savesAndRestores,
		"refuses what is elsewhere": refusesWhatIsElsewhere,
		"gives up what it prepared": givesUpPrepared,
		"refuses broken images":     refusesBrokenImages,
		"outlives a full disk":      outlivesAFullDisk,
		"tells what holds":          tellsWhatHolds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testneeds.TakeSlot(t)
			test(t, newEngine(t))
		})
	}
}

func runsPrograms(t *testing.T, e sandbox.Engine) {
	sb, l := Start(t, e, sandbox.Spec{})
	if code, out := Shell(t, l, "pwd; echo err >&2; exit 3"); code != 3 || out != sb.Layout().Workspace+"\nerr\n" {
		t.Errorf("got %d, %q", code, out)
	}
	if code, _ := Shell(t, l, "kill -9 $$"); code != -1 {
		t.Errorf("a killed program ended with %d, want -1", code)
	}
	if err := l.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	_, err := l.Run(t.Context(), wire.ProcessSpec{Args: []string{"/no/such/program"}}, io.Discard, io.Discard)
	if problem.Of(err) == nil || problem.Of(err).Kind != problem.NotFound {
		t.Errorf("a missing program gave %v", err)
	}
}

func keepsFiles(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	for path, data := range map[string][]byte{"a.txt": []byte("hello"), "deep/er/数据 1.bin": big, "empty": nil} {
		if _, err := l.WriteFile(t.Context(), path, bytes.NewReader(data), 0o644); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		size, err := l.ReadFile(t.Context(), path, 0, &got)
		if err != nil || size != int64(len(data)) || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%s came back as %d bytes, %v", path, got.Len(), err)
		}
	}
	var head bytes.Buffer
	if size, err := l.ReadFile(t.Context(), "deep/er/数据 1.bin", 10, &head); err != nil || size != int64(len(big)) || head.String() != "0123456789" {
		t.Errorf("head: %q of %d, %v", head.String(), size, err)
	}
	if code, out := Shell(t, l, "echo more >> a.txt && cat a.txt"); code != 0 || out != "hellomore\n" {
		t.Errorf("code cannot change a file that the host wrote: %d %q", code, out)
	}
	files, more, err := l.ListFiles(t.Context())
	if err != nil || more || len(files) != 3 {
		t.Errorf("list: %v %v %v", files, more, err)
	}
	if _, err := l.ReadFile(t.Context(), "missing", 0, io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gave %v", err)
	}
}

func refusesPathsOutside(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	for _, path := range []string{"../x", "/etc/passwd", "a/../../b", "", ".", "a//b", "a/", "x\x00y"} {
		if _, err := l.WriteFile(t.Context(), path, strings.NewReader("x"), 0o644); err == nil {
			t.Errorf("wrote to %q", path)
		}
		if _, err := l.ReadFile(t.Context(), path, 0, io.Discard); err == nil {
			t.Errorf("read %q", path)
		}
	}
}

func followsNoSymlinkOut(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	if code, out := Shell(t, l, "ln -s /etc/passwd link; ln -s / root; mkfifo pipe; ln -s ../../../../etc up; touch real; ln -s real inside"); code != 0 {
		t.Fatal(out)
	}
	for _, path := range []string{"link", "root/etc/passwd", "pipe", "up/passwd"} {
		if _, err := l.ReadFile(t.Context(), path, 0, io.Discard); err == nil {
			t.Errorf("read %q", path)
		}
	}
	if _, err := l.WriteFile(t.Context(), "root/tmp/cove-escape", strings.NewReader("x"), 0o644); err == nil {
		t.Error("wrote through a symlink to /")
	}
	if _, err := l.WriteFile(t.Context(), "link", strings.NewReader("mine"), 0o644); err != nil {
		t.Errorf("replacing a symlink: %v", err)
	}
	if _, out := Shell(t, l, "test -L link && echo still a link; head -c 4 /etc/passwd"); out != "root" {
		t.Errorf("got %q", out)
	}
	files, _, err := l.ListFiles(t.Context())
	if err != nil || len(files) != 3 {
		t.Errorf("only the regular files, and the symlink to one, should be listed: %v, %v", files, err)
	}
}

func stopsWithAll(t *testing.T, e sandbox.Engine) {
	sb, l := Start(t, e, sandbox.Spec{})
	if code, out := Shell(t, l, "setsid sleep 1000 >/dev/null 2>&1 & setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 & echo started"); code != 0 {
		t.Fatal(out)
	}
	if err := sb.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, sb.Done(), "the sandbox to end")
	if err := sb.Cause(); err != nil {
		t.Errorf("cause after Stop: %v", err)
	}
	if err := sb.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	await(t, l.Done(), "the connection to end")
	left := mentioning(t, sb.ID())
	if _, elsewhere := e.(sandbox.Describer); elsewhere { // what a daemon had for it, outside of the sandbox, may end a moment later
		for began := time.Now(); len(left) > 0 && time.Since(began) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
			left = mentioning(t, sb.ID())
		}
	}
	if len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

func survivesDeath(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	if code, _ := Shell(t, l, "kill -9 0"); code != -1 {
		t.Errorf("ended with %d", code)
	}
	if code, out := Shell(t, l, "echo alive"); code != 0 || out != "alive\n" {
		t.Errorf("afterwards: %d %q", code, out)
	}
}

func sweepsOnlyDead(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	if n, err := e.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if code, out := Shell(t, l, "echo alive"); code != 0 || out != "alive\n" {
		t.Errorf("after the sweep: %d %q", code, out)
	}
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
}

// mentioning lists the command lines of living processes that name id, such as its folder.
func mentioning(t testing.TB, id string) []string {
	t.Helper()
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(id)) {
			found = append(found, string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// Processes lists the host's processes whose command line begins with name and mentions id.
func Processes(t testing.TB, name, id string) []int {
	t.Helper()
	var pids []int
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil || !bytes.HasPrefix(b, []byte(name)) || !bytes.Contains(b, []byte(id)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
