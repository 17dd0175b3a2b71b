package hub

import (
	"context"
	"io"
	"time"

	"cove/internal/auth"
	"cove/internal/pydeps"
	"cove/internal/wire"
)

// Tree returns the workspace of a session for as long as use runs, bringing the session into memory. write says that use changes it,
// which needs auth.FilesWrite, else auth.FilesRead.
func (h *Hub) Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, Tree) error) error {
	return errTodo
}

// NewFile says how a file is stored.
type NewFile struct {
	Name    string
	Purpose string
	Life    time.Duration // 0: for ever
}

// AddFile stores a file's bytes. Needs auth.FilesWrite. Problems: file_too_large, quota_disk.
func (h *Hub) AddFile(ctx context.Context, who auth.Principal, n NewFile, r io.Reader) (File, error) {
	return File{}, errTodo
}

// File returns a stored file's record. Needs auth.FilesRead.
func (h *Hub) File(ctx context.Context, who auth.Principal, id string) (File, error) {
	return File{}, errTodo
}

// Files lists stored files, the newest first. Needs auth.FilesRead.
func (h *Hub) Files(ctx context.Context, who auth.Principal, purpose string, p Page) (Listing[File], error) {
	return Listing[File]{}, errTodo
}

// OpenFile returns a stored file's content. Needs auth.FilesRead.
func (h *Hub) OpenFile(ctx context.Context, who auth.Principal, id string) (File, io.ReadSeekCloser, error) {
	return File{}, nil, errTodo
}

// DeleteFile removes a stored file. Needs auth.FilesWrite.
func (h *Hub) DeleteFile(ctx context.Context, who auth.Principal, id string) error {
	return errTodo
}

// PutFile copies a stored file into a session's workspace under path ("" is its name). Needs auth.FilesWrite.
func (h *Hub) PutFile(ctx context.Context, who auth.Principal, session, file, path string) (wire.FileInfo, error) {
	return wire.FileInfo{}, errTodo
}

// Install makes packages (PEP 508) importable in a session. Needs auth.PackagesInstall.
func (h *Hub) Install(ctx context.Context, who auth.Principal, session string, requirements []string, told func(pydeps.Progress)) (pydeps.Provision, error) {
	return pydeps.Provision{}, errTodo
}

// Packages returns the version of a session's Python and of its packages by name. Needs auth.SessionsRead.
func (h *Hub) Packages(ctx context.Context, who auth.Principal, session string) (python string, packages map[string]string, err error) {
	return "", nil, errTodo
}

// Usage returns what was used on the days from first to last (2026-11-21), by the project or by one of its keys. Needs auth.UsageRead.
func (h *Hub) Usage(ctx context.Context, who auth.Principal, key, first, last string) ([]Usage, error) {
	return nil, errTodo
}
