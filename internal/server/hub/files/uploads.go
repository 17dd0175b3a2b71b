package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// mostUploads bounds the uploads that are no files yet: each is a file on the disk and a row.
var mostUploads = record.UploadBounds{Key: 20, Project: 200, Server: 5000}

const (
	uploadLife   = 24 * time.Hour   // of an upload to which nothing comes
	uploadShown  = time.Hour        // for which an upload tells which file it has become
	uploadSync   = 8 << 20          // bytes after which what has come is written to the disk and counts; a kill of the server costs at most so many
	writerLeaves = 10 * time.Second // for which a request waits until the one before it has left the upload
	writerAgain  = 50 * time.Millisecond
	keepPatience = 30 * time.Second
)

// NewUpload is a file that is to come in pieces.
type NewUpload struct {
	Name string
	Size int64
}

// Piece is a part of an upload's file.
type Piece struct {
	Offset int64 // in the file
	Length int64 // -1: not known before its end
	Body   io.Reader
	// Stop ends a Read of Body that waits for bytes, and does not wait itself. It may be called at any time until AppendUpload returns. nil: there is no way.
	Stop func()
}

// uploads knows which request writes to which upload.
type uploads struct {
	mu      sync.Mutex
	writers map[string]*writer
}

// writer is a request that brings a piece.
type writer struct {
	stop func()        // does not wait
	gone chan struct{} // closed when it has left the upload
}

