package hub_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

// listen collects what is told until enough says so.
func (l *life) listen(who auth.Principal, enough func(all []hub.Change) bool) <-chan []hub.Change {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	changes, err := l.Changes(ctx, who)
	if err != nil {
		l.t.Fatal(err)
	}
	heard, began := make(chan []hub.Change, 1), make(chan struct{})
	go func() {
		defer cancel()
		var all []hub.Change
		close(began)
		for c, err := range changes {
			if err != nil {
				l.t.Errorf("ended with %v after %d changes", err, len(all))
				break
			}
			if all = append(all, c); enough(all) {
				break
			}
		}
		heard <- all
	}()
	<-began
	return heard
}

// TestChanges: who follows a project hears of its conversations, turns, sessions and executions, and of nobody else's.
func TestChanges(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, slices.Repeat([]line{{parts: []model.Part{model.TextDelta{Text: "42"}, model.Finish{Reason: model.FinishStop}}}}, 1000)...)
	last := func(kind hub.ChangeKind, state string) func([]hub.Change) bool {
		return func(all []hub.Change) bool {
			return slices.ContainsFunc(all, func(c hub.Change) bool { return c.Kind == kind && c.State == state })
		}
	}
	elsewhere := someone("prj_other")
	other, err := l.CreateConversation(t.Context(), elsewhere, hub.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	heard := l.listen(who, last(hub.ChangedConversation, "deleted"))
	turn := hub.Turn{}
	// The follower may not be there yet; what it misses then is told as what runs, or again.
	for len(heard) == 0 {
		if turn.ID == "" {
			turn = l.begin(who, hub.NewTurn{Input: input("?"), NoPython: true})
			if _, err := l.hear(who, turn.ID); err != nil {
				t.Fatal(err)
			}
		}
		c, err := l.CreateConversation(t.Context(), who, hub.NewConversation{Title: "x"})
		if err == nil {
			err = l.DeleteConversation(t.Context(), who, c.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, c := range <-heard {
		if c.ID == other.ID {
			t.Errorf("another project's %+v is told", c)
		}
	}

	// From here on the follower is there.
	ready := l.listen(who, func(all []hub.Change) bool {
		return last(hub.ChangedTurn, "completed")(all) && last(hub.ChangedSession, "deleted")(all) && last(hub.ChangedExecution, "ok")(all)
	})
	for len(ready) == 0 {
		s := l.session(who)
		l.start(who, s.ID, "count 1")
		if err := l.DeleteSession(t.Context(), who, s.ID); err != nil {
			t.Fatal(err)
		}
		begun := l.begin(who, hub.NewTurn{Input: input("?"), NoPython: true})
		_, _ = l.hear(who, begun.ID)
		time.Sleep(10 * time.Millisecond)
	}
}

// TestChangesOfASlowReader: a follower that takes nothing costs no more than a bounded list, and is told to look at everything.
func TestChangesOfASlowReader(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes, err := l.Changes(ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	more := func(n int) {
		for range n {
			made++
			if _, err := l.CreateConversation(t.Context(), who, hub.NewConversation{Title: fmt.Sprint(made)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	go func() { // until the follower has come
		for ctx.Err() == nil {
			if c, err := l.CreateConversation(ctx, who, hub.NewConversation{}); err == nil {
				_ = l.DeleteConversation(ctx, who, c.ID)
			}
		}
	}()
	first := true
	for c, err := range changes {
		if err != nil {
			t.Fatal(err)
		}
		if first {
			more(300)
			first = false
		}
		if c.Kind == hub.ChangedMuch {
			return
		}
	}
}

// countedLooks counts how often the database is asked for other processes.
type countedLooks struct {
	hub.Store
	looks *atomic.Int64
}

func (c countedLooks) Others(ctx context.Context, id string) (int, error) {
	c.looks.Add(1)
	return c.Store.Others(ctx, id)
}

// TestFollowersShareALook: many who follow, with nobody doing anything, ask the database no more often than one.
func TestFollowersShareALook(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	l := newLife(t, func(o *hub.Options) { o.Store = countedLooks{o.Store, &looks} })
	ctx, cancel := context.WithTimeout(t.Context(), testneeds.Patience)
	defer cancel()
	var all sync.WaitGroup
	began := time.Now()
	for range 20 {
		changes, err := l.Changes(ctx, someone(auth.LocalProject))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for c, err := range changes {
				if err == nil {
					t.Errorf("told of %+v", c)
				}
			}
		})
	}
	for looks.Load() < 2 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	all.Wait()
	took := time.Since(began)
	if n := looks.Load(); n < 2 || n > int64(took/(2*time.Second))+1 {
		t.Errorf("20 followers asked %d times in %v", n, took)
	}
}
