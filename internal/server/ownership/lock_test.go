package ownership

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/testkit/testneeds"
)

func TestOneHomePerFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	ids := make([]string, 16)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var err error
			if ids[i], err = HomeOf(dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || !ident.Valid(ident.Home, id) {
			t.Fatalf("one folder is the homes %q", ids)
		}
	}
	if other, err := HomeOf(t.TempDir()); err != nil || other == ids[0] {
		t.Errorf("another folder is the home %s, %v", other, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder has %q, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, homeFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := HomeOf(dir); err == nil {
		t.Errorf("a damaged file is the home %s", id)
	}
}

const child = "COVE_TEST_OWNER_CHILD"

// TestADeadProcessIsProved kills a process that holds its lock file, and looks at it before and afterwards.
func TestADeadProcessIsProved(t *testing.T) {
	t.Parallel()
	if folder := os.Getenv(child); folder != "" {
		l, err := newLock(folder, filepath.Base(folder))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("locked\n")
		for { // the file would be closed as garbage if nobody needed it any more
			time.Sleep(time.Minute)
			runtime.KeepAlive(l)
		}
	}
	me := self("test")
	if me.Boot == "" {
		testneeds.RunsElsewhere(t, "a system that tells its starts apart", "this one does not")
	}
	id := ident.New(ident.Owner)
	folder := filepath.Join(t.TempDir(), id)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"="+folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("locked\n"))
	if _, err := out.Read(said); err != nil || string(said) != "locked\n" {
		t.Fatalf("%q, %v", said, err)
	}
	r := Record{ID: id, About: me}
	clean(folder, nil)
	if gone(folder, r, me) {
		t.Error("a process that lives is proved to be dead")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !gone(folder, r, me) {
		t.Error("a killed process is not proved to be dead")
	}
	elsewhere, rebooted := me, me
	elsewhere.Boot, elsewhere.Host = "other", "other"
	rebooted.Boot = "other"
	if gone(folder, Record{ID: id, About: elsewhere}, me) {
		t.Error("a process of another machine is proved to be dead by this one's locks")
	}
	if !gone(folder, Record{ID: id, About: rebooted}, me) {
		t.Error("a process from before the machine was started anew is not proved to be dead")
	}
	if gone(folder, Record{ID: ident.New(ident.Owner), About: me}, me) {
		t.Error("a process without a lock file is proved to be dead")
	}
	clean(folder, map[string]bool{id: true})
	if !gone(folder, r, me) {
		t.Error("the lock file of a process with a record was removed")
	}
	clean(folder, nil)
	if left, err := os.ReadDir(filepath.Join(folder, lockFolder)); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if !strings.HasPrefix(id, "own_") {
		t.Error(id)
	}
}