// acquire makes the caller the only one that writes to an upload. Who writes there already is stopped: a client that sends anew has lost its connection, which the
// server may not know yet. One that does not leave in time, because it makes the file, keeps the upload.
func (u *uploads) acquire(ctx context.Context, id string, stop func()) (release func(), err error) {
	patience := time.NewTimer(writerLeaves)
	defer patience.Stop()
	for {
		u.mu.Lock()
		other := u.writers[id]
		if other == nil {
			me := &writer{stop: stop, gone: make(chan struct{})}
			u.writers[id] = me
			u.mu.Unlock()
			return func() { u.leave(id, me) }, nil
		}
		other.stop() // with the lock: a writer that has left uses its connection for other requests
		u.mu.Unlock()
		select {
		case <-other.gone:
		case <-time.After(writerAgain): // it may have begun another wait for bytes as it was stopped
		case <-patience.C:
			return nil, uploadInUse("another request uses the upload")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (u *uploads) leave(id string, me *writer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.writers, id)
	close(me.gone)
}

func uploadInUse(message string) error {
	return problem.New(problem.UploadInUse, message).WithHint("ask for the upload in a moment, and go on from its offset")
}

func uploadExceeded(u record.Upload) *problem.Error {
	return problem.New(problem.UploadExceeded, fmt.Sprintf("the upload was begun for %d bytes, and the request brings more", u.Size)).
		WithHint(fmt.Sprintf("send at most %d bytes", u.Size-u.Received))
}

func wrongOffset(u record.Upload, said int64) error {
	return problem.New(problem.UploadOffset, fmt.Sprintf("the next byte of the upload is number %d, not %d", u.Received, said)).
		WithHint(fmt.Sprintf("send the file from there, with 'Upload-Offset: %d'", u.Received))
}

// BeginUpload makes an upload, for which the project's disk has room from now on. Needs auth.FilesWrite. Problems: file_too_large, quota_disk, too_many_uploads.
func (l *Library) BeginUpload(ctx context.Context, who auth.Principal, n NewUpload) (record.Upload, error) {
	u, err := l.beginUpload(ctx, who, n)
	l.work.WriteAudit(ctx, who, "upload.create", u.ID, "", err)
	return u, err
}

func (l *Library) beginUpload(ctx context.Context, who auth.Principal, n NewUpload) (record.Upload, error) {
	if err := who.Require(auth.FilesWrite); err != nil {
		return record.Upload{}, err
	}
	switch {
	case n.Size < 0:
		return record.Upload{}, problem.New(problem.InvalidRequest, "a file's size must not be negative")
	case n.Size > l.o.MostFile:
		return record.Upload{}, tooLarge()
	}
	counted, err := l.ClaimRoom(ctx, who.Project, who.Key, n.Size)
	if err != nil {
		return record.Upload{}, err
	}
	defer counted()
	u := record.Upload{
		ID: ident.New(ident.Upload), Project: who.Project, User: who.User, Key: who.Key, Name: fileName(n.Name), Size: n.Size, Home: l.work.HomeID(), Created: l.work.Now(),
	}
	u.Expires = u.Created.Add(uploadLife)
	if err := l.work.Store.AddUpload(ctx, u, mostUploads); err != nil {
		return record.Upload{}, err
	}
	return u, nil
}

// Upload returns an upload, with its file when it has become one. Needs auth.FilesWrite.
func (l *Library) Upload(ctx context.Context, who auth.Principal, id string) (record.Upload, error) {
	if err := who.Require(auth.FilesWrite); err != nil {
		return record.Upload{}, err
	}
	u, err := l.work.Store.Upload(ctx, who.Project, id)
	if err == nil && !l.work.Now().Before(u.Expires) {
		err = problem.New(problem.UploadNotFound, "the upload has expired")
	}
	if err != nil || u.File == "" {
		return u, err
	}
	f, err := l.FindFile(ctx, who, u.File)
	if problem.Has(err, problem.FileNotFound) {
		err = problem.New(problem.UploadNotFound, "the file that the upload has become was deleted")
	}
	u.Stored = &f
	return u, err
}

// AppendUpload adds a piece to an upload and makes a stored file of it when that was the last one. What came of a piece before its body failed is kept. It returns
// the upload beside a problem, too, as far as it is known. Needs auth.FilesWrite. Problems: upload_offset, upload_exceeded, upload_in_use, upload_elsewhere, disk_full.
func (l *Library) AppendUpload(ctx context.Context, who auth.Principal, id string, p Piece) (record.Upload, error) {
	u, err := l.Upload(ctx, who, id)
	if err != nil {
		return u, err
	}
	if u.Home != l.work.HomeID() && u.File == "" {
		return u, l.work.ElsewhereProblem(ctx, problem.UploadElsewhere, "upload", u.Home)
	}
	reading, end := context.WithCancelCause(ctx)
	defer end(nil)
	release, err := l.uploads.acquire(ctx, id, func() {
		end(uploadInUse("another request goes on with the upload"))
		if p.Stop != nil {
			p.Stop()
		}
	})
	if err != nil {
		return u, err
	}
	defer release()
	if u, err = l.Upload(ctx, who, id); err != nil { // the writer before this one may have added to it
		return u, err
	}
	switch {
	case p.Offset != u.Received:
		return u, wrongOffset(u, p.Offset)
	case p.Length > u.Size-u.Received:
		return u, uploadExceeded(u)
	case u.File != "":
		return u, nil
	}
	if u, err = l.receivePiece(reading, u, p.Body); err != nil || u.Received < u.Size {
		return u, err
	}
	return l.finishUpload(context.WithoutCancel(ctx), who, u)
}

// receivePiece writes what body has after what has come of an upload. What is on the disk counts, also when the body fails later.
func (l *Library) receivePiece(ctx context.Context, u record.Upload, body io.Reader) (record.Upload, error) {
	f, whole, err := l.contents.openUpload(u.ID, u.Received)
	if err != nil {
		return u, err
	}
	defer func() { _ = f.Close() }() // what counts was synced
	if !whole {
		said := u.Received
		if u, err = l.countUpload(ctx, u, 0); err != nil {
			return u, err
		}
		return u, wrongOffset(u, said)
	}
	began, source := u.Received, &BoundedReader{ctx: ctx, r: body, left: u.Size - u.Received, full: uploadExceeded(u)}
	for {
		n, err := l.contents.appendUpload(f, source)
		switch {
		case u.Received+n > u.Size: // a file that is another one than was said is not to come of it
			u, err = l.countUpload(ctx, u, began)
			return u, errors.Join(source.full, err)
		case err != nil && source.err == nil && !errors.Is(err, io.EOF):
			return u, l.contents.unwritableError(err)
		}
		ended, failed := err != nil, source.err
		if n > 0 {
			if err := f.Sync(); err != nil {
				return u, l.contents.unwritableError(err)
			}
			if u, err = l.countUpload(ctx, u, u.Received+n); err != nil {
				return u, err
			}
		}
		if failed != nil && ctx.Err() != nil {
			failed = context.Cause(ctx)
		}
		if ended || failed != nil {
			return u, failed
		}
	}
}

// countUpload records how much of an upload is on the disk, also for a client that is gone.
func (l *Library) countUpload(ctx context.Context, u record.Upload, received int64) (record.Upload, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepPatience)
	defer cancel()
	now, err := l.work.Store.UpdateUpload(ctx, u.Project, u.ID, func(u *record.Upload) error {
		u.Received, u.Expires = received, l.work.Now().Add(uploadLife)
		return nil
	})
	if err != nil {
		return u, fmt.Errorf("record what has come of the upload: %w", err)
	}
	return now, nil
}

// finishUpload makes a stored file of an upload that is whole. The project's disk has room for it since the upload was begun.
func (l *Library) finishUpload(ctx context.Context, who auth.Principal, u record.Upload) (record.Upload, error) {
	f, err := l.fileOfUpload(ctx, who, u)
	l.work.WriteAudit(ctx, who, "file.create", f.ID, "sha256 "+f.SHA256, err)
	if err != nil {
		return u, err
	}
	l.meter.AddUsage(ctx, who, record.Usage{UploadBytes: f.Size})
	u.File, u.Stored, u.Expires = f.ID, &f, f.Created.Add(uploadShown)
	return u, nil
}

func (l *Library) fileOfUpload(ctx context.Context, who auth.Principal, u record.Upload) (record.File, error) {
	got, err := l.contents.linkUpload(ctx, u.ID, u.Size)
	if err != nil {
		return record.File{}, err
	}
	defer got.drop()
	f := record.File{ID: ident.New(ident.File), Project: u.Project, User: who.User, Name: u.Name, Size: got.size, SHA256: got.hash, Created: l.work.Now(), Home: l.work.HomeID()}
	defer l.contents.lockContent(f.SHA256)()
	if err := l.contents.placeContent(got); err != nil {
		return record.File{}, err
	}
	if _, err := l.work.Store.FinishUpload(ctx, f, u.ID, f.Created.Add(uploadShown)); err != nil {
		return record.File{}, fmt.Errorf("add the file: %w", err) // the upload is as it was, and the sweep removes the content
	}
	l.contents.dropUpload(u.ID)
	return f, nil
}

// DropUpload ends an upload. A file that it has become stays. Needs auth.FilesWrite.
func (l *Library) DropUpload(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.FilesWrite)
	if err == nil {
		err = l.dropUpload(ctx, who.Project, id)
	}
	l.work.WriteAudit(ctx, who, "upload.delete", id, "", err)
	return err
}

