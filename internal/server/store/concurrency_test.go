package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

// race runs a function in many goroutines at once.
func race(n int, run func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			run(i)
		})
	}
	close(begin)
	all.Wait()
}

func TestThereIsOneEnd(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddExecution(ctx, execution("exe_1", "")))
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project}))
		must(t, s.AddTurn(ctx, turn("trn_1", "", 0)))
		var executions, turns atomic.Int64
		var winner atomic.Value
		race(50, func(i int) {
			e := execution("exe_1", "")
			e.State, e.Message, e.ExitCode = "error", fmt.Sprint("end ", i), i
			first, err := s.FinishExecution(ctx, e, []stream.Event{event("exe_1", int64(i+1), "exe_1", "{}")})
			if err != nil {
				t.Error(err)
			}
			if first {
				executions.Add(1)
				winner.Store(e.Message)
			}
			n := turn("trn_1", "", 0)
			n.State = hub.TurnCompleted
			if first, err = s.FinishTurn(ctx, n, nil); err != nil {
				t.Error(err)
			} else if first {
				turns.Add(1)
			}
		})
		if executions.Load() != 1 || turns.Load() != 1 {
			t.Fatalf("%d ends of an execution and %d of a turn are the first", executions.Load(), turns.Load())
		}
		e, err := s.Execution(ctx, project, "exe_1")
		must(t, err)
		events, err := s.Events(ctx, "exe_1", "", 0, 100, 1<<30)
		must(t, err)
		if e.Message != winner.Load() || len(events) != 1 || events[0].Seq != int64(e.ExitCode+1) {
			t.Errorf("the end is %q with events %+v, and %q was told that it is first", e.Message, events, winner.Load())
		}
	})
}

func TestChangesDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		n := session("ses_1", 0)
		n.Executions = 0
		must(t, s.AddSession(ctx, n))
		race(40, func(i int) {
			_, err := s.UpdateSession(ctx, project, "ses_1", func(n *hub.Session) error {
				n.Executions++
				n.Metadata[fmt.Sprint("k", i)] = "v"
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if err := s.AddUsage(ctx, project, []string{"key_a", "key_b"}[i%2], hub.Addition{}, hub.Usage{Day: "2026-11-21", Executions: 1}); err != nil {
				t.Error(err)
			}
		})
		got, err := s.Session(ctx, project, "ses_1")
		must(t, err)
		days, err := s.Usage(ctx, project, "", "2026-11-21", "2026-11-21")
		must(t, err)
		if got.Executions != 40 || len(got.Metadata) != 42 || days[0].Executions != 40 {
			t.Errorf("%d executions, %d metadata, %d in the usage after 40 changes", got.Executions, len(got.Metadata), days[0].Executions)
		}
	})
}

func TestAFailedWriteTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddSession(ctx, session("ses_0", 0)))
		no := errors.New("no")
		race(60, func(i int) {
			switch i % 3 {
			case 0:
				if err := s.AddEvents(ctx, []stream.Event{event("exe_1", int64(i), "", "{}")}); err != nil {
					t.Error(err)
				}
			case 1:
				if _, err := s.UpdateSession(ctx, project, "ses_0", func(*hub.Session) error { return no }); !errors.Is(err, no) {
					t.Error(err)
				}
			case 2:
				defer func() {
					if recover() != "a fault" {
						t.Error("the fault of a caller did not come back to it")
					}
				}()
				_, _ = s.UpdateSession(ctx, project, "ses_0", func(*hub.Session) error { panic("a fault") })
			}
		})
		events, err := s.Events(ctx, "exe_1", "", -1, 100, 1<<30)
		must(t, err)
		if len(events) != 20 {
			t.Errorf("%d of 20 events were written", len(events))
		}
	})
}

func TestTwoProcessesShareAFile(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := database(t)
			stores := make([]*store.Store, 4)
			race(len(stores), func(i int) { // all of them find an empty database and migrate it
				s, err := store.Open(t.Context(), store.Options{Database: address})
				if err != nil {
					t.Error(err)
					return
				}
				stores[i] = s
			})
			if t.Failed() {
				return
			}
			race(len(stores)*5, func(i int) {
				if err := stores[i%len(stores)].AddSession(t.Context(), session(fmt.Sprint("ses_", i), i)); err != nil {
					t.Error(err)
				}
			})
			l, err := stores[0].Sessions(t.Context(), project, hub.SessionFilter{}, hub.Page{Limit: 100})
			must(t, err)
			if len(l.Items) != 20 {
				t.Errorf("%d of 20 sessions are there", len(l.Items))
			}
			for _, s := range stores {
				must(t, s.Close())
			}
		})
	}
}

func TestAWriteWaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cove.db")
	s, other := open(t, path), open(t, path)
	hold, err := other.Writing().BeginTx(t.Context(), nil)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- s.AddSession(context.Background(), session("ses_1", 0)) }()
	given, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	// This one waits behind the other and gives up, which leaves nothing behind.
	if err := s.AddSession(given, session("ses_2", 0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who gave up was told %v", err)
	}
	if _, err := s.Sessions(t.Context(), project, hub.SessionFilter{}, hub.Page{}); err != nil {
		t.Errorf("reading waits for writing: %v", err)
	}
	must(t, hold.Rollback())
	must(t, <-done)
	_, err = s.Session(t.Context(), project, "ses_2")
	wantCode(t, err, "session_not_found")
}

