package hub_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

// picky is a store that answers and refuses records with a word in them, as a database does which finds a value too large.
type picky struct {
	*store.Store
	word     string
	refusals atomic.Int64
}

var errRefused = errors.New("a value is too large")

func (p *picky) refuses(events []stream.Event) bool {
	refuse := slices.ContainsFunc(events, func(e stream.Event) bool { return bytes.Contains(e.Body, []byte(p.word)) })
	if refuse {
		p.refusals.Add(1)
	}
	return refuse
}

func (p *picky) AddEvents(ctx context.Context, events []stream.Event) error {
	if p.refuses(events) {
		return errRefused
	}
	return p.Store.AddEvents(ctx, events)
}

func (p *picky) FinishExecution(ctx context.Context, e hub.Execution, last []stream.Event) (bool, error) {
	if p.refuses(last) {
		return false, errRefused
	}
	return p.Store.FinishExecution(ctx, e, last)
}

func (p *picky) FinishTurn(ctx context.Context, t hub.Turn, last []stream.Event) (bool, error) {
	if p.refuses(last) || strings.Contains(t.Answer, p.word) {
		return false, errRefused
	}
	return p.Store.FinishTurn(ctx, t, last)
}

// TestARecordThatIsRefusedStopsNobodyElse has an event refused, or an end, of which another project must notice nothing.
func TestARecordThatIsRefusedStopsNobodyElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, word string
		outcome    kernel.Outcome
		message    string
		gaps       int
	}{
		{"say on\nsay poison", "poison", kernel.OutcomeOK, "", 1},
		{"die", "the sandbox died", kernel.OutcomeSandboxDied, "the execution ended, but its end could not be recorded as a whole: its last output is not kept", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var db *picky
			l := newLife(t, func(o *hub.Options) {
				db = &picky{Store: o.Store.(*store.Store), word: c.word}
				o.Store = db
			})
			who, other := someone(auth.LocalProject), someone("prj_other")
			theirs, s := l.session(other), l.session(who)
			e := l.start(who, s.ID, c.code)
			for db.refusals.Load() < 2 {
				if err := l.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				l.run(other, theirs.ID, "say hello")
				time.Sleep(time.Millisecond) // of the bubble: until something else happens
			}
			if _, done := l.wait(who, e.ID); done.Outcome != c.outcome || done.Message != c.message {
				t.Errorf("%+v", done)
			}
			if got, err := l.Execution(t.Context(), who, e.ID); err != nil || !got.State.Final() || got.Message != c.message {
				t.Errorf("%+v %v", got, err)
			}
			if n := l.gaps(who, e.ID); n != c.gaps {
				t.Errorf("what was not kept is told %d times", n)
			}
			l.run(who, s.ID, "say hello")
		})
	}
}

// gaps counts the gaps in what is kept of an execution.
func (l *life) gaps(who auth.Principal, id string) (n int) {
	l.t.Helper()
	f, err := l.Follow(l.t.Context(), who, id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for e, err := range f {
		if err != nil {
			l.t.Fatal(err)
		}
		if e.Gap {
			n++
		}
	}
	return n
}

func TestATurnWhoseEndIsRefusedFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &voice{t: t, lines: []line{words("This is poison."), words("This is not.")}}
		l := newLife(t, func(o *hub.Options) {
			o.Models, o.Store = v, &picky{Store: o.Store.(*store.Store), word: "poison"}
		})
		who := someone(auth.LocalProject)
		turn := l.begin(who, hub.NewTurn{Input: input("go"), NoPython: true})
		_, err := l.hear(who, turn.ID)
		fails(t, err, "turn_unrecorded")
		if got, err := l.Turn(t.Context(), who, turn.ID); err != nil || got.State != hub.TurnFailed {
			t.Errorf("%+v %v", got, err)
		}
		events, err := l.hear(who, l.begin(who, hub.NewTurn{Conversation: turn.Conversation, Input: input("again"), NoPython: true}).ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := events[len(events)-1].Event.(loop.Answer); !ok {
			t.Errorf("the next turn ends with %#v", events[len(events)-1])
		}
	})
}

// TestCodeEndsWhileTheStoreIsAway has code print more than the memory keeps of what is not stored: it has to wait, and must still be one that a request
// ends, and its time.
func TestCodeEndsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	const code = "say on\nwait go\nflood 1000\nwait never"
	step := calls(python("c1", code))
	for name, c := range map[string]struct {
		start func(l *life, who auth.Principal, session string) (id string)
		end   func(l *life, who auth.Principal, id string) error
		want  string
	}{
		"an interrupt": {
			func(l *life, who auth.Principal, session string) string { return l.start(who, session, code).ID },
			func(l *life, who auth.Principal, id string) error {
				_, err := l.InterruptExecution(l.t.Context(), who, id)
				return err
			},
			"interrupted",
		},
		"its time": {
			func(l *life, who auth.Principal, session string) string { return l.start(who, session, code).ID },
			func(*life, auth.Principal, string) error {
				time.Sleep(time.Hour)
				return nil
			},
			"timeout",
		},
		"a cancelled turn": {
			func(l *life, who auth.Principal, session string) string {
				return l.begin(who, hub.NewTurn{Session: session, Input: input("go")}).ID
			},
			func(l *life, who auth.Principal, id string) error {
				_, err := l.CancelTurn(l.t.Context(), who, id)
				return err
			},
			"canceled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, db, who := lifeWhoseStoreGoes(t, step)
				id := c.start(l, who, l.session(who).ID)
				synctest.Wait()
				db.down.Store(true)
				l.toys.open("go")
				synctest.Wait()
				if n := l.Tail(id); n < 8<<20 || n > 9<<20 {
					t.Fatalf("%d bytes are in memory", n)
				}
				if err := c.end(l, who, id); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if n := l.toys.atWork(); n > 0 {
					t.Error("the code goes on")
				}
				if n := l.Tail(id); n > 9<<20 {
					t.Errorf("%d bytes are in memory", n)
				}
				db.down.Store(false)
				gaps, how := l.ended(who, id)
				if gaps != 1 || how != c.want {
					t.Errorf("%d gaps, and the end is %q", gaps, how)
				}
			})
		})
	}
}

// ended follows an execution or a turn to its end and returns how that was, and how often something was left out.
func (l *life) ended(who auth.Principal, id string) (gaps int, how string) {
	l.t.Helper()
	if !ident.Valid(ident.Turn, id) {
		_, done := l.wait(who, id)
		return l.gaps(who, id), string(done.Outcome)
	}
	events, err := l.hear(who, id)
	for _, e := range events {
		if e.Gap {
			gaps++
		}
	}
	return gaps, problem.Of(err).Code
}
