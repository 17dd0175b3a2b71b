package ondisk_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cove/internal/core/problem"
	"cove/internal/machine/snapshot"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

// past is a head that can be returned to.
type past struct {
	had  []string
	kept bool
}

// account is what a user of a session expects of it: what is in the sandbox, what is saved, and what is lost with the sandbox.
type account struct {
	undoable bool // each execution can be undone
	stays    bool // a session that loses its sandbox begins again with what it was loaded with, not with the head

	live, head []string // what is there
	undo       []past   // earlier heads, the newest last
	kept       bool     // the head is a point
	loaded     []string
	puts       []string // files that are written since the head was saved, and outlive the sandbox
	runs       int      // executions that are counted
	saved      int      // of them, by the head
	everSaved  bool

	ahead, ran bool // something, or code, since the head
	lost       bool // with what was ahead
	crashed    bool // the variables are
	elsewhere  bool // the head is not what a next sandbox begins with
	full       bool // the disk
}

func (a *account) load() {
	a.live = append(slices.Clone(a.head), a.puts...)
	a.loaded, a.runs = a.head, a.saved
	a.ahead, a.ran, a.lost, a.crashed, a.elsewhere, a.full = len(a.puts) > 0, false, false, false, false, false
}

// save makes what is there the head, unless the disk is full.
func (a *account) save() bool {
	if a.full {
		return false
	}
	if rescue := a.crashed && a.everSaved; a.undoable || a.kept || rescue {
		a.undo = append(a.undo, past{a.head, a.kept})
		a.undo = a.undo[max(0, len(a.undo)-depth):]
	}
	a.head, a.saved, a.puts, a.everSaved, a.kept = slices.Clone(a.live), a.runs, nil, true, false
	a.ahead, a.ran, a.crashed, a.elsewhere = false, false, false, a.stays
	return true
}

func (a *account) lose() {
	begin := a.head
	if a.stays {
		begin = a.loaded
	}
	a.live, a.lost = append(slices.Clone(begin), a.puts...), true
}

// run is an execution of a code that means something to a fake; false says that it is refused.
func (a *account) run(what string) bool {
	if a.lost && a.elsewhere {
		return false
	}
	if a.undoable && a.ran && !a.lost {
		a.save()
	}
	if a.lost {
		a.runs, a.crashed = a.saved, false
	}
	a.ahead, a.ran, a.lost = true, true, false
	a.runs++
	switch what {
	case "die":
		a.lose()
	case "crash":
		a.live, a.crashed = nil, true
	default:
		a.live = append(a.live, what)
	}
	return true
}

const depth = 3

// bare is a Live that does not go on with a head that it was not loaded with, and whose files cannot be changed from outside.
type bare struct{ ondisk.Live }

// lab is a real session beside the account of it.
type lab struct {
	*rapid.T
	account
	t       *testing.T
	store   ondisk.Store
	machine *machine
	session *ondisk.LeasedSession
	n       int
}

func (l *lab) fresh(kind string) string {
	l.n++
	return fmt.Sprintf("%s%d", kind, l.n)
}

func (l *lab) open() {
	o := l.machine.options()
	o.Undoable, o.Depth = l.undoable, depth
	if l.stays {
		o.Prepare = func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			g, err := l.machine.prepare(ctx, b)
			start := g.Start
			g.Start = func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (ondisk.Live, error) {
				live, err := start(ctx, from, reseed)
				return bare{live}, err
			}
			return g, err
		}
	}
	s, err := l.store.Open(l.t.Context(), "lab", o)
	if err != nil {
		l.Fatal(err)
	}
	l.session = s
	l.load()
	l.machine.last.full = false
}

func (l *lab) execute(what string) {
	var failed error
	for _, err := range l.session.Execute(l.t.Context(), kernel.Request{Code: what}) {
		failed = err
	}
	if ok := l.run(what); ok != (failed == nil) || failed != nil && problem.Of(failed).Code != "session_lost" {
		l.Fatalf("%s: %v", what, failed)
	}
}

func (l *lab) checkpoint() {
	due := l.ahead && !l.lost
	if err := l.session.Checkpoint(l.t.Context()); (err == nil) != (!due || l.save()) {
		l.Fatal(err)
	}
}

func (l *lab) mark() {
	due := l.ahead && !l.lost
	err := l.session.Mark(l.t.Context(), "turn")
	if (err == nil) != (!due || l.save()) {
		l.Fatal(err)
	}
	l.kept = l.kept || err == nil
}

// check compares an open session with the account.
func (l *lab) check() {
	stranded := l.lost && l.elsewhere // in nothing that anybody gets to see
	if got, want := strings.Join(l.machine.last.ran, " "), strings.Join(l.live, " "); got != want && !stranded {
		l.Fatalf("it has %q, not %q", got, want)
	}
	if ahead, _ := l.session.Unsaved(); ahead != (l.ahead && !l.lost) {
		l.Fatalf("it is said to be ahead: %t", ahead)
	}
	if h := l.session.Head(); h.Executions != l.saved || (h.Snapshot != "") != l.everSaved {
		l.Fatalf("the head is %+v", h)
	}
}

