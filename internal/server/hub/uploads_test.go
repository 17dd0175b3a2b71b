package hub_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func (l *life) newUpload(who auth.Principal, size int) hub.Upload {
	l.t.Helper()
	u, err := l.BeginUpload(l.t.Context(), who, hub.NewUpload{Name: "big.csv", Size: int64(size)})
	if err != nil {
		l.t.Fatal(err)
	}
	return u
}

// piece sends text as a piece whose length is known.
func (l *life) piece(who auth.Principal, id string, offset int, text string) (hub.Upload, error) {
	return l.AppendUpload(l.t.Context(), who, id, hub.Piece{Offset: int64(offset), Length: int64(len(text)), Body: strings.NewReader(text)})
}

// sent wants a piece to be taken, and the upload to have so many bytes then.
func (l *life) sent(who auth.Principal, id string, offset int, text string) hub.Upload {
	l.t.Helper()
	u, err := l.piece(who, id, offset, text)
	if err != nil || u.Received != int64(offset+len(text)) {
		l.t.Fatalf("from %d: %+v, %v", offset, u, err)
	}
	return u
}

// has wants an upload to have so many bytes.
func (l *life) has(who auth.Principal, id string, received int) {
	l.t.Helper()
	if u, err := l.Upload(l.t.Context(), who, id); err != nil || u.Received != int64(received) {
		l.t.Errorf("the upload is %+v, not with %d bytes: %v", u, received, err)
	}
}

func TestAFileInPieces(t *testing.T) { sealedAndNot(t, fileInPieces) }

func fileInPieces(t *testing.T, how func(*hub.Options)) {
	l, who, other := newLife(t, how), someone(auth.LocalProject), someone("prj_other")
	u := l.newUpload(who, 11)
	if u.Received != 0 || u.File != "" || u.Name != "big.csv" || !u.Expires.Equal(u.Created.Add(24*time.Hour)) {
		t.Errorf("begun as %+v", u)
	}
	if got := l.sent(who, u.ID, 0, "hello"); got.File != "" || got.Stored != nil {
		t.Errorf("after a piece: %+v", got)
	}
	for _, offset := range []int{0, 4, 6} {
		got, err := l.piece(who, u.ID, offset, "x")
		fails(t, err, "upload_offset")
		if got.Received != 5 || !strings.Contains(err.Error(), "number 5") {
			t.Errorf("who sends from %d is told %+v, %v", offset, got, err)
		}
	}
	l.sent(who, u.ID, 5, "")
	done := l.sent(who, u.ID, 5, " world")
	f := done.Stored
	if f == nil || done.File != f.ID || f.Size != 11 || f.SHA256 != hashOf("hello world") || f.Name != "big.csv" || f.User != who.User || !f.Expires.IsZero() {
		t.Fatalf("it has become %+v", f)
	}
	if got := l.content(who, f.ID); got != "hello world" {
		t.Errorf("the file is %q", got)
	}
	if kept := l.kept(); len(kept) != 1 || filepath.Base(kept[0]) != f.SHA256 {
		t.Errorf("kept are %v", kept)
	}
	again, err := l.piece(who, u.ID, 11, "") // the answer was lost
	if err != nil || again.File != f.ID {
		t.Errorf("who asks again is told %+v, %v", again, err)
	}
	if got, err := l.Upload(t.Context(), who, u.ID); err != nil || got.Stored == nil || got.Stored.SHA256 != f.SHA256 {
		t.Errorf("later it is %+v, %v", got, err)
	}
	_, err = l.piece(who, u.ID, 11, "more")
	fails(t, err, "upload_exceeded")
	rows, err := l.store.Rows(t.Context(), audit.Query{Project: who.Project, Limit: 10})
	if err != nil || len(rows) != 2 || rows[0].Action != "file.create" || rows[0].Target != f.ID || rows[1].Action != "upload.create" || rows[1].Target != u.ID {
		t.Errorf("the audit log has %+v, %v", rows, err)
	}
	viewer := who
	viewer.Role = auth.Viewer
	for by, code := range map[*auth.Principal]string{&other: "upload_not_found", &viewer: "forbidden"} {
		_, err = l.Upload(t.Context(), *by, u.ID)
		fails(t, err, code)
		_, err = l.piece(*by, u.ID, 0, "x")
		fails(t, err, code)
		fails(t, l.DropUpload(t.Context(), *by, u.ID), code)
	}
	_, err = l.BeginUpload(t.Context(), viewer, hub.NewUpload{Name: "x"})
	fails(t, err, "forbidden")
	if err := l.DropUpload(t.Context(), who, u.ID); err != nil {
		t.Error(err)
	}
	if got := l.content(who, f.ID); got != "hello world" {
		t.Errorf("with the upload went its file: %q", got)
	}
	empty := l.newUpload(who, 0)
	if got := l.sent(who, empty.ID, 0, ""); got.Stored == nil || got.Stored.Size != 0 {
		t.Errorf("an empty file is %+v", got)
	}
	if err := l.DeleteFile(t.Context(), who, f.ID); err != nil {
		t.Error(err)
	}
}

