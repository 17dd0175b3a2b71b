package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/code/screen"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/llm/model"
	"cove/internal/server/audit"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

// canary is what users write in tests of encryption: as a word, so that the index would have it.
const canary = "canaryxq7"

// fillCanary writes it wherever users' content goes, and returns the session and the turn as they are read.
func fillCanary(t testing.TB, s *store.Store) (hub.Session, hub.Turn) {
	t.Helper()
	ctx := context.Background()
	n := session("ses_1", 0)
	n.Name, n.Metadata, n.Reason = canary+" name", map[string]string{canary: canary}, canary
	n.Rollback = &hub.Rollback{Files: []string{canary + ".csv"}}
	must(t, s.AddVolume(ctx, hub.Volume{ID: "vol_1", Project: project, Name: canary}, 10))
	must(t, s.AddSession(ctx, n))
	must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Title: canary, Metadata: map[string]string{"a": canary}}))
	q := turn("trn_1", "", 1)
	q.Prompt, q.Foreign = "what is "+canary, json.RawMessage(`{"x":"`+canary+`"}`)
	q.Files = []hub.TurnFile{{ID: "fil_1", Name: canary + ".csv"}}
	must(t, s.AddTurn(ctx, q))
	must(t, s.SetWaiting(ctx, project, "trn_1", &hub.Waiting{Code: canary}))
	e := execution("exe_1", "trn_1")
	e.Code, e.Cautions = "print('"+canary+"')", []screen.Finding{{Rule: canary}}
	must(t, s.AddExecution(ctx, e))
	e.State, e.Message = "error", canary
	_, err := s.FinishExecution(ctx, e, []stream.Event{event("trn_1", 1, "exe_1", `{"type":"stream","text":"printed `+canary+`"}`)})
	must(t, err)
	q.State, q.Answer, q.Reason = hub.TurnCompleted, "it is "+canary, canary
	q.Messages = []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: canary}}}}
	_, err = s.FinishTurn(ctx, q, nil)
	must(t, err)
	must(t, s.AddFile(ctx, hub.File{ID: "fil_1", Project: project, Name: canary + ".csv", Size: 1, SHA256: "aa"}))
	must(t, s.AddUpload(ctx, hub.Upload{ID: "upl_1", Project: project, Name: canary, Size: 5, Created: time.Now(), Expires: time.Now().Add(time.Hour)}, hub.UploadBounds{Key: 9, Project: 9, Server: 9}))
	must(t, s.AddShare(ctx, hub.Share{ID: "shr_1", Hash: "h", Project: project, Conversation: "cnv_1", Title: canary}, []byte(canary), 10, 1<<20))
	must(t, s.AddLink(ctx, hub.SessionLink{ID: "lnk_1", Hash: "h", Project: project, Session: "ses_1", Purpose: "read", Path: canary}, 10))
	_, err = s.SetConnection(ctx, "openai", func(c *hub.Connection) error { c.Key = "sk-" + canary; return nil })
	must(t, err)
	must(t, s.AddRow(ctx, audit.Row{ID: "aud_1", At: at(0), Project: project, Action: "session.file.write", Outcome: "ok", Detail: canary + ".csv"}))
	got, err := s.Session(ctx, project, "ses_1")
	must(t, err)
	read, err := s.Turn(ctx, project, "trn_1")
	must(t, err)
	return got, read
}

// holders are the files below a folder that have the canary.
func holders(t testing.TB, folder string) (found []string) {
	t.Helper()
	must(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(canary)) {
			found = append(found, filepath.Base(path))
		}
		return err
	}))
	return found
}

// wantSame reads everything back that fillCanary wrote.
func wantSame(t testing.TB, s *store.Store, n hub.Session, q hub.Turn) {
	t.Helper()
	ctx := context.Background()
	got, err := s.Session(ctx, project, "ses_1")
	must(t, err)
	read, err := s.Turn(ctx, project, "trn_1")
	must(t, err)
	if diff := cmp.Diff(n, got) + cmp.Diff(q, read); diff != "" {
		t.Error(diff)
	}
	for name, f := range map[string]hub.SessionFilter{"name": {Name: canary}, "metadata": {Meta: map[string]string{canary: canary}}} {
		if l, err := s.Sessions(ctx, project, f, hub.Page{}); err != nil || len(l.Items) != 1 {
			t.Errorf("by its %s %d sessions are found, %v", name, len(l.Items), err)
		}
	}
	for _, query := range []string{canary, "canar", "printed " + canary} {
		if l, err := s.Search(ctx, project, query, hub.Page{}); err != nil || len(l.Items) == 0 {
			t.Errorf("%q is not found, %v", query, err)
		}
	}
	if l, err := s.Search(ctx, project, "absent", hub.Page{}); err != nil || len(l.Items) != 0 {
		t.Errorf("%d texts have a word that none has, %v", len(l.Items), err)
	}
	v, err := s.Volume(ctx, project, canary)
	if err != nil || v.Name != canary {
		t.Errorf("volume %q, %v", v.Name, err)
	}
	wantCode(t, s.AddVolume(ctx, hub.Volume{ID: "vol_2", Project: project, Name: canary}, 10), "volume_exists")
	if c, err := s.Connections(ctx); err != nil || len(c) != 1 || c[0].Key != "sk-"+canary {
		t.Errorf("connections %v, %v", c, err)
	}
	if _, document, err := s.SharedDocument(ctx, "h"); err != nil || string(document) != canary {
		t.Errorf("share %q, %v", document, err)
	}
	if events, err := s.Events(ctx, "trn_1", "", 0, 10, 1<<30); err != nil || len(events) != 1 || !strings.Contains(string(events[0].Body), canary) {
		t.Errorf("events %v, %v", events, err)
	}
}

