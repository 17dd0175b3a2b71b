package files

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Bounds of what a caller may ask for.
const (
	longestFileName = 255 // bytes of a file's name
	longestPurpose  = 64
	filesBatch      = 100 // files that one sweep deletes
)

// NewFile says how a file is stored.
type NewFile struct {
	Name    string
	Purpose string
	Life    time.Duration // 0: for ever
}

// AddFile stores a file's bytes. Needs auth.FilesWrite. Problems: file_too_large, quota_disk, disk_full. When r fails, AddFile returns r's error, and nothing
// is stored.
func (l *Library) AddFile(ctx context.Context, who auth.Principal, n NewFile, r io.Reader) (record.File, error) {
	f, err := l.addFile(ctx, who, n, r)
	l.work.WriteAudit(ctx, who, "file.create", f.ID, "sha256 "+f.SHA256, err)
	if err != nil {
		return record.File{}, err
	}
	l.meter.AddUsage(ctx, who, record.Usage{UploadBytes: f.Size})
	return f, nil
}

func (l *Library) addFile(ctx context.Context, who auth.Principal, n NewFile, r io.Reader) (record.File, error) {
	if err := who.Require(auth.FilesWrite); err != nil {
		return record.File{}, err
	}
	if n.Life < 0 || len(n.Purpose) > longestPurpose || strings.ContainsFunc(n.Purpose, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return record.File{}, problem.New(problem.InvalidRequest, "a file's purpose must be a short word, and its life must not be negative")
	}
	if err := l.meter.MayStore(ctx, who.Project, who.Key, 0); err != nil {
		return record.File{}, err
	}
	got, err := l.contents.receiveContent(ctx, r, l.o.MostFile)
	if err != nil {
		return record.File{}, fmt.Errorf("receive the file: %w", err)
	}
	defer got.drop()
	counted, err := l.ClaimRoom(ctx, who.Project, who.Key, got.size)
	if err != nil {
		return record.File{}, err
	}
	defer counted()
	f := record.File{
		ID: ident.New(ident.File), Project: who.Project, User: who.User, Name: fileName(n.Name), Size: got.size, SHA256: got.hash, Purpose: n.Purpose, Created: l.work.Now(), Home: l.work.HomeID(),
	}
	if n.Life > 0 {
		f.Expires = f.Created.Add(n.Life)
	}
	defer l.contents.lockContent(f.SHA256)()
	if err := l.contents.placeContent(got); err != nil {
		return record.File{}, err
	}
	if err := l.work.Store.AddFile(ctx, f); err != nil {
		return record.File{}, fmt.Errorf("add the file: %w", err) // the sweep removes the content, unless the record was written after all
	}
	return f, nil
}

// ClaimRoom counts bytes against the project's quota that no record counts yet, so that two uploads or forks at the same time do not get the same room.
func (l *Library) ClaimRoom(ctx context.Context, project, key string, size int64) (counted func(), err error) {
	c := l.contents
	c.mu.Lock()
	c.held[project] += size
	held := c.held[project]
	c.mu.Unlock()
	counted = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held[project] -= size; c.held[project] == 0 {
			delete(c.held, project)
		}
	}
	if err := l.meter.MayStore(ctx, project, key, held); err != nil {
		counted()
		return nil, err
	}
	return counted, nil
}

