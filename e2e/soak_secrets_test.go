package e2e_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/testkit/testneeds"
)

// TestSoakSecrets creates, uses and deletes sessions on a server, and pauses, resumes and forks others over snapshots of snapshots. Each has a secret of its own and a
// count, which have to be right at each use. In the end the server has no more memory and no more files than after its first tenth.
func TestSoakSecrets(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t), append([]string{"COVE_POOL=4", "COVE_POOL_MOST=4"}, crowd...)...)
	const users = 2
	brief, long := cycles(t, 4, 2000), cycles(t, 4, 1000)
	run := func(n int, cycle func()) {
		var all sync.WaitGroup
		var done atomic.Int64
		for range users {
			all.Go(func() {
				for done.Add(1) <= int64(n) && !t.Failed() {
					cycle()
				}
			})
		}
		all.Wait()
	}
	chains := func(n int) {
		var all sync.WaitGroup
		for range users {
			all.Go(func() { s.chain(n / users) })
		}
		all.Wait()
	}
	run(max(brief/10, 2), s.brief)
	chains(max(long/10, 2))
	before := s.weigh(dir)
	began := time.Now()
	run(brief, s.brief)
	t.Logf("%d sessions created, used and deleted: %v each", brief, (time.Since(began) / time.Duration(brief)).Round(time.Millisecond))
	began = time.Now()
	chains(long)
	t.Logf("%d times paused, resumed and forked: %v each", long, (time.Since(began) / time.Duration(long)).Round(time.Millisecond))
	after := s.weigh(dir)
	t.Logf("before: %s; after: %s", before, after)
	if after.memory > before.memory*3/2+32 || after.files > before.files+before.files/2+200 || after.sandboxes > before.sandboxes {
		t.Errorf("it grows: %s before, %s after", before, after)
	}
	s.stop().ended(t, 0)
}

// brief is the life of a session that is used twice.
func (s *server) brief() {
	secret := ident.Body(ident.New("x"))
	id := s.session()
	if got := s.says(id, fmt.Sprintf("import pandas as pd; secret = %q; df = pd.DataFrame({'a': range(100)}); print(df.a.sum())", secret)); got != "4950\n" {
		s.t.Errorf("a new session says %q", got)
	}
	if got := s.says(id, "print(secret)"); got != secret+"\n" {
		s.t.Errorf("the secret is %q, not %q", got, secret)
	}
	s.must("DELETE", "/api/v1/sessions/"+id, nil, nil)
}

// chain pauses a session, resumes it by using it, and goes on with a fork of it, n times.
func (s *server) chain(n int) {
	secret := ident.Body(ident.New("x"))
	id := s.session()
	s.says(id, fmt.Sprintf("secret, count = %q, 0; open('notes', 'w').write(secret)", secret))
	for i := range n {
		if s.t.Failed() {
			return
		}
		s.must("POST", "/api/v1/sessions/"+id+"/pause", nil, nil)
		want := fmt.Sprintln(secret, i, "True")
		if got := s.says(id, "print(secret, count, open('notes').read() == secret)"); got != want {
			s.t.Errorf("resumed, the session says %q, not %q", got, want)
		}
		var fork struct{ ID string }
		s.must("POST", "/api/v1/sessions/"+id+"/fork", map[string]any{}, &fork)
		want = fmt.Sprintln(secret, i+1)
		if got := s.says(fork.ID, "count += 1; print(secret, count)"); got != want {
			s.t.Errorf("the fork says %q, not %q", got, want)
		}
		s.must("DELETE", "/api/v1/sessions/"+id, nil, nil)
		id = fork.ID
	}
	s.must("DELETE", "/api/v1/sessions/"+id, nil, nil)
}

// weight is what a server holds.
type weight struct {
	memory    int // MiB of its own process
	files     int // in its folder, but for the database's
	sandboxes int // of its own
}

func (w weight) String() string {
	return fmt.Sprintf("%d MiB, %d files, %d sandboxes", w.memory, w.files, w.sandboxes)
}

// weigh looks at what the server holds when its pools are full and nothing else is left.
func (s *server) weigh(dir string) (w weight) {
	s.t.Helper()
	w.memory = s.memory("VmRSS")
	_ = filepath.WalkDir(filepath.Join(dir, "server"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			w.files++
		}
		return nil // what goes meanwhile is gone
	})
	const least = 4 + mostWaiting
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if w.sandboxes = len(s.sandboxes()); w.sandboxes == least || time.Now().After(deadline) {
			return w
		}
	}
}

// mostWaiting is how many empty sandboxes a server keeps booted.
const mostWaiting = 2