func TestAnUploadWhoseFileWasDeletedIsGone(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	u := l.newUpload(who, 1)
	f := l.sent(who, u.ID, 0, "x").Stored
	if err := l.DeleteFile(t.Context(), who, f.ID); err != nil {
		t.Fatal(err)
	}
	_, err := l.Upload(t.Context(), who, u.ID)
	fails(t, err, "upload_not_found")
	_, err = l.piece(who, u.ID, 1, "")
	fails(t, err, "upload_not_found")
}

// TestWhatCameOfAPieceIsKept breaks pieces off, and kills the server.
func TestWhatCameOfAPieceIsKept(t *testing.T) { sealedAndNot(t, pieceIsKept) }

func pieceIsKept(t *testing.T, how func(*hub.Options)) {
	dir := t.TempDir()
	l, who := lifeIn(t, dir, openStore(t, dir), how), someone(auth.LocalProject)
	u, gone := l.newUpload(who, 1000), errors.New("the client is gone")
	got, err := l.AppendUpload(t.Context(), who, u.ID, hub.Piece{Length: 1000, Body: broken{strings.NewReader(strings.Repeat("a", 300)), gone}})
	if !errors.Is(err, gone) || got.Received != 300 {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, leave := context.WithCancel(t.Context())
	got, err = l.AppendUpload(ctx, who, u.ID, hub.Piece{Offset: 300, Length: -1, Body: io.MultiReader(strings.NewReader(strings.Repeat("b", 300)), calling{leave}, broken{strings.NewReader(""), gone})})
	if !errors.Is(err, context.Canceled) || got.Received != 600 {
		t.Errorf("%+v, %v", got, err)
	}
	bytes := filepath.Join(dir, "blobs", ".upload-"+u.ID)
	f, err := os.OpenFile(bytes, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString("what was not synced as the server was killed")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	next := lifeIn(t, dir, openStore(t, dir), how)
	next.has(who, u.ID, 600)
	text := strings.Repeat("a", 300) + strings.Repeat("b", 300) + strings.Repeat("c", 400)
	done := next.sent(who, u.ID, 600, strings.Repeat("c", 400))
	if done.Stored == nil || done.Stored.SHA256 != hashOf(text) || next.content(who, done.File) != text {
		t.Errorf("it has become %+v", done.Stored)
	}
	lost := next.newUpload(who, 10)
	next.sent(who, lost.ID, 0, "12345")
	if err := os.Truncate(filepath.Join(dir, "blobs", ".upload-"+lost.ID), 3); err != nil {
		t.Fatal(err)
	}
	_, err = next.piece(who, lost.ID, 5, "67890")
	fails(t, err, "upload_offset")
	if got := next.sent(who, lost.ID, 0, "1234567890"); got.Stored == nil || next.content(who, got.File) != "1234567890" {
		t.Errorf("what lost bytes has become %+v", got)
	}
}

// TestAKillBeforeTheRecord has the bytes of a whole upload there, and no file: its last request was not answered.
func TestAKillBeforeTheRecord(t *testing.T) { sealedAndNot(t, killBeforeTheRecord) }

func killBeforeTheRecord(t *testing.T, sealed func(*hub.Options)) {
	var db *unfinishing
	l := newLife(t, func(o *hub.Options) {
		db = &unfinishing{Store: o.Store}
		o.Store = db
		sealed(o)
	})
	who := someone(auth.LocalProject)
	u := l.newUpload(who, 5)
	db.away.Store(true)
	_, err := l.piece(who, u.ID, 0, "hello")
	fails(t, err, "internal")
	l.has(who, u.ID, 5)
	for range 256 {
		if err := errors.Join(l.SweepFiles(t.Context()), l.SweepUploads(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	db.away.Store(false)
	if got := l.sent(who, u.ID, 5, ""); got.Stored == nil || l.content(who, got.File) != "hello" {
		t.Errorf("%+v", got)
	}
	if kept := l.kept(); len(kept) != 1 {
		t.Errorf("kept are %v", kept)
	}
}

// unfinishing is a store that writes no file of an upload while it is away.
type unfinishing struct {
	hub.Store
	away atomic.Bool
}

func (s *unfinishing) FinishUpload(ctx context.Context, f hub.File, id string, expires time.Time) (hub.Upload, error) {
	if s.away.Load() {
		return hub.Upload{}, errors.New("it was killed")
	}
	return s.Store.FinishUpload(ctx, f, id, expires)
}

func TestPiecesThatAreTooMuch(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	u := l.newUpload(who, 10)
	l.sent(who, u.ID, 0, "01234")
	_, err := l.AppendUpload(t.Context(), who, u.ID, hub.Piece{Offset: 5, Length: 6, Body: untouched{t}})
	fails(t, err, "upload_exceeded")
	got, err := l.AppendUpload(t.Context(), who, u.ID, hub.Piece{Offset: 5, Length: -1, Body: strings.NewReader("56789x")})
	fails(t, err, "upload_exceeded")
	if got.Received != 5 || got.File != "" {
		t.Errorf("%+v", got)
	}
	l.has(who, u.ID, 5)
	if got := l.sent(who, u.ID, 5, "56789"); got.Stored == nil || l.content(who, got.File) != "0123456789" {
		t.Errorf("%+v", got)
	}
	large := l.newUpload(who, 20<<20)
	_, err = l.AppendUpload(t.Context(), who, large.ID, hub.Piece{Length: -1, Body: endless{}}) // parts of it were counted on the way
	fails(t, err, "upload_exceeded")
	l.has(who, large.ID, 0)
	ctx, leave := context.WithCancel(t.Context())
	_, err = l.AppendUpload(ctx, who, large.ID, hub.Piece{Length: -1, Body: io.MultiReader(calling{leave}, endless{})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a client that went away: %v", err)
	}
}

func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) { o.Limits.File, o.Limits.Project.Disk = 1000, 1500 })
	ctx, who := t.Context(), someone(auth.LocalProject)
	begin := func(who auth.Principal, size int64) error {
		_, err := l.BeginUpload(ctx, who, hub.NewUpload{Name: "x", Size: size})
		return err
	}
	fails(t, begin(who, 1001), "file_too_large")
	fails(t, begin(who, -1), "invalid_request")
	u := l.newUpload(who, 1000)
	fails(t, begin(who, 501), "quota_disk")
	_, err := l.AddFile(ctx, who, hub.NewFile{}, strings.NewReader(strings.Repeat("y", 501)))
	fails(t, err, "quota_disk")
	l.sent(who, u.ID, 0, strings.Repeat("x", 1000)) // counts once, as an upload or as a file
	l.add(who, "x", strings.Repeat("y", 400))
	rest := l.newUpload(who, 100)
	fails(t, begin(who, 1), "quota_disk")
	l.sent(who, rest.ID, 0, "some")
	if err := l.DropUpload(ctx, who, rest.ID); err != nil {
		t.Error(err)
	}
	fails(t, l.DropUpload(ctx, who, rest.ID), "upload_not_found")
	if kept := l.kept(); len(kept) != 2 {
		t.Errorf("kept are %v", kept)
	}
	many, few := someone("prj_many"), someone("prj_many")
	for range 20 {
		l.newUpload(many, 1)
	}
	fails(t, begin(many, 1), "too_many_uploads")
	if err := begin(few, 1); err != nil {
		t.Errorf("another key may not either: %v", err)
	}
	var all sync.WaitGroup
	var begun atomic.Int64
	third := someone("prj_third")
	for range 12 {
		all.Go(func() {
			if err := begin(third, 300); err == nil {
				begun.Add(1)
			} else {
				fails(t, err, "quota_disk")
			}
		})
	}
	all.Wait()
	if n := begun.Load(); n > 5 || n == 0 {
		t.Errorf("%d uploads of 300 bytes fit into 1500", n)
	}
}

// TestWhoSendsAnewEndsWhatWasBefore has a connection break without the server's knowing.
func TestWhoSendsAnewEndsWhatWasBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, nil), someone(auth.LocalProject)
		u := l.newUpload(who, 10)
		from, to := io.Pipe()
		first := make(chan error, 1)
		go func() {
			_, err := l.AppendUpload(t.Context(), who, u.ID, hub.Piece{Length: 10, Body: from, Stop: func() { _ = to.CloseWithError(os.ErrDeadlineExceeded) }})
			first <- err
		}()
		if _, err := to.Write([]byte("0123")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.has(who, u.ID, 0) // what has come of it is not known to be on the disk
		got, err := l.piece(who, u.ID, 0, "0123456789")
		fails(t, err, "upload_offset")
		fails(t, <-first, "upload_in_use")
		if got.Received != 4 {
			t.Errorf("%+v", got)
		}
		if got := l.sent(who, u.ID, 4, "456789"); got.Stored == nil {
			t.Errorf("%+v", got)
		}
	})
}

