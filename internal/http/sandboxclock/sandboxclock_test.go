package sandboxclock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"cove/internal/http/sandboxclock"
)

func TestClocks(t *testing.T) {
	t.Parallel()
	ended := make(chan string, 10)
	c := &sandboxclock.Clocks{End: func(session string) { ended <- session }}
	c.Set("never", time.Time{})
	c.Set("later", time.Now().Add(time.Hour))
	c.Know("later", time.Now()) // it has one
	c.Set("now", time.Now())
	if got := <-ended; got != "now" {
		t.Errorf("%s has ended", got)
	}
	c.Know("new", time.Now())
	if got := <-ended; got != "new" {
		t.Errorf("%s has ended", got)
	}
	c.Ring("later")
	if got := <-ended; got != "later" {
		t.Errorf("%s has ended", got)
	}
	known := c.Known()
	slices.Sort(known)
	if !slices.Equal(known, []string{"later", "never", "new", "now"}) {
		t.Errorf("known are %v", known)
	}
}

func TestRequestsEndWithTheirSandbox(t *testing.T) {
	t.Parallel()
	c := &sandboxclock.Clocks{}
	if !c.Seen("a").IsZero() {
		t.Error("it was seen")
	}
	_, quiet := c.Enter(t.Context(), "a", true)
	quiet()
	if !c.Seen("a").IsZero() {
		t.Error("what is quiet counts as a use")
	}
	ctx, leave := c.Enter(t.Context(), "a", false)
	if time.Since(c.Seen("a")) > time.Minute {
		t.Error("it is in use and was not seen")
	}
	leave()
	left := c.Seen("a")
	if left.IsZero() || !left.Equal(c.Seen("a")) || ctx.Err() == nil {
		t.Errorf("left at %v", left)
	}
	why := errors.New("why")
	ctx, leave = c.Enter(t.Context(), "a", false)
	defer leave()
	c.Stop("a", why)
	if !errors.Is(context.Cause(ctx), why) || len(c.Known()) != 0 {
		t.Errorf("%v, known are %v", context.Cause(ctx), c.Known())
	}
	c.Stop("a", why)
}

func TestChangesWaitForEachOther(t *testing.T) {
	t.Parallel()
	c := &sandboxclock.Clocks{}
	release := c.Alone("a")
	second := make(chan struct{})
	go func() {
		defer c.Alone("a")()
		close(second)
	}()
	c.Alone("b")() // another one's do not
	select {
	case <-second:
		t.Error("two have changed it at a time")
	case <-time.After(50 * time.Millisecond):
	}
	release()
	<-second
}
