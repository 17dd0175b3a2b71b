package hub_test

import (
	"context"
	"testing"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
)

// slowEnds is a database that has stored the end of a turn for a while before it says so.
type slowEnds struct {
	hub.Store
	stored, say chan struct{}
}

func (s slowEnds) FinishTurn(ctx context.Context, t hub.Turn, last []stream.Event) (bool, error) {
	done, err := s.Store.FinishTurn(ctx, t, last)
	s.stored <- struct{}{}
	<-s.say
	return done, err
}

// TestATurnBeginsWhenTheEndOfTheLastIsStored: who reads in the database that a turn has ended may begin the next one.
func TestATurnBeginsWhenTheEndOfTheLastIsStored(t *testing.T) {
	t.Parallel()
	ends := slowEnds{stored: make(chan struct{}, 2), say: make(chan struct{})}
	v := &voice{t: t, lines: []line{words("One."), words("Two.")}}
	l := newLife(t, func(o *hub.Options) { ends.Store = o.Store; o.Store, o.Models = ends, v })
	who := someone(auth.LocalProject)
	first := l.begin(who, hub.NewTurn{Input: input("one")})
	<-ends.stored
	begun := make(chan error)
	go func() {
		_, err := l.StartTurn(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, Input: input("two")})
		begun <- err
	}()
	select {
	case err := <-begun:
		close(ends.say)
		t.Fatalf("before the first one has ended: %v", err)
	case <-time.After(50 * time.Millisecond): // it is the same when it comes later
	}
	close(ends.say)
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	<-ends.stored
}
