package hub_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/llm/loop"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Where a limit is 0 nothing is limited by it.
func TestZeroIsNoLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, func(o *hub.Options) {
			d := hub.DefaultLimits()
			o.Limits = hub.Limits{Queue: d.Queue, SaveAfter: d.SaveAfter, SaveWithin: d.SaveWithin, Output: d.Output, File: d.File, Code: d.Code, Fetches: d.Fetches, Fetch: d.Fetch, Approval: d.Approval, Results: d.Results}
		})
		who, many := someone(auth.LocalProject), hub.DefaultLimits().Executions+2
		var sessions []hub.Session
		var running []hub.Execution
		for range many {
			s, err := l.CreateSession(t.Context(), who, hub.NewSession{Memory: 1 << 39})
			if err != nil {
				t.Fatal(err)
			}
			sessions, running = append(sessions, s), append(running, l.start(who, s.ID, "say on\nwait go"))
		}
		for _, e := range running {
			l.began(who, e.ID)
		}
		time.Sleep(time.Hour) // more than any default allows
		l.toys.open("go")
		for _, e := range running {
			l.wait(who, e.ID)
			if got, err := l.Execution(t.Context(), who, e.ID); err != nil || got.State != "ok" {
				t.Errorf("after hours an execution is %s (%s), %v", got.State, got.Message, err)
			}
		}
		if l.toys.most != many {
			t.Errorf("%d of %d executions ran at once", l.toys.most, many)
		}
		time.Sleep(time.Hour) // more than any default allows
		l.PauseIdle(t.Context())
		l.Sweep(t.Context())
		for _, s := range sessions {
			if got := l.state(who, s.ID); got != hub.SessionActive || s.Idle != 0 || !s.Expires.IsZero() {
				t.Errorf("a session that is never paused has idle %s and is %s", s.Idle, got)
			}
		}
	})
}

// Every limit says whether it may be 0, and none may be below that.
func TestEveryLimitSaysWhatZeroIs(t *testing.T) {
	t.Parallel()
	none := map[string]bool{"Sessions": true, "Memory": true, "Executions": true, "Idle": true, "Execution": true, "Life": true,
		"Queue": false, "SaveAfter": false, "SaveWithin": false, "Output": false, "File": false, "Code": false, "Fetches": false, "Fetch": false, "Approval": false, "Results": false, "Stream": true, "Points": true, "PointRoom": true, "Volume": true}
	for n := range reflect.TypeFor[hub.Limits]().NumField() {
		name := reflect.TypeFor[hub.Limits]().Field(n).Name
		may, told := none[name]
		if name == "Project" || name == "Key" {
			continue // a Quota's fields may all be 0
		}
		if !told {
			t.Errorf("what 0 is of the limit %s is not tested", name)
		}
		for value, holds := range map[int64]bool{0: may, -1: false, 1: true} {
			l := hub.DefaultLimits()
			reflect.ValueOf(&l).Elem().Field(n).SetInt(value)
			if _, err := hub.New(hub.Options{Limits: l, Turns: loop.DefaultLimits()}); (err == nil) != holds {
				t.Errorf("%s: %d: %v", name, value, err)
			} else if err != nil {
				fails(t, err, "config_invalid")
			}
		}
	}
	if _, err := hub.New(hub.Options{Limits: hub.DefaultLimits()}); err == nil {
		t.Error("a hub is made whose turns have no bound of steps")
	}
}