func TestAClosedStoreRefuses(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		s, err := store.Open(t.Context(), store.Options{Database: database(t)})
		must(t, err)
		must(t, s.Close())
		if err := s.AddSession(t.Context(), session("ses_1", 0)); problem.Of(err).Code != "database_unavailable" {
			t.Errorf("%s: writing ended with %v", name, err)
		}
		if _, err := s.Session(t.Context(), project, "ses_1"); problem.Of(err).Code != "database_unavailable" {
			t.Errorf("%s: reading ended with %v", name, err)
		}
	}
}

// TestPagesMissNothing lists sessions that were made in the same instant, while others are being made in it.
func TestPagesMissNothing(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := database(t)
			s, other := open(t, address), open(t, address)
			const before = 60
			for i := range before {
				must(t, s.AddSession(t.Context(), session(fmt.Sprintf("ses_%02d", i), 0)))
			}
			race(3, func(i int) {
				for k := range 20 {
					if i == 2 {
						break
					}
					if err := other.AddSession(t.Context(), session(fmt.Sprintf("ses_%02d_%d", 3*k, i), 0)); err != nil {
						t.Error(err)
					}
				}
				for _, oldest := range []bool{false, true} {
					seen, old := map[string]bool{}, 0
					for p := (hub.Page{Limit: 7, Oldest: oldest}); ; {
						l, err := s.Sessions(t.Context(), project, hub.SessionFilter{}, p)
						if err != nil {
							t.Error(err)
							return
						}
						for _, n := range l.Items {
							if seen[n.ID] {
								t.Errorf("%s is listed twice", n.ID)
							}
							if seen[n.ID] = true; len(n.ID) == len("ses_00") {
								old++
							}
						}
						if p.After = l.Next; p.After == "" {
							break
						}
					}
					if old != before {
						t.Errorf("%d of %d sessions are listed", old, before)
					}
				}
			})
		})
	}
}

// TestTurnsStayATree has two processes delete turns while they and others go on from them and end.
func TestTurnsStayATree(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, address := t.Context(), database(t)
			stores := []*store.Store{open(t, address), open(t, address)}
			must(t, stores[0].AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project}))
			const chain = 24
			for i := range chain {
				parent := ""
				if i > 0 {
					parent = fmt.Sprint("trn_", i-1)
				}
				must(t, stores[0].AddTurn(ctx, turn(fmt.Sprint("trn_", i), parent, i)))
			}
			race(3*chain, func(i int) {
				s, id := stores[i%2], fmt.Sprint("trn_", i/3)
				var err error
				switch {
				case i%3 == 0 && i > 0:
					err = s.DeleteTurn(ctx, project, id)
				case i%3 == 1:
					err = s.AddTurn(ctx, turn(id+"_more", id, chain+i))
				default:
					over := turn(id, "", 0)
					over.State = hub.TurnCompleted
					_, err = s.FinishTurn(ctx, over, nil)
				}
				if err != nil && problem.Of(err).Code != "turn_not_found" {
					t.Error(err)
				}
			})
			l, err := stores[0].Turns(ctx, project, "cnv_1", hub.Page{Limit: 100})
			must(t, err)
			c, err := stores[0].Conversation(ctx, project, "cnv_1")
			must(t, err)
			if c.Turns != len(l.Items) {
				t.Errorf("the conversation counts %d turns and has %d", c.Turns, len(l.Items))
			}
			for _, n := range l.Items {
				branch, err := stores[0].Branch(ctx, project, n.ID)
				must(t, err)
				if branch[0].ID != "trn_0" {
					t.Errorf("%s goes back to %s, whose parent %s is gone", n.ID, branch[0].ID, branch[0].Parent)
				}
			}
			must(t, stores[0].AddTurn(ctx, turn("trn_last", "trn_0", 999)))
			wantCode(t, stores[0].AddTurn(ctx, turn("trn_none", "trn_gone", 999)), "turn_not_found")
		})
	}
}

// BenchmarkWriters measures what small writes cost when a hundred are made at once.
func BenchmarkWriters(b *testing.B) {
	for name, database := range databases() {
		for _, writers := range []int{1, 100} {
			b.Run(fmt.Sprint(name, "/", writers), func(b *testing.B) {
				s := open(b, database(b))
				var seq atomic.Int64
				began := time.Now()
				b.ResetTimer()
				race(writers, func(int) {
					for n := seq.Add(1); n <= int64(b.N); n = seq.Add(1) {
						if err := s.AddEvents(b.Context(), []stream.Event{event("exe_1", n, "exe_1", `{"type":"stream","name":"stdout","text":"hello\n"}`)}); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "writes/s")
			})
		}
	}
}

// BenchmarkFinish measures the end of an execution that printed a lot, all of which is put into the index.
func BenchmarkFinish(b *testing.B) {
	for name, database := range databases() {
		for _, words := range []int{10, 5_000} {
			b.Run(fmt.Sprint(name, "/", words), func(b *testing.B) {
				s := open(b, database(b))
				var printed strings.Builder
				for i := range words {
					fmt.Fprint(&printed, i*7919, " ")
				}
				body := fmt.Sprintf(`{"type":"stream","text":%q}`, printed.String())
				for n := 0; b.Loop(); n++ {
					e := execution(fmt.Sprint("exe_", n), "")
					must(b, s.AddExecution(b.Context(), e))
					e.State = "ok"
					_, err := s.FinishExecution(b.Context(), e, []stream.Event{event(e.ID, 1, e.ID, body)})
					must(b, err)
				}
			})
		}
	}
}
