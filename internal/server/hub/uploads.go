package hub

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
)

// mostUploads bounds the uploads that are no files yet: each is a file on the disk and a row.
var mostUploads = UploadBounds{Key: 20, Project: 200, Server: 5000}

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
			return nil, inUse("another request uses the upload")
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

func inUse(message string) error {
	return problem.New(problem.UploadInUse, message).WithHint("ask for the upload in a moment, and go on from its offset")
}

func exceeded(u Upload) *problem.Error {
	return problem.New(problem.UploadExceeded, fmt.Sprintf("the upload was begun for %d bytes, and the request brings more", u.Size)).
		WithHint(fmt.Sprintf("send at most %d bytes", u.Size-u.Received))
}

func wrongOffset(u Upload, said int64) error {
	return problem.New(problem.UploadOffset, fmt.Sprintf("the next byte of the upload is number %d, not %d", u.Received, said)).
		WithHint(fmt.Sprintf("send the file from there, with 'Upload-Offset: %d'", u.Received))
}

// BeginUpload makes an upload, for which the project's disk has room from now on. Needs auth.FilesWrite. Problems: file_too_large, quota_disk, too_many_uploads.
func (h *Hub) BeginUpload(ctx context.Context, who auth.Principal, n NewUpload) (Upload, error) {
	u, err := h.beginUpload(ctx, who, n)
	h.work.WriteAudit(ctx, who, "upload.create", u.ID, "", err)
	return u, err
}

func (h *Hub) beginUpload(ctx context.Context, who auth.Principal, n NewUpload) (Upload, error) {
	if err := who.Require(auth.FilesWrite); err != nil {
		return Upload{}, err
	}
	switch {
	case n.Size < 0:
		return Upload{}, problem.New(problem.InvalidRequest, "a file's size must not be negative")
	case n.Size > h.o.Limits.File:
		return Upload{}, tooLarge()
	}
	counted, err := h.claim(ctx, who.Project, who.Key, n.Size)
	if err != nil {
		return Upload{}, err
	}
	defer counted()
	u := Upload{
		ID: ident.New(ident.Upload), Project: who.Project, User: who.User, Key: who.Key, Name: fileName(n.Name), Size: n.Size, Home: h.work.HomeID(), Created: h.work.Now(),
	}
	u.Expires = u.Created.Add(uploadLife)
	if err := h.work.Store.AddUpload(ctx, u, mostUploads); err != nil {
		return Upload{}, err
	}
	return u, nil
}

// Upload returns an upload, with its file when it has become one. Needs auth.FilesWrite.
func (h *Hub) Upload(ctx context.Context, who auth.Principal, id string) (Upload, error) {
	if err := who.Require(auth.FilesWrite); err != nil {
		return Upload{}, err
	}
	u, err := h.work.Store.Upload(ctx, who.Project, id)
	if err == nil && !h.work.Now().Before(u.Expires) {
		err = problem.New(problem.UploadNotFound, "the upload has expired")
	}
	if err != nil || u.File == "" {
		return u, err
	}
	f, err := h.file(ctx, who, u.File)
	if problem.Has(err, problem.FileNotFound) {
		err = problem.New(problem.UploadNotFound, "the file that the upload has become was deleted")
	}
	u.Stored = &f
	return u, err
}

// AppendUpload adds a piece to an upload and makes a stored file of it when that was the last one. What came of a piece before its body failed is kept. It returns
// the upload beside a problem, too, as far as it is known. Needs auth.FilesWrite. Problems: upload_offset, upload_exceeded, upload_in_use, upload_elsewhere, disk_full.
func (h *Hub) AppendUpload(ctx context.Context, who auth.Principal, id string, p Piece) (Upload, error) {
	u, err := h.Upload(ctx, who, id)
	if err != nil {
		return u, err
	}
	if u.Home != h.work.HomeID() && u.File == "" {
		return u, h.work.ElsewhereProblem(ctx, problem.UploadElsewhere, "upload", u.Home)
	}
	reading, end := context.WithCancelCause(ctx)
	defer end(nil)
	release, err := h.uploads.acquire(ctx, id, func() {
		end(inUse("another request goes on with the upload"))
		if p.Stop != nil {
			p.Stop()
		}
	})
	if err != nil {
		return u, err
	}
	defer release()
	if u, err = h.Upload(ctx, who, id); err != nil { // the writer before this one may have added to it
		return u, err
	}
	switch {
	case p.Offset != u.Received:
		return u, wrongOffset(u, p.Offset)
	case p.Length > u.Size-u.Received:
		return u, exceeded(u)
	case u.File != "":
		return u, nil
	}
	if u, err = h.receivePiece(reading, u, p.Body); err != nil || u.Received < u.Size {
		return u, err
	}
	return h.finishUpload(context.WithoutCancel(ctx), who, u)
}

