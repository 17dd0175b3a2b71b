package e2e_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"cove/internal/testkit/testneeds"
)

// objects is an object storage with TLS and a bucket named "backups", which fails while down is set, and whose credentials may not list uploads. env has how a server reaches it.
func objects(t *testing.T) (down *atomic.Bool, env []string) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	down = new(atomic.Bool)
	storage := gofakes3.New(backend).Server()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() || r.Method == http.MethodGet && r.URL.Query().Has("uploads") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		storage.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	authority, secret := filepath.Join(dir, "authority.pem"), filepath.Join(dir, "secret")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("verysecretsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return down, []string{"COVE_BACKUP_S3_ENDPOINT=" + server.URL, "COVE_BACKUP_S3_REGION=here", "COVE_BACKUP_S3_ACCESS_KEY=who", "COVE_BACKUP_S3_SECRET_KEY_FILE=" + secret, "SSL_CERT_FILE=" + authority}
}

// TestServerMakesBackups: a server makes backups by itself, tries them, keeps as many as it is to, says when it cannot; and one brings everything back.
func TestServerMakesBackups(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	down, storage := objects(t)
	places := map[string]string{"bucket": "s3://backups/cove", "folder": filepath.Join(t.TempDir(), "backups")}
	for what, place := range places {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"COVE_BACKUP_TO=" + place, "COVE_BACKUP_EVERY=2s", "COVE_BACKUP_KEEP=2", "COVE_POOL=0"}, storage...)
			dir := t.TempDir()
			killed := filepath.Join(dir, "server", "verifying", "of a try that was killed")
			if err := os.MkdirAll(killed, 0o700); err != nil {
				t.Fatal(err)
			}
			s := startServer(t, dir, testKey(t), env...)
			stored := s.raw("POST", "/api/v1/files?name=kept.txt", "what is to be kept")
			if stored.status/100 != 2 {
				t.Fatalf("a file is answered with %d: %s", stored.status, stored.body)
			}
			var file struct{ ID string }
			if err := json.Unmarshal(stored.body, &file); err != nil {
				t.Fatal(err)
			}
			s.until("old backups are removed", func() (string, bool) {
				names := s.backups(t)
				made, _ := strconv.Atoi(s.metric(`cove_backups_total{outcome="ok"}`))
				return fmt.Sprint(names), made >= 4 && len(names) <= 3 // one more while one is made
			})
			if at := s.metric("cove_backup_timestamp_seconds"); at == "0" {
				t.Error("the newest backup has no time in the metrics")
			}
			if what == "bucket" {
				down.Store(true)
				s.until("a backup fails", func() (string, bool) {
					return s.log.String(), s.metric(`cove_backups_total{outcome="failed"}`) != "0" && strings.Contains(s.log.String(), "no backup was made")
				})
				down.Store(false)
			}
			s.stop()
			if strings.Contains(s.log.String(), "verysecretsecret") {
				t.Error("the log has the secret")
			}
			if what == "bucket" && !strings.Contains(s.log.String(), "what is left of old backups could not be removed") {
				t.Error("the log does not say that uploads may not be listed")
			}
			if _, err := os.Stat(filepath.Dir(killed)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder of a try is left: %v", err)
			}
			if r := s.beside("backup", "verify"); r.code != 0 || !strings.Contains(r.stdout, " can be restored: ") || !strings.Contains(r.stdout, " 1 stored files of ") {
				t.Errorf("trying the newest ends with %+v", r)
			}
			s.comesBack(t, place, file.ID, env)
		})
	}
}

// backups are the names of a server's backups.
func (s *server) backups(t *testing.T) (names []string) {
	t.Helper()
	r := s.beside("backup", "ls", "--json")
	if r.code != 0 {
		t.Fatalf("listing the backups ends with %+v", r)
	}
	for line := range strings.Lines(r.stdout) {
		var one struct{ Name string }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		names = append(names, one.Name)
	}
	return names
}

// comesBack restores the newest backup in an empty place, and asks the server there for a file.
func (s *server) comesBack(t *testing.T, place, file string, env []string) {
	t.Helper()
	dir := t.TempDir()
	there := newServer(t, dir, s.key, append(env, "COVE_BACKUP_TO=")...)
	if r := there.beside("restore", place); r.code != 0 || !strings.Contains(r.stdout, "is restored") {
		t.Fatalf("a restore ends with %+v", r)
	}
	there.begin()
	if r := there.raw("GET", "/api/v1/files/"+file+"/content", ""); r.status != http.StatusOK || string(r.body) != "what is to be kept" {
		t.Errorf("the restored file is %d: %s", r.status, r.body)
	}
	there.stop()
}
