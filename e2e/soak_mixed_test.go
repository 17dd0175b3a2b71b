package e2e_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/testkit/testneeds"
)

// TestSoakMixed has users work with many live sessions at a time, each with a secret and a count that have to be right at each use: most uses are short, some are
// of pandas, files, pauses, forks, and sessions that are deleted for new ones. The full round takes an hour with 300 sessions. What the server holds is looked at every tenth.
func TestSoakMixed(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t), append([]string{"COVE_POOL=4", "COVE_POOL_MOST=4"}, crowd...)...)
	const users = 3
	seats := make([]*soakSeat, cycles(t, 4, 300))
	long := time.Duration(cycles(t, 10, 3600)) * time.Second
	for i := range seats {
		seats[i] = &soakSeat{s: s}
		seats[i].sit()
	}
	began := time.Now()
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			for time.Since(began) < long && !t.Failed() {
				seats[rand.IntN(len(seats))].use()
			}
		})
	}
	for i := range 10 {
		for next := began.Add(long * time.Duration(i+1) / 10); time.Now().Before(next) && !t.Failed(); {
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("after %v: %d MiB in the server, %d sandboxes, %d MiB on the disk", time.Since(began).Round(time.Second), s.memory("VmRSS"), len(s.sandboxes()), s.disk(dir))
	}
	all.Wait()
	done := map[string]int{}
	for _, seat := range seats {
		for what, n := range seat.done {
			done[what] += n
		}
		seat.leave()
	}
	t.Logf("%d sessions used in %v: %v", len(seats), time.Since(began).Round(time.Second), done)
	s.stop().ended(t, 0)
}

// soakSeat is where a session is used, one after the other.
type soakSeat struct {
	s      *server
	mu     sync.Mutex
	id     string
	secret string
	count  int
	done   map[string]int
}

// sit begins a session.
func (p *soakSeat) sit() {
	p.id, p.secret, p.count = p.s.session(), ident.Body(ident.New("x")), 0
	if p.done == nil {
		p.done = map[string]int{}
	}
	p.s.says(p.id, fmt.Sprintf("import pandas as pd; secret, count = %q, 0; open('notes', 'w').write(secret)", p.secret))
}

func (p *soakSeat) leave() { p.s.must("DELETE", "/api/v1/sessions/"+p.id, nil, nil) }

// use does one of the things that users do, and looks whether the session is as it was left.
func (p *soakSeat) use() {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	path := "/api/v1/sessions/" + p.id
	what := "cell"
	switch n := rand.IntN(100); {
	case n < 50:
	case n < 65:
		what = "pandas"
		if got := p.s.says(p.id, "print(pd.DataFrame({'a': range(1000), 'b': 1.5}).groupby(pd.Series(range(1000)) % 7).b.sum().sum())"); got != "1500.0\n" {
			p.s.t.Errorf("pandas says %q", got)
		}
	case n < 75:
		what = "file"
		p.s.must("PUT", path+"/files/put", []byte(p.secret), nil)
		if got := p.s.says(p.id, "print(open('put').read())"); got != p.secret+"\n" {
			p.s.t.Errorf("the file has %q", got)
		}
	case n < 80:
		what = "memory"
		if got := p.s.says(p.id, "b = bytearray(40 << 20); b[::4096] = bytes([7]) * len(b[::4096]); print(sum(b[::4096])); del b"); got != "71680\n" {
			p.s.t.Errorf("memory says %q", got)
		}
	case n < 90:
		what = "pause"
		p.s.must("POST", path+"/pause", nil, nil)
	case n < 95:
		what = "fork"
		var fork struct{ ID string }
		p.s.must("POST", path+"/fork", map[string]any{}, &fork)
		p.leave()
		p.id = fork.ID
	default:
		what = "another"
		p.leave()
		p.sit()
	}
	p.done[what]++
	p.count++
	want := fmt.Sprintln(p.secret, p.count, "True")
	if got := p.s.says(p.id, "count += 1; print(secret, count, open('notes').read() == secret)"); got != want {
		p.s.t.Errorf("after %q the session says %q, not %q", what, got, want)
	}
}

// disk is what the server's folder takes on the disk, in MiB; a file with several names counts once.
func (s *server) disk(dir string) int64 {
	var blocks int64
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(filepath.Join(dir, "server"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what goes meanwhile is gone
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !seen[st.Ino] {
			seen[st.Ino] = true
			blocks += st.Blocks
		}
		return nil
	})
	return blocks * 512 >> 20
}