// fileName makes a harmless name from a client's: one name, without folders, of characters that can be shown.
func fileName(said string) string {
	name := path.Base(strings.ReplaceAll(strings.ToValidUTF8(said, ""), `\`, "/"))
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, name))
	if len(name) > longestFileName {
		ext := path.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		name = strings.ToValidUTF8(name[:longestFileName-len(ext)], "") + ext
	}
	if name == "" || name == "." || name == ".." || name == "/" {
		return "file"
	}
	return name
}

// File returns a stored file's record. Needs auth.FilesRead.
func (l *Library) File(ctx context.Context, who auth.Principal, id string) (record.File, error) {
	if err := who.Require(auth.FilesRead); err != nil {
		return record.File{}, err
	}
	return l.FindFile(ctx, who, id)
}

// FindFile is File for a caller whose rights were asked for already.
func (l *Library) FindFile(ctx context.Context, who auth.Principal, id string) (record.File, error) {
	f, err := l.work.Store.File(ctx, who.Project, id)
	if err == nil && l.hasExpired(f) {
		err = problem.New(problem.FileNotFound, "the file has expired")
	}
	if err != nil {
		return record.File{}, err
	}
	return f, nil
}

// hasExpired says whether a file has expired.
func (l *Library) hasExpired(f record.File) bool {
	return !f.Expires.IsZero() && !l.work.Now().Before(f.Expires)
}

// Files lists stored files, the newest first. Needs auth.FilesRead.
func (l *Library) Files(ctx context.Context, who auth.Principal, purpose string, p record.Page) (record.Listing[record.File], error) {
	if err := who.Require(auth.FilesRead); err != nil {
		return record.Listing[record.File]{}, err
	}
	list, err := l.work.Store.Files(ctx, who.Project, purpose, p)
	if err != nil {
		return record.Listing[record.File]{}, err
	}
	list.Items = slices.DeleteFunc(list.Items, l.hasExpired)
	return list, nil
}

// OpenFile returns a stored file's content. Needs auth.FilesRead.
func (l *Library) OpenFile(ctx context.Context, who auth.Principal, id string) (record.File, io.ReadSeekCloser, error) {
	f, err := l.File(ctx, who, id)
	if err != nil {
		return record.File{}, nil, err
	}
	content, err := l.OpenContent(ctx, f)
	if err != nil {
		return record.File{}, nil, err
	}
	return f, content, nil
}

// OpenContent opens a stored file's content.
func (l *Library) OpenContent(ctx context.Context, f record.File) (io.ReadSeekCloser, error) {
	content, err := l.contents.openHash(f.SHA256)
	if err != nil && f.Home != "" && f.Home != l.work.HomeID() {
		return nil, l.work.ElsewhereProblem(ctx, problem.FileElsewhere, "file", f.Home)
	}
	return content, err
}

// DeleteFile removes a stored file. Needs auth.FilesWrite.
func (l *Library) DeleteFile(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.FilesWrite)
	if err == nil {
		err = l.deleteFile(ctx, who.Project, id)
	}
	l.work.WriteAudit(ctx, who, "file.delete", id, "", err)
	return err
}

func (l *Library) deleteFile(ctx context.Context, project, id string) error {
	f, err := l.work.Store.DeleteFile(ctx, project, id)
	if err != nil {
		return err
	}
	if err := l.removeUnused(context.WithoutCancel(ctx), f.SHA256); err != nil {
		l.work.Log.WarnContext(ctx, "the content of a deleted file is still there", "file", id, "error", err)
	}
	return nil
}

// removeUnused removes those of the contents that no file refers to any more.
func (l *Library) removeUnused(ctx context.Context, hashes ...string) error {
	return l.contents.removeContents(hashes, func(hashes []string) ([]string, error) { return l.work.Store.UnusedContent(ctx, hashes) })
}

// SweepFiles deletes files that have expired, and contents that a crash has left without a record.
func (l *Library) SweepFiles(ctx context.Context) error {
	expired, err := l.work.Store.ExpiredFiles(ctx, l.work.Now(), filesBatch)
	if err != nil {
		return fmt.Errorf("look for expired files: %w", err)
	}
	for _, f := range expired {
		if err := l.deleteFile(ctx, f.Project, f.ID); err != nil && problem.Of(err).Kind != problem.NotFound {
			return fmt.Errorf("delete an expired file: %w", err)
		}
	}
	found, err := l.contents.staleContents()
	if err != nil {
		return fmt.Errorf("look through the contents of files: %w", err)
	}
	unused, err := l.work.Store.UnusedContent(ctx, slices.DeleteFunc(found, func(hash string) bool { return !isHash(hash) }))
	if err != nil {
		return fmt.Errorf("look for contents that no file has: %w", err)
	}
	return l.removeUnused(ctx, unused...)
}
