package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/store/pgtest"
	"cove/internal/server/stream"
	"cove/internal/testkit/testneeds"
)

// childDatabase has the test binary be the process that is killed: it writes to that database and says what was acknowledged.
const childDatabase = "COVE_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if database := os.Getenv(childDatabase); database != "" {
		writeForEver(database)
		return
	}
	os.Exit(m.Run())
}

func writeForEver(database string) {
	s, err := store.Open(context.Background(), store.Options{Database: database})
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	race(20, func(i int) {
		for n := int64(1); ; n++ {
			name := fmt.Sprintf("exe_%d_%d", os.Getpid(), i)
			if err := s.AddEvents(context.Background(), []stream.Event{event(name, n, name, "{}")}); err != nil {
				fmt.Println("write:", err)
				os.Exit(1)
			}
			fmt.Printf("%s %d\n", name, n) // one write to the pipe, which outlives this process
		}
	})
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := database(t)
			acknowledged := map[string]int64{}
			for range 3 {
				for stream, n := range killedWriter(t, address, 300) {
					acknowledged[stream] = n
				}
			}
			s := open(t, address)
			total := int64(0)
			for stream, n := range acknowledged {
				events, err := s.Events(t.Context(), stream, "", 0, 1<<20, 1<<30)
				must(t, err)
				if int64(len(events)) < n {
					t.Errorf("%s: %d events were acknowledged, %d are there", stream, n, len(events))
				}
				total += n
			}
			if total < 900 {
				t.Errorf("only %d writes were made", total)
			}
		})
	}
}

// killedWriter has a process write until it acknowledged so many, kills it, and returns what it acknowledged.
func killedWriter(t *testing.T, database string, enough int) map[string]int64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDatabase+"="+database)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	acknowledged := map[string]int64{}
	lines := bufio.NewScanner(out)
	for seen := 0; lines.Scan(); seen++ {
		if seen == enough {
			must(t, cmd.Process.Kill()) // what is in the pipe is read on
		}
		var stream string
		var n int64
		if _, err := fmt.Sscan(lines.Text(), &stream, &n); err != nil {
			if seen < enough {
				t.Fatalf("the writer says %q", lines.Text())
			}
			continue // the kill cut the line
		}
		acknowledged[stream] = n
	}
	_ = cmd.Wait()
	return acknowledged
}

func TestAMigrationMayBeKilled(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range 4 {
				address := database(t)
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childDatabase+"="+address)
				must(t, cmd.Start())
				time.Sleep(time.Duration(5+12*i) * time.Millisecond) // wherever it is then
				must(t, cmd.Process.Kill())
				_ = cmd.Wait()
				s := open(t, address)
				must(t, s.AddSession(t.Context(), session("ses_1", 0)))
			}
		})
	}
}

func TestDamageIsRefusedInWords(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	good := filepath.Join(folder, "good.db")
	s, err := store.Open(t.Context(), store.Options{Database: good})
	must(t, err)
	for i := range 300 {
		must(t, s.AddSession(t.Context(), session(fmt.Sprint("ses_", i), i)))
	}
	must(t, s.Close())
	content, err := os.ReadFile(good)
	must(t, err)
	zeros := bytes.Clone(content)
	clear(zeros[len(zeros)/2 : len(zeros)/2+8192])
	for name, damaged := range map[string][]byte{
		"text":  []byte(strings.Repeat("this is not a database. ", 1000)),
		"head":  append([]byte("XQLite"), content[6:]...),
		"torn":  content[:len(content)/2],
		"zeros": zeros,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "cove.db")
			must(t, os.WriteFile(path, damaged, 0o600))
			s, err := store.Open(t.Context(), store.Options{Database: path})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			wantCode(t, err, "database_corrupt")
			if !strings.Contains(problem.Of(err).Hint, "cove restore") {
				t.Errorf("the hint is %q", problem.Of(err).Hint)
			}
		})
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := database(t)
			must(t, store.PretendNewer(t.Context(), open(t, address)))
			_, err := store.Open(t.Context(), store.Options{Database: address})
			wantCode(t, err, "database_newer")
		})
	}
}