func (l *Library) dropUpload(ctx context.Context, project, id string) error {
	if _, err := l.work.Store.Upload(ctx, project, id); err != nil { // nobody stops what other projects send
		return err
	}
	release, err := l.uploads.acquire(ctx, id, func() {})
	if err != nil {
		return err
	}
	defer release()
	if err := l.work.Store.DeleteUpload(ctx, project, id); err != nil {
		return err
	}
	l.contents.dropUpload(id) // of another home: its sweep removes the bytes
	return nil
}

// SweepUploads removes uploads that have expired, and the bytes of those that are over.
func (l *Library) SweepUploads(ctx context.Context) error {
	expired, err := l.work.Store.ExpiredUploads(ctx, l.work.Now(), filesBatch)
	if err != nil {
		return fmt.Errorf("look for expired uploads: %w", err)
	}
	for _, u := range expired {
		if err := l.dropUpload(ctx, u.Project, u.ID); err != nil && problem.Of(err).Kind != problem.NotFound {
			return fmt.Errorf("remove an expired upload: %w", err)
		}
	}
	there, err := l.contents.listUploads()
	if err != nil {
		return fmt.Errorf("look through the bytes of uploads: %w", err)
	}
	over, err := l.work.Store.OverUploads(ctx, there)
	if err != nil {
		return fmt.Errorf("look for uploads that are over: %w", err)
	}
	for _, id := range over {
		l.contents.dropUpload(id)
	}
	return nil
}