func TestNoContentIsInAnEncryptedDatabase(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, keys := database(t), operatorsKeys(t)
			s := opened(t, store.Options{Database: at, Keys: keys})
			n, q := fillCanary(t, s)
			wantSame(t, s, n, q)
			if text := plain(t, backup(t, s)); strings.Contains(text, canary) {
				i := strings.Index(text, canary)
				t.Errorf("a backup has it: %.200s", text[max(0, i-150):])
			}
			if name == "sqlite" {
				if found := holders(t, filepath.Dir(at)); len(found) > 0 {
					t.Errorf("%v have it", found)
				}
			}
			// The same without a key is what makes the search above mean something.
			open := opened(t, store.Options{Database: database(t)})
			fillCanary(t, open)
			if !strings.Contains(plain(t, backup(t, open)), canary) {
				t.Error("a backup of an open database does not have it either")
			}

			_, err := store.Open(t.Context(), store.Options{Database: at})
			wantCode(t, err, "encryption_key_missing")
			if !strings.Contains(err.Error(), keys[0].ID) {
				t.Errorf("the key is not named: %v", err)
			}
			_, err = store.Open(t.Context(), store.Options{Database: at, Keys: operatorsKeys(t)})
			wantCode(t, err, "encryption_key_missing")
		})
	}
}

func TestADatabaseIsEncryptedLater(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, keys := database(t), operatorsKeys(t)
			s, err := store.Open(t.Context(), store.Options{Database: at})
			must(t, err)
			n, q := fillCanary(t, s)
			must(t, s.Close())
			o := store.Options{Database: at, Keys: keys}
			_, err = store.Open(t.Context(), o)
			wantCode(t, err, "encryption_unfinished")

			ctx, cancel := context.WithCancel(t.Context()) // as when it is interrupted in the middle
			err = store.Encrypt(ctx, o, func(what string, _, _ int64) {
				if what == "turns" {
					cancel()
				}
			})
			if err == nil {
				t.Error("it was not interrupted")
			}
			_, err = store.Open(t.Context(), o)
			wantCode(t, err, "encryption_unfinished")
			_, err = store.Open(t.Context(), store.Options{Database: at})
			wantCode(t, err, "encryption_key_missing")

			must(t, store.Encrypt(t.Context(), o, func(string, int64, int64) {}))
			must(t, store.Encrypt(t.Context(), o, func(string, int64, int64) {}))
			s = opened(t, o)
			wantSame(t, s, n, q)
			if text := plain(t, backup(t, s)); strings.Contains(text, canary) {
				t.Error("a backup has it")
			}
			if name == "sqlite" {
				if found := holders(t, filepath.Dir(at)); len(found) > 0 {
					t.Errorf("%v have it", found)
				}
			}
		})
	}
}

func TestAnotherOperatorsKeyCostsNoNewWriting(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, old, fresh := database(t), operatorsKeys(t), operatorsKeys(t)
			s := opened(t, store.Options{Database: at, Keys: old})
			n, q := fillCanary(t, s)
			_, err := store.Rewrap(t.Context(), store.Options{Database: at, Keys: fresh}, false)
			wantCode(t, err, "encryption_key_missing")
			both := append(append(seal.Keys{}, fresh...), old...)
			if changed, err := store.Rewrap(t.Context(), store.Options{Database: at, Keys: both}, true); err != nil || !changed {
				t.Fatal(changed, err)
			}
			wantSame(t, s, n, q) // whoever has it open goes on
			wantSame(t, opened(t, store.Options{Database: at, Keys: fresh}), n, q)
			_, err = store.Open(t.Context(), store.Options{Database: at, Keys: old})
			wantCode(t, err, "encryption_key_missing")
		})
	}
}

func TestAChangedValueIsRefused(t *testing.T) {
	t.Parallel()
	s := opened(t, store.Options{Database: databases()["sqlite"](t), Keys: operatorsKeys(t)})
	fillCanary(t, s)
	must(t, s.Write(t.Context(), "UPDATE turns SET answer = prompt"))
	_, err := s.Turn(t.Context(), project, "trn_1")
	if !problem.Has(err, problem.SealedDamaged) {
		t.Errorf("the question was read as the answer: %v", err)
	}
}