func TestAFullDiskFailsInWordsAndPasses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	must(t, s.AddSession(ctx, session("ses_1", 0)))
	pages, err := s.Pages(ctx)
	must(t, err)
	must(t, s.Write(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages+4)))
	big := event("exe_1", 1, "exe_1", strings.Repeat("x", 100_000))
	wantCode(t, s.AddEvents(ctx, []stream.Event{big}), "disk_full")
	// Others that wait beside a write that does not fit fail with it or are written, and are told which.
	race(20, func(i int) {
		e := big
		if e.Seq = int64(i + 2); i%2 == 0 {
			e.Stream, e.Body = "exe_2", []byte("{}")
		}
		err := s.AddEvents(ctx, []stream.Event{e})
		got, readErr := s.Events(ctx, e.Stream, "", e.Seq-1, 1, 1<<30)
		if readErr != nil {
			t.Error(readErr)
		}
		if written := len(got) == 1 && got[0].Seq == e.Seq; written != (err == nil) {
			t.Errorf("event %d is written: %v, and the error is %v", e.Seq, written, err)
		}
	})
	if _, err := s.Session(ctx, project, "ses_1"); err != nil {
		t.Errorf("reading fails: %v", err)
	}
	must(t, s.Write(ctx, "PRAGMA max_page_count = 1000000"))
	must(t, s.AddEvents(ctx, []stream.Event{big}))
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new folder", "a?b#c%20d&e.db")
	s := open(t, path)
	must(t, s.AddSession(t.Context(), session("ses_1", 0)))
	for name, want := range map[string]os.FileMode{path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, filepath.Dir(path): 0o700} {
		about, err := os.Stat(name)
		must(t, err)
		if about.Mode().Perm() != want {
			t.Errorf("%s has the rights %o", name, about.Mode().Perm())
		}
	}
}