// receivePiece writes what body has after what has come of an upload. What is on the disk counts, also when the body fails later.
func (h *Hub) receivePiece(ctx context.Context, u Upload, body io.Reader) (Upload, error) {
	f, whole, err := h.contents.openUpload(u.ID, u.Received)
	if err != nil {
		return u, err
	}
	defer func() { _ = f.Close() }() // what counts was synced
	if !whole {
		said := u.Received
		if u, err = h.countUpload(ctx, u, 0); err != nil {
			return u, err
		}
		return u, wrongOffset(u, said)
	}
	began, source := u.Received, &limited{ctx: ctx, r: body, left: u.Size - u.Received, full: exceeded(u)}
	for {
		n, err := h.contents.appendUpload(f, source)
		switch {
		case u.Received+n > u.Size: // a file that is another one than was said is not to come of it
			u, err = h.countUpload(ctx, u, began)
			return u, errors.Join(source.full, err)
		case err != nil && source.err == nil && !errors.Is(err, io.EOF):
			return u, h.contents.unwritable(err)
		}
		ended, failed := err != nil, source.err
		if n > 0 {
			if err := f.Sync(); err != nil {
				return u, h.contents.unwritable(err)
			}
			if u, err = h.countUpload(ctx, u, u.Received+n); err != nil {
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
func (h *Hub) countUpload(ctx context.Context, u Upload, received int64) (Upload, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepPatience)
	defer cancel()
	now, err := h.work.Store.UpdateUpload(ctx, u.Project, u.ID, func(u *Upload) error {
		u.Received, u.Expires = received, h.work.Now().Add(uploadLife)
		return nil
	})
	if err != nil {
		return u, fmt.Errorf("record what has come of the upload: %w", err)
	}
	return now, nil
}

// finishUpload makes a stored file of an upload that is whole. The project's disk has room for it since the upload was begun.
func (h *Hub) finishUpload(ctx context.Context, who auth.Principal, u Upload) (Upload, error) {
	f, err := h.fileOfUpload(ctx, who, u)
	h.work.WriteAudit(ctx, who, "file.create", f.ID, "sha256 "+f.SHA256, err)
	if err != nil {
		return u, err
	}
	h.AddUsage(ctx, who, Usage{UploadBytes: f.Size})
	u.File, u.Stored, u.Expires = f.ID, &f, f.Created.Add(uploadShown)
	return u, nil
}

func (h *Hub) fileOfUpload(ctx context.Context, who auth.Principal, u Upload) (File, error) {
	got, err := h.contents.linked(ctx, u.ID, u.Size)
	if err != nil {
		return File{}, err
	}
	defer got.drop()
	f := File{ID: ident.New(ident.File), Project: u.Project, User: who.User, Name: u.Name, Size: got.size, SHA256: got.hash, Created: h.work.Now(), Home: h.work.HomeID()}
	defer h.contents.lock(f.SHA256)()
	if err := h.contents.place(got); err != nil {
		return File{}, err
	}
	if _, err := h.work.Store.FinishUpload(ctx, f, u.ID, f.Created.Add(uploadShown)); err != nil {
		return File{}, fmt.Errorf("add the file: %w", err) // the upload is as it was, and the sweep removes the content
	}
	h.contents.dropUpload(u.ID)
	return f, nil
}

// DropUpload ends an upload. A file that it has become stays. Needs auth.FilesWrite.
func (h *Hub) DropUpload(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.FilesWrite)
	if err == nil {
		err = h.dropUpload(ctx, who.Project, id)
	}
	h.work.WriteAudit(ctx, who, "upload.delete", id, "", err)
	return err
}

func (h *Hub) dropUpload(ctx context.Context, project, id string) error {
	if _, err := h.work.Store.Upload(ctx, project, id); err != nil { // nobody stops what other projects send
		return err
	}
	release, err := h.uploads.acquire(ctx, id, func() {})
	if err != nil {
		return err
	}
	defer release()
	if err := h.work.Store.DeleteUpload(ctx, project, id); err != nil {
		return err
	}
	h.contents.dropUpload(id) // of another home: its sweep removes the bytes
	return nil
}

// sweepUploads removes uploads that have expired, and the bytes of those that are over.
func (h *Hub) sweepUploads(ctx context.Context) error {
	expired, err := h.work.Store.ExpiredUploads(ctx, h.work.Now(), filesBatch)
	if err != nil {
		return fmt.Errorf("look for expired uploads: %w", err)
	}
	for _, u := range expired {
		if err := h.dropUpload(ctx, u.Project, u.ID); err != nil && problem.Of(err).Kind != problem.NotFound {
			return fmt.Errorf("remove an expired upload: %w", err)
		}
	}
	there, err := h.contents.uploads()
	if err != nil {
		return fmt.Errorf("look through the bytes of uploads: %w", err)
	}
	over, err := h.work.Store.OverUploads(ctx, there)
	if err != nil {
		return fmt.Errorf("look for uploads that are over: %w", err)
	}
	for _, id := range over {
		h.contents.dropUpload(id)
	}
	return nil
}
