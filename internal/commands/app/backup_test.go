package app_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cove/internal/commands/app"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/server/auth"
	"cove/internal/server/store"
)

// part is one of an archive.
type part struct {
	header tar.Header
	body   []byte
}

func archived(t *testing.T, parts []part) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for _, p := range parts {
		p.header.Size = int64(len(p.body))
		if err := w.WriteHeader(&p.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func partsOf(t *testing.T, archive []byte) (out []part) {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, part{*h, body})
	}
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: filepath.Join(t.TempDir(), "cove.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// whole returns an archive with a user and a file, and the path of its content below the folder of files.
func whole(t *testing.T) (archive []byte, name string) {
	t.Helper()
	s, blobs := newStore(t), filepath.Join(t.TempDir(), "files")
	if err := s.AddUser(t.Context(), auth.User{ID: "usr_a", Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("content "), 10_000)
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	name = filepath.Join(hash[:2], hash[2:4], hash)
	if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(blobs, name)), 0o700), os.WriteFile(filepath.Join(blobs, name), content, 0o600)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := app.Backup(t.Context(), s, blobs, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), name
}

// TestARestoreIsAllOrNothing: whatever is wrong with an archive, afterwards a good one can be restored into the same place.
func TestARestoreIsAllOrNothing(t *testing.T) {
	t.Parallel()
	good, name := whole(t)
	parts := partsOf(t, good)
	about, database, file := parts[0], parts[1], parts[2]
	renamed := func(name string) part {
		p := file
		p.header.Name = name
		return p
	}
	link := part{header: tar.Header{Name: file.header.Name, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}
	broken, changed := database, file
	broken.body, changed.body = database.body[:len(database.body)/2], slices.Concat(file.body, []byte("x"))
	s, folder := newStore(t), t.TempDir()
	for what, archive := range map[string][]byte{
		"empty":                {},
		"no archive":           []byte("hello"),
		"cut":                  good[:len(good)-20],
		"cut in its sum":       good[:len(good)-4],
		"no database":          archived(t, []part{about, file}),
		"two databases":        archived(t, []part{about, database, file, database}),
		"half a database":      archived(t, []part{about, file, broken}),
		"a way out":            archived(t, []part{about, database, renamed("files/../../" + filepath.Base(name))}),
		"a way up":             archived(t, []part{about, database, renamed("files/ab/../../../x")}),
		"an absolute name":     archived(t, []part{about, database, renamed("/tmp/" + filepath.Base(name))}),
		"a link":               archived(t, []part{about, database, link}),
		"no name of a content": archived(t, []part{about, database, renamed("files/.restoring")}),
		"a file twice":         archived(t, []part{about, database, file, file}),
		"another content":      archived(t, []part{about, database, changed}),
		"nothing about it":     archived(t, []part{database, file}),
	} {
		err := app.Restore(t.Context(), s, folder, bytes.NewReader(archive))
		if p := problem.Of(err); err == nil || p.Kind == problem.Internal || p.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
		wantNothing(t, what, s, folder)
		if _, tried := app.Verify(t.Context(), "", bytes.NewReader(archive)); tried == nil || problem.Of(tried).Code != problem.Of(err).Code {
			t.Errorf("%s: a try says %v, a restore %v", what, tried, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := app.Restore(ended, s, folder, bytes.NewReader(good)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	wantNothing(t, "interrupted", s, folder)
	if err := app.Restore(t.Context(), s, folder, bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(folder, "files", name)); err != nil || !bytes.Equal(content, file.body) {
		t.Errorf("the content has %d bytes, %v", len(content), err)
	}
	if _, err := s.User(t.Context(), "ada"); err != nil {
		t.Error(err)
	}
	if err := app.Restore(t.Context(), s, folder, bytes.NewReader(good)); problem.Of(err).Code != "not_empty" {
		t.Errorf("restoring twice: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "files", name)); err != nil {
		t.Errorf("what was there before is gone: %v", err)
	}
}

func wantNothing(t *testing.T, what string, s *store.Store, folder string) {
	t.Helper()
	if users, err := s.Users(t.Context()); err != nil || len(users) > 0 {
		t.Errorf("%s: there are %d users, %v", what, len(users), err)
	}
	if left, err := os.ReadDir(filepath.Join(folder, "files")); err == nil && len(left) > 0 {
		t.Errorf("%s: there is %s", what, left[0].Name())
	}
}

// TestARestoreIsEncrypted restores with a key into a place that has nothing, not even data keys.
func TestARestoreIsEncrypted(t *testing.T) {
	t.Parallel()
	good, name := whole(t)
	s, folder := newStore(t), t.TempDir()
	if err := app.RestoreWith(t.Context(), s, folder, seal.NewKey(), bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	if sealed, err := seal.IsSealed(filepath.Join(folder, "files", name)); err != nil || !sealed {
		t.Errorf("the restored file is encrypted: %v, %v", sealed, err)
	}
}

// TestATryLeavesNothing: what it says, and that neither it nor a failed one leaves anything behind. It cannot be parallel: it sets where temporary folders are.
func TestATryLeavesNothing(t *testing.T) {
	good, _ := whole(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, key := range []string{"", seal.NewKey()} {
		found, err := app.Verify(t.Context(), key, bytes.NewReader(good))
		if err != nil || found.Files != 1 || found.Bytes != 80_000 || found.Elsewhere != 0 || time.Since(found.Made) > time.Hour {
			t.Errorf("with the key %q it is %+v, %v", key, found, err)
		}
	}
	if _, err := app.Verify(t.Context(), "", bytes.NewReader(good[:len(good)/2])); !problem.Has(err, problem.BackupInvalid) {
		t.Errorf("half of it: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}
