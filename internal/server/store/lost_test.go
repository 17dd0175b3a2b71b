package store_test

import (
	"fmt"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/server/audit"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/store/pgtest"
	"cove/internal/server/stream"
)

// TestWhatIsRepeatedHappensOnce has the answers of commits be lost, and does again what callers do again then.
func TestWhatIsRepeatedHappensOnce(t *testing.T) {
	t.Parallel()
	way := pgtest.Over(t, pgtest.Database(t))
	once(t, open(t, way.Address), way)
}

// The answer of an SQLite commit is not lost on the way; what is repeated all the same happens once there, too.
func TestWhatIsRepeatedHappensOnceInAFile(t *testing.T) {
	t.Parallel()
	once(t, open(t, t.TempDir()+"/cove.db"), &pgtest.Lossy{})
}

func once(t *testing.T, s *store.Store, way *pgtest.Lossy) {
	ctx := t.Context()
	must(t, s.AddExecution(ctx, execution("exe_1", "")))
	must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project}))
	for i := range 3 {
		must(t, s.AddTurn(ctx, hub.Turn{ID: fmt.Sprint("trn_", i), Project: project, Conversation: "cnv_1", State: hub.TurnRunning}))
	}
	row := audit.Row{ID: ident.New(ident.Audit), At: at(0), Project: project, Action: "session.create"}
	used := hub.Usage{Day: "2026-11-21", Executions: 1, CPUSeconds: 0.5}
	firsts := 0
	for name, write := range map[string]func(n int64) error{
		"usage of a key": func(n int64) error {
			return s.AddUsage(ctx, project, "key_a", hub.Addition{By: "one", Number: n}, used)
		},
		"usage of none": func(n int64) error { return s.AddUsage(ctx, project, "", hub.Addition{By: "one", Number: n}, used) },
		"audit row":     func(int64) error { return s.AddRow(ctx, row) },
		"events":        func(int64) error { return s.AddEvents(ctx, []stream.Event{event("exe_1", 1, "exe_1", "{}")}) },
		"end": func(int64) error {
			e := execution("exe_1", "")
			e.State = hub.ExecutionState("ok")
			first, err := s.FinishExecution(ctx, e, []stream.Event{event("exe_1", 2, "exe_1", "{}")})
			if first {
				firsts++
			}
			return err
		},
	} {
		for n := range int64(3) {
			way.LoseEvery(1)
			if err := write(n); way.Address != "" {
				wantCode(t, err, "database_unavailable")
			} else {
				must(t, err)
			}
			way.LoseEvery(0)
			for range 2 {
				if err := write(n); err != nil {
					t.Errorf("%s, repeated: %v", name, err)
				}
			}
		}
	}
	want := 1
	if way.Address != "" {
		want = 0 // whoever was first was not told
	}
	if firsts != want {
		t.Errorf("%d ends were the first", firsts)
	}
	for key, want := range map[string]int64{"": 6, "key_a": 3} {
		days, err := s.Usage(ctx, project, key, used.Day, used.Day)
		if err != nil || len(days) != 1 || days[0].Executions != want || days[0].CPUSeconds != float64(want)/2 {
			t.Errorf("of %q there is %+v, %v; want %d", key, days, err, want)
		}
	}
	if rows, err := s.Rows(ctx, audit.Query{Project: project, Limit: 10}); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if events, err := s.Events(ctx, "exe_1", "", 0, 10, 1<<30); err != nil || len(events) != 2 {
		t.Errorf("%d events, %v", len(events), err)
	}
}
