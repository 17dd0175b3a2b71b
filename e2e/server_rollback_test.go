package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// diarist is a user who notes what his session acknowledged.
type diarist struct {
	session string
	counts  []time.Time       // when the session said that n is so much
	runs    []string          // the executions that said it
	files   map[string][]byte // by path: what was acknowledged
}

// keep works until ctx ends or the server is gone: it counts up in a variable and puts files in, now busily, now with rests in which it is saved.
func (d *diarist) keep(ctx context.Context, s *server) {
	for ctx.Err() == nil {
		n := len(d.counts) + 1
		all, err := s.execute(ctx, d.session, fmt.Sprintf("n = %d\nopen('made.txt', 'w').write(str(n))\nprint(n)", n))
		if err != nil || outcome(all) != "ok" {
			return
		}
		made, _ := all[0].data["execution"].(map[string]any)
		d.counts, d.runs = append(d.counts, time.Now()), append(d.runs, fmt.Sprint(made["id"]))
		if rand.N(3) == 0 {
			path, content := fmt.Sprintf("in/%d.txt", rand.N(5)), fmt.Appendf(nil, "%d of %s", n, d.session)
			if r, err := s.patiently(ctx, "PUT", "/api/v1/sessions/"+d.session+"/files/"+path, content); err != nil || r.status/100 != 2 {
				delete(d.files, path) // it may be there or not
				return
			}
			d.files[path] = content
		}
		rest := rand.N(300 * time.Millisecond)
		if rand.N(20) == 0 {
			rest = 12 * time.Second
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// look finds out what the session goes on from after the server was killed, and whether that was said. It returns how long before the kill that was.
func (d *diarist) look(t *testing.T, s *server, killed time.Time) (back time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, err := s.execute(ctx, d.session, "print(globals().get('n', 0))")
	if err != nil || outcome(all) != "ok" {
		t.Errorf("session %s cannot be used: %v %v", d.session, err, all)
		return 0
	}
	has, err := strconv.Atoi(strings.TrimSpace(printed(all)))
	if err != nil {
		t.Errorf("session %s: %v", d.session, err)
	}
	var said []string
	told := slices.IndexFunc(all, func(e event) bool { return e.data["type"] == "rollback" })
	if told >= 0 {
		list, _ := all[told].data["executions"].([]any)
		for _, id := range list {
			said = append(said, fmt.Sprint(id))
		}
	}
	for n := has; n < len(d.runs); n++ {
		if more, _ := all[max(told, 0)].data["more_executions"].(float64); !slices.Contains(said, d.runs[n]) && more == 0 {
			t.Errorf("session %s has n = %d, and nobody said that execution %d of %d is lost: %v", d.session, has, n+1, len(d.runs), all)
			break
		}
	}
	var row struct {
		Rollback *struct{ Executions, Files []string }
	}
	s.must("GET", "/api/v1/sessions/"+d.session, nil, &row)
	if (row.Rollback != nil) != (told >= 0) {
		t.Errorf("session %s says %+v, and its execution was told %v", d.session, row.Rollback, told >= 0)
	}
	if row.Rollback != nil && has < len(d.runs) && !slices.Contains(row.Rollback.Files, "made.txt") {
		t.Errorf("session %s does not name the file that lost executions made: %+v", d.session, row.Rollback)
	}
	for path, content := range d.files {
		if r, err := s.patiently(ctx, "GET", "/api/v1/sessions/"+d.session+"/files/"+path, nil); err != nil || !bytes.Equal(r.body, content) {
			t.Errorf("session %s: %s was acknowledged as %q and is %q, %v", d.session, path, content, r.body, err)
		}
	}
	if has >= len(d.counts) {
		return 0
	}
	return killed.Sub(d.counts[has])
}

// TestNothingIsLostInSilence kills a server under users whose sessions count up. Each goes on from what was saved, says what it lost, and has every file
// that was acknowledged.
func TestNothingIsLostInSilence(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir, key := t.TempDir(), testKey(t)
	rounds, users := cycles(t, 2, 50), cycles(t, 3, 20)
	whole, rolled := 0, []time.Duration{}
	for range rounds {
		s := startServer(t, dir, key, crowd...)
		ctx, cancel := context.WithCancel(t.Context())
		diarists := make([]*diarist, users)
		var all sync.WaitGroup
		for i := range diarists {
			diarists[i] = &diarist{session: s.session(), files: map[string][]byte{}}
			all.Go(func() { diarists[i].keep(ctx, s) })
		}
		time.Sleep(5*time.Second + rand.N(20*time.Second)) // what it finds must be right whenever it comes
		killed := time.Now()
		s.kill()
		cancel()
		all.Wait()
		again := startServer(t, dir, key, crowd...)
		for _, d := range diarists {
			if back := d.look(t, again, killed); back > 0 {
				rolled = append(rolled, back)
			} else {
				whole++
			}
			again.must("DELETE", "/api/v1/sessions/"+d.session, nil, nil)
		}
		again.stop().ended(t, 0)
	}
	slices.Sort(rolled)
	if len(rolled) > 0 {
		t.Logf("%d kills under %d users: %d sessions lost nothing, %d went back and said so, by %s (median), %s (most)", rounds, users, whole, len(rolled),
			rolled[len(rolled)/2].Round(time.Second/10), rolled[len(rolled)-1].Round(time.Second/10))
	}
}