// closed compares what is on the disk, and opens the session again.
func (l *lab) closed(err error, code string) {
	if (err == nil) != (code == "") || err != nil && problem.Of(err).Code != code {
		l.Fatalf("closing: %v, not %q", err, code)
	}
	info, err := l.store.Show(l.t.Context(), "lab")
	if err != nil {
		l.Fatal(err)
	}
	if len(info.Undo) != len(l.undo) || info.Executions != l.saved {
		l.Fatalf("%d snapshots can be returned to, and %d executions are counted", len(info.Undo), info.Executions)
	}
	if len(l.undo) > 0 && rapid.Bool().Draw(l.T, "undo") {
		to := rapid.IntRange(0, len(l.undo)-1).Draw(l.T, "to")
		_, err := l.store.Return(l.t.Context(), "lab", "x", info.Undo[to].Point())
		if to == len(l.undo)-1 && rapid.Bool().Draw(l.T, "newest") && err == nil && to > 0 {
			to--
			_, err = l.store.Undo(l.t.Context(), "lab", "x")
		}
		if err != nil {
			l.Fatal(err)
		}
		l.head, l.kept, l.undo, l.puts = l.undo[to].had, l.undo[to].kept, l.undo[:to], nil
		info, err := l.store.Show(l.t.Context(), "lab")
		if err != nil {
			l.Fatal(err)
		}
		l.saved, l.everSaved = info.Head.Executions, info.Head.Snapshot != ""
	}
	l.open()
}

// ending is what Close says to a session as it is.
func (l *lab) ending() (code string) {
	switch {
	case !l.ahead:
		return ""
	case l.lost:
		return "session_lost"
	case !l.save():
		return "session_unsaved"
	}
	return ""
}

// Whatever happens to a session, and in whatever order: it has what it should, says what is not saved, and keeps what it was where it cannot be.
func TestASessionGoesByItsAccount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "store")
		if err != nil {
			rt.Fatal(err)
		}
		l := &lab{T: rt, t: t, store: ondisk.Store{Dir: dir}, machine: &machine{},
			account: account{undoable: rapid.Bool().Draw(rt, "undoable"), stays: rapid.IntRange(0, 3).Draw(rt, "stays") == 0}}
		l.open()
		defer func() { _ = l.session.Close(context.Background()) }()
		ctx := t.Context()
		ops := []string{"run", "run", "crash", "die", "dies unnoticed", "put", "write", "checkpoint", "mark", "mark", "crash, saved", "disk", "pause", "close", "discard"}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch op := rapid.SampledFrom(ops).Draw(rt, "what"); op {
			case "run":
				l.execute(l.fresh("x"))
			case "crash", "die":
				l.execute(op)
			case "dies unnoticed":
				l.machine.last.die()
				l.lose()
			case "put":
				name := l.fresh("file")
				if err := l.session.PutFile(ctx, name, "/dev/null"); err != nil {
					rt.Fatal(err)
				}
				l.live, l.ahead = append(l.live, "put "+name), true
			case "write":
				name := l.fresh("file")
				_, err := l.session.Write(ctx, name, strings.NewReader("text"))
				if (err == nil) == l.stays {
					rt.Fatal(err)
				}
				if !l.stays {
					l.live, l.puts, l.ahead = append(l.live, name+"=text"), append(l.puts, name+"=text"), true
				}
			case "checkpoint":
				l.checkpoint()
			case "mark":
				l.mark()
			case "crash, saved":
				l.execute("crash")
				l.checkpoint()
			case "disk":
				l.full = !l.full
				l.machine.last.full = l.full
			case "pause":
				stuck := l.ahead && !l.lost && l.full
				open, err := l.session.Pause(ctx)
				if open != stuck || stuck && problem.Of(err).Code != "disk_full" {
					rt.Fatal(open, err)
				}
				if !stuck {
					l.closed(err, l.ending())
				}
			case "close":
				l.closed(l.session.Close(ctx), l.ending())
			case "discard":
				l.closed(l.session.Discard(ctx), "")
			}
			l.check()
		}
	})
}

// What cannot be saved before an execution that is to be undone would be undone with it, so that nothing is kept to go back to.
func TestUndoDoesNotGoBehindWhatWasNotSaved(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "b", "full")
	use(t, store, "lab", ondisk.Options{Undoable: true}, "c", "empty")
	if _, _, err := store.Pause(t.Context(), "lab", "x"); err != nil {
		t.Fatal(err)
	}
	k.wait(t)
	if info := show(t, store); len(info.Undo) != 0 || info.Executions != 5 {
		t.Errorf("%d snapshots can be returned to after %d executions", len(info.Undo), info.Executions)
	}
}