func TestBadAddressesAreRefusedWithoutTheirPassword(t *testing.T) {
	t.Parallel()
	for database, code := range map[string]string{
		"":                                     "database_unnamed",
		"postgres://u:secret@h:port/x":         "bad_database",
		"postgres://u:secret@127.0.0.1:1/none": "database_unavailable",
		"/proc/none/cove.db":                   "database_unavailable",
	} {
		_, err := store.Open(t.Context(), store.Options{Database: database})
		wantCode(t, err, code)
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

func TestALockedRowDoesNotHang(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	address := pgtest.Database(t)
	holder, s := open(t, address), open(t, hasty(t, address))
	must(t, holder.AddSession(ctx, session("ses_1", 0)))
	held, release, done := make(chan bool), make(chan bool), make(chan error)
	go func() {
		_, err := holder.UpdateSession(ctx, project, "ses_1", func(*hub.Session) error {
			held <- true
			<-release
			return nil
		})
		done <- err
	}()
	<-held
	_, err := s.UpdateSession(ctx, project, "ses_1", func(*hub.Session) error { return nil })
	wantCode(t, err, "database_unavailable")
	if _, err := s.Session(ctx, project, "ses_1"); err != nil {
		t.Errorf("reading waits for writing: %v", err)
	}
	release <- true
	must(t, <-done)
	_, err = s.UpdateSession(ctx, project, "ses_1", func(*hub.Session) error { return nil })
	must(t, err)
}

// hasty is the address of a database with little patience.
func hasty(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	query := u.Query()
	query.Set("lock_timeout", "50")
	u.RawQuery = query.Encode()
	return u.String()
}

func TestPostgresMayGoAway(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster := pgtest.New(t)
	s := open(t, cluster.Database(t))
	must(t, s.AddSession(ctx, session("ses_1", 0)))
	written := make(chan int, 1)
	stop := make(chan struct{})
	go func() {
		n := 0
		defer func() { written <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			err := s.AddEvents(ctx, []stream.Event{event("exe_1", int64(n+1), "exe_1", "{}")})
			switch {
			case err == nil:
				n++
			case problem.Of(err).Code != "database_unavailable" || problem.Of(err).Hint == "":
				t.Errorf("a write failed with %v", err)
				return
			}
		}
	}()
	for range 2 {
		eventually(t, func() bool { return s.AddSession(ctx, session(fmt.Sprint("ses_", time.Now().UnixNano()), 0)) == nil })
		cluster.Stop(t)
		_, err := s.Session(ctx, project, "ses_1")
		wantCode(t, err, "database_unavailable")
		wantCode(t, s.Ping(ctx), "database_unavailable")
		_, err = s.UpdateSession(ctx, project, "ses_1", func(*hub.Session) error { return nil })
		wantCode(t, err, "database_unavailable")
		cluster.Start(t)
		if _, err := s.Session(ctx, project, "ses_1"); err != nil {
			t.Errorf("after the database came back: %v", err)
		}
	}
	close(stop)
	n := <-written
	events, err := s.Events(ctx, "exe_1", "", 0, 1<<20, 1<<30)
	must(t, err)
	if len(events) < n {
		t.Errorf("%d events were acknowledged, %d are there", n, len(events))
	}
}

// TestAFrozenPostgresHoldsNobodyForEver: every operation ends with a problem that may be repeated, also those that wait for a connection, and what failed
// left nothing behind.
func TestAFrozenPostgresHoldsNobodyForEver(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	ctx := t.Context()
	cluster := pgtest.New(t)
	s := open(t, cluster.Database(t)+"&connect_timeout=1") // in seconds
	must(t, s.AddSession(ctx, session("ses_0", 0)))
	store.Hurry(s, 3*time.Second)
	held, release := make(chan bool), make(chan bool)
	amid := make(chan error)
	go func() { // a transaction that is in the middle of its work
		_, err := s.UpdateSession(ctx, project, "ses_0", func(n *hub.Session) error {
			held <- true
			<-release
			n.Name = "changed"
			return nil
		})
		amid <- err
	}()
	<-held
	cluster.Freeze(t)
	race(60, func(i int) { // more than there are connections
		id := fmt.Sprint("ses_", i+1)
		var err error
		switch i % 5 {
		case 0:
			err = s.AddSession(ctx, session(id, i))
		case 1:
			_, err = s.Session(ctx, project, "ses_0")
		case 2:
			_, err = s.Search(ctx, project, "churn", hub.Page{})
		case 3:
			_, err = s.FinishExecution(ctx, execution(id, ""), nil)
		case 4:
			err = s.Alone(ctx, func(context.Context, auth.Store) error { return nil })
		}
		if p := problem.Of(err); err == nil || p.Code != "database_unavailable" || p.Kind != problem.Unavailable || p.Hint == "" {
			t.Errorf("operation %d ended with %v", i, err)
		}
	})
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Session(gone, project, "ses_0"); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up was told %v", err)
	}
	release <- true
	wantCode(t, <-amid, "database_unavailable")
	cluster.Thaw(t)
	store.Hurry(s, 20*time.Second)
	n, err := s.Session(ctx, project, "ses_0")
	must(t, err)
	l, err := s.Sessions(ctx, project, hub.SessionFilter{}, hub.Page{})
	must(t, err)
	if n.Name == "changed" || len(l.Items) != 1 {
		t.Errorf("what failed was done: the name is %q, there are %d sessions", n.Name, len(l.Items))
	}
	must(t, s.AddSession(ctx, session("ses_1", 1)))
}

func TestAnUnreachablePostgresIsSaidInALine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:secret@localhost:1/none":                 "localhost",
		"postgres://u:secret@127.0.0.1:1,127.0.0.1:2/none":     "127.0.0.1:2",
		"postgres:///none?user=u&password=secret&host=/no/dir": "/no/dir",
	} {
		_, err := store.Open(t.Context(), store.Options{Database: address})
		wantCode(t, err, "database_unavailable")
		text := problem.Of(err).Error()
		if strings.ContainsAny(text, "\n\t") || !strings.Contains(text, want) || strings.Contains(text, "secret") || strings.Count(text, "127.0.0.1:1 ") > 1 {
			t.Errorf("%s is told as %q", address, text)
		}
		if hint := problem.Of(err).Hint; !strings.Contains(hint, "setting database") {
			t.Errorf("the hint is %q", hint)
		}
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testneeds.Patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to be")
		}
	}
}