func TestOneThatCannotBeStoppedKeepsTheUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, who := newLife(t, nil), someone(auth.LocalProject)
		u := l.newUpload(who, 10)
		from, to := io.Pipe()
		first := make(chan error, 1)
		go func() {
			_, err := l.AppendUpload(t.Context(), who, u.ID, hub.Piece{Length: 10, Body: from})
			first <- err
		}()
		synctest.Wait()
		_, err := l.piece(who, u.ID, 0, "x")
		fails(t, err, "upload_in_use")
		fails(t, l.DropUpload(t.Context(), who, u.ID), "upload_in_use")
		_ = to.Close()
		fails(t, <-first, "upload_in_use") // it was told to leave
		l.sent(who, u.ID, 0, "0123456789")
	})
}

func TestUploadsExpire(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	l := newLife(t, func(o *hub.Options) { o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
	who := someone(auth.LocalProject)
	u, done := l.newUpload(who, 10), l.newUpload(who, 1)
	l.sent(who, done.ID, 0, "x")
	ahead.Store(int64(23 * time.Hour))
	l.sent(who, u.ID, 0, "01234")
	l.Sweep(t.Context())
	_, err := l.Upload(t.Context(), who, done.ID) // an hour is over
	fails(t, err, "upload_not_found")
	ahead.Store(int64(46 * time.Hour)) // its last byte was a day ago less an hour
	l.Sweep(t.Context())
	l.has(who, u.ID, 5)
	ahead.Store(int64(48 * time.Hour))
	_, err = l.piece(who, u.ID, 5, "56789")
	fails(t, err, "upload_not_found")
	orphan := filepath.Join(l.dir, "blobs", ".upload-upl_00000000000000000000000001")
	if err := os.WriteFile(orphan, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Sweep(t.Context())
	if kept := l.kept(); len(kept) != 1 || filepath.Base(kept[0]) != hashOf("x") {
		t.Errorf("kept are %v", kept)
	}
}

func TestAnUploadIsOfOneServer(t *testing.T) {
	t.Parallel()
	a, b := twoLives(t, nil)
	who := someone(auth.LocalProject)
	u := a.newUpload(who, 10)
	a.sent(who, u.ID, 0, "01234")
	b.has(who, u.ID, 5)
	_, err := b.piece(who, u.ID, 5, "56789")
	fails(t, err, "upload_elsewhere")
	if err := b.DropUpload(t.Context(), who, u.ID); err != nil {
		t.Error(err)
	}
	_, err = a.piece(who, u.ID, 5, "56789")
	fails(t, err, "upload_not_found")
	a.Sweep(t.Context())
	if kept := a.kept(); len(kept) != 0 {
		t.Errorf("left are %v", kept)
	}
}
