package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

// fill writes a record of every kind.
func fill(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.AddUser(ctx, auth.User{ID: "usr_a", Name: "ada", Admin: true, Created: at(0)}))
	must(t, s.AddProject(ctx, auth.Project{ID: project, Name: "local", Created: at(0)}))
	must(t, s.SetMember(ctx, auth.Membership{Project: project, User: "usr_a", Role: auth.Owner}))
	must(t, s.AddKey(ctx, auth.Key{ID: "key_a", Project: project, User: "usr_a", Hash: []byte{0, 1, 255}, Created: at(0)}))
	must(t, s.AddKey(ctx, auth.Key{ID: "key_b", Project: project, User: "usr_a", Created: at(1)}))
	must(t, s.AddSession(ctx, session("ses_1", 1<<30)))
	must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project}))
	must(t, s.AddTurn(ctx, turn("trn_1", "", 1)))
	e := execution("exe_1", "trn_1")
	must(t, s.AddExecution(ctx, e))
	e.State = "ok"
	_, err := s.FinishExecution(ctx, e, []stream.Event{event("trn_1", 1, "exe_1", `{"type":"stream","text":"数据 <&>"}`), event("trn_1", 2, "", "\x00\xff")})
	must(t, err)
	over := turn("trn_1", "", 1)
	over.State = hub.TurnCompleted
	_, err = s.FinishTurn(ctx, over, nil) // what its steps printed is indexed then
	must(t, err)
	must(t, s.AddFile(ctx, hub.File{ID: "fil_1", Project: project, Size: 1<<53 + 1, SHA256: "aa"}))
	must(t, s.AddUsage(ctx, project, "key_a", hub.Addition{}, hub.Usage{Day: "2026-11-21", CPUSeconds: 0.1}))
	must(t, s.AddRow(ctx, audit.Row{ID: "aud_1", At: at(0), Project: project, Action: "session.create", Outcome: "ok"}))
}

func backup(t *testing.T, s *store.Store) []byte {
	t.Helper()
	var out bytes.Buffer
	must(t, s.Backup(t.Context(), &out))
	return out.Bytes()
}

func plain(t *testing.T, archive []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

func packed(t *testing.T, text string) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(text))
	must(t, err)
	must(t, w.Close())
	return &out
}

// rows are the rows of a backup, in any order.
func rows(t *testing.T, archive []byte) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(plain(t, archive)), "\n")
	lines = lines[1 : len(lines)-1]
	slices.Sort(lines)
	return lines
}

func TestABackupGoesToEitherDatabase(t *testing.T) {
	t.Parallel()
	for from, source := range databases() {
		for to, target := range databases() {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				a, b := open(t, source(t)), open(t, target(t))
				fill(t, a)
				archive := backup(t, a)
				must(t, b.Restore(t.Context(), bytes.NewReader(archive)))
				if diff := cmp.Diff(rows(t, archive), rows(t, backup(t, b))); diff != "" {
					t.Error(diff)
				}
				n, err := b.Session(t.Context(), project, "ses_1")
				must(t, err)
				if diff := cmp.Diff(session("ses_1", 1<<30), n); diff != "" {
					t.Error(diff)
				}
				if l, err := b.Search(t.Context(), project, "数据", hub.Page{}); err != nil || len(l.Items) != 1 {
					t.Errorf("%d texts are found, %v", len(l.Items), err)
				}
				wantCode(t, b.Restore(t.Context(), bytes.NewReader(archive)), "database_not_empty")
			})
		}
	}
}

func TestADamagedBackupRestoresNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		source := open(t, filepath.Join(t.TempDir(), "cove.db"))
		fill(t, source)
		archive := backup(t, source)
		text := plain(t, archive)
		lines := strings.SplitAfter(text, "\n")
		keyRow := lines[slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, `["key_a"`) })]
		for name, c := range map[string]struct {
			archive io.Reader
			code    string
		}{
			"no archive":    {strings.NewReader("hello"), "backup_damaged"},
			"cut archive":   {bytes.NewReader(archive[:len(archive)*3/4]), "backup_damaged"},
			"no trailer":    {packed(t, strings.Join(lines[:len(lines)-2], "")), "backup_damaged"},
			"a row less":    {packed(t, strings.Join(slices.Delete(slices.Clone(lines), 3, 4), "")), "backup_damaged"},
			"another value": {packed(t, strings.Replace(text, `"ada"`, `"eve"`, 1)), "backup_damaged"},
			"a null":        {packed(t, strings.Replace(text, `"ada"`, `null`, 1)), "backup_damaged"},
			"more behind":   {packed(t, text+"{}\n"), "backup_damaged"},
			"SQL":           {packed(t, strings.Replace(text, `"name":"users"`, `"name":"users; DROP TABLE users"`, 1)), "backup_damaged"},
			"SQL in column": {packed(t, strings.Replace(text, `"admin int"`, `"admin) int"`, 1)), "backup_damaged"},
			"newer":         {packed(t, regexp.MustCompile(`"schema":\d+`).ReplaceAllString(text, `"schema":999`)), "backup_newer"},
			"a row twice":   {packed(t, sealed(strings.Replace(strings.Replace(text, `"rows":2`, `"rows":3`, 1), keyRow, keyRow+keyRow, 1))), "backup_damaged"},
			"no owner":      {packed(t, sealed(strings.Replace(text, `"usr_a","owner"`, `"usr_x","owner"`, 1))), "backup_damaged"},
			"more cells":    {packed(t, sealed(strings.Replace(text, `"ada"`, `"ada","eve"`, 1))), "backup_damaged"},
			"no number":     {packed(t, sealed(strings.Replace(text, `"ada",1`, `"ada",1.5`, 1))), "backup_damaged"},
			"other format":  {packed(t, strings.Replace(text, `cove-backup`, `tar`, 1)), "backup_damaged"},
		} {
			err := s.Restore(t.Context(), c.archive)
			if err == nil {
				t.Fatalf("%s: it was restored", name)
			}
			wantCode(t, err, c.code)
			if users, err := s.Users(t.Context()); err != nil || len(users) != 0 {
				t.Fatalf("%s: %d users are there, %v", name, len(users), err)
			}
		}
		must(t, s.Restore(t.Context(), packed(t, sealed(strings.Replace(text, `"ada"`, `"a\u0000da"`, 1)))))
		if users, err := s.Users(t.Context()); err != nil || len(users) != 1 || users[0].Name != "a\uFFFDda" {
			t.Errorf("the users are %+v, %v", users, err)
		}
	})
}

// sealed has a backup's last line say what is before it.
func sealed(text string) string {
	text = strings.TrimSuffix(text, "\n")
	rows := text[:strings.LastIndex(text, "\n")+1]
	return fmt.Sprintf("%s{\"lines\":%d,\"sha256\":\"%x\"}\n", rows, strings.Count(rows, "\n"), sha256.Sum256([]byte(rows)))
}

func TestABackupIsOneMomentAndStopsNobody(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					// Every transaction writes two rows: no backup may have one of them.
					id := fmt.Sprintf("%d_%d", i, n)
					if err := s.AddEvents(context.Background(), []stream.Event{event("a_"+id, 1, "", "{}"), event("b_"+id, 1, "", "{}")}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 3 {
			a, b := 0, 0
			for _, row := range rows(t, backup(t, s)) {
				a += strings.Count(row, `"a_`)
				b += strings.Count(row, `"b_`)
			}
			if a != b {
				t.Errorf("the backup has %d first and %d second events", a, b)
			}
		}
		cancel()
		writers.Wait()
	})
}

func TestABackupHasEveryColumn(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	names, err := store.TableNames(t.Context(), s)
	must(t, err)
	elsewhere := []string{"promises", "browsers", "sign_in_codes", "invitations", "connections", "uploads", "questions", "owners", "homes"} // what means nothing in another database
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(elsewhere, name) })
	backed := store.BackedUp()
	if len(names) != len(backed) {
		t.Errorf("there are the tables %q and %d are backed up", names, len(backed))
	}
	for _, name := range names {
		want, err := store.ColumnsOf(t.Context(), s, name)
		must(t, err)
		want = slices.DeleteFunc(want, func(column string) bool { return slices.Contains([]string{"owner", "home", "secrets"}, column) })
		slices.Sort(backed[name])
		if diff := cmp.Diff(want, backed[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
