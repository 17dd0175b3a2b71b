package hub

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/server/auth"
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
func (h *Hub) AddFile(ctx context.Context, who auth.Principal, n NewFile, r io.Reader) (File, error) {
	f, err := h.addFile(ctx, who, n, r)
	h.work.WriteAudit(ctx, who, "file.create", f.ID, "sha256 "+f.SHA256, err)
	if err != nil {
		return File{}, err
	}
	h.AddUsage(ctx, who, Usage{UploadBytes: f.Size})
	return f, nil
}

func (h *Hub) addFile(ctx context.Context, who auth.Principal, n NewFile, r io.Reader) (File, error) {
	if err := who.Require(auth.FilesWrite); err != nil {
		return File{}, err
	}
	if n.Life < 0 || len(n.Purpose) > longestPurpose || strings.ContainsFunc(n.Purpose, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return File{}, problem.New(problem.InvalidRequest, "a file's purpose must be a short word, and its life must not be negative")
	}
	if err := h.MayStore(ctx, who.Project, who.Key, 0); err != nil {
		return File{}, err
	}
	got, err := h.contents.receive(ctx, r, h.o.Limits.File)
	if err != nil {
		return File{}, fmt.Errorf("receive the file: %w", err)
	}
	defer got.drop()
	counted, err := h.claim(ctx, who.Project, who.Key, got.size)
	if err != nil {
		return File{}, err
	}
	defer counted()
	f := File{
		ID: ident.New(ident.File), Project: who.Project, User: who.User, Name: fileName(n.Name), Size: got.size, SHA256: got.hash, Purpose: n.Purpose, Created: h.work.Now(), Home: h.work.HomeID(),
	}
	if n.Life > 0 {
		f.Expires = f.Created.Add(n.Life)
	}
	defer h.contents.lock(f.SHA256)()
	if err := h.contents.place(got); err != nil {
		return File{}, err
	}
	if err := h.work.Store.AddFile(ctx, f); err != nil {
		return File{}, fmt.Errorf("add the file: %w", err) // the sweep removes the content, unless the record was written after all
	}
	return f, nil
}

// claim counts bytes against the project's quota that no record counts yet, so that two uploads or forks at the same time do not get the same room.
func (h *Hub) claim(ctx context.Context, project, key string, size int64) (counted func(), err error) {
	c := h.contents
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
	if err := h.MayStore(ctx, project, key, held); err != nil {
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
func (h *Hub) File(ctx context.Context, who auth.Principal, id string) (File, error) {
	if err := who.Require(auth.FilesRead); err != nil {
		return File{}, err
	}
	return h.file(ctx, who, id)
}

func (h *Hub) file(ctx context.Context, who auth.Principal, id string) (File, error) {
	f, err := h.work.Store.File(ctx, who.Project, id)
	if err == nil && h.over(f) {
		err = problem.New(problem.FileNotFound, "the file has expired")
	}
	if err != nil {
		return File{}, err
	}
	return f, nil
}

// over says whether a file has expired.
func (h *Hub) over(f File) bool { return !f.Expires.IsZero() && !h.work.Now().Before(f.Expires) }

// Files lists stored files, the newest first. Needs auth.FilesRead.
func (h *Hub) Files(ctx context.Context, who auth.Principal, purpose string, p Page) (Listing[File], error) {
	if err := who.Require(auth.FilesRead); err != nil {
		return Listing[File]{}, err
	}
	l, err := h.work.Store.Files(ctx, who.Project, purpose, p)
	if err != nil {
		return Listing[File]{}, err
	}
	l.Items = slices.DeleteFunc(l.Items, h.over)
	return l, nil
}

// OpenFile returns a stored file's content. Needs auth.FilesRead.
func (h *Hub) OpenFile(ctx context.Context, who auth.Principal, id string) (File, io.ReadSeekCloser, error) {
	f, err := h.File(ctx, who, id)
	if err != nil {
		return File{}, nil, err
	}
	content, err := h.content(ctx, f)
	if err != nil {
		return File{}, nil, err
	}
	return f, content, nil
}

// content opens a stored file's content.
func (h *Hub) content(ctx context.Context, f File) (io.ReadSeekCloser, error) {
	content, err := h.contents.open(f.SHA256)
	if err != nil && f.Home != "" && f.Home != h.work.HomeID() {
		return nil, h.work.ElsewhereProblem(ctx, problem.FileElsewhere, "file", f.Home)
	}
	return content, err
}

// DeleteFile removes a stored file. Needs auth.FilesWrite.
func (h *Hub) DeleteFile(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.FilesWrite)
	if err == nil {
		err = h.deleteFile(ctx, who.Project, id)
	}
	h.work.WriteAudit(ctx, who, "file.delete", id, "", err)
	return err
}

func (h *Hub) deleteFile(ctx context.Context, project, id string) error {
	f, err := h.work.Store.DeleteFile(ctx, project, id)
	if err != nil {
		return err
	}
	if err := h.discard(context.WithoutCancel(ctx), f.SHA256); err != nil {
		h.work.Log.WarnContext(ctx, "the content of a deleted file is still there", "file", id, "error", err)
	}
	return nil
}

// discard removes those of the contents that no file refers to any more.
func (h *Hub) discard(ctx context.Context, hashes ...string) error {
	return h.contents.remove(hashes, func(hashes []string) ([]string, error) { return h.work.Store.UnusedContent(ctx, hashes) })
}

// sweepFiles deletes files that have expired, and contents that a crash has left without a record.
func (h *Hub) sweepFiles(ctx context.Context) error {
	expired, err := h.work.Store.ExpiredFiles(ctx, h.work.Now(), filesBatch)
	if err != nil {
		return fmt.Errorf("look for expired files: %w", err)
	}
	for _, f := range expired {
		if err := h.deleteFile(ctx, f.Project, f.ID); err != nil && problem.Of(err).Kind != problem.NotFound {
			return fmt.Errorf("delete an expired file: %w", err)
		}
	}
	found, err := h.contents.stale()
	if err != nil {
		return fmt.Errorf("look through the contents of files: %w", err)
	}
	unused, err := h.work.Store.UnusedContent(ctx, slices.DeleteFunc(found, func(hash string) bool { return !isHash(hash) }))
	if err != nil {
		return fmt.Errorf("look for contents that no file has: %w", err)
	}
	return h.discard(ctx, unused...)
}

// Bounds of what a caller may have installed.
const (
	mostRequired    = 100 // requirements of one call
	longestRequired = 500
)

// PutFile copies a stored file into a session's workspace under path ("" is its name). Needs auth.FilesWrite.
func (h *Hub) PutFile(ctx context.Context, who auth.Principal, session, file, path string) (info workspace.Entry, err error) {
	defer func() { h.work.WriteAudit(ctx, who, "session.file.put", session, file+" "+path, err) }()
	if err := who.Require(auth.FilesWrite); err != nil {
		return workspace.Entry{}, err
	}
	f, err := h.file(ctx, who, file)
	if err != nil {
		return workspace.Entry{}, err
	}
	content, err := h.content(ctx, f)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer func() { _ = content.Close() }()
	if path == "" {
		path = f.Name
	}
	err = h.use(ctx, who, session, func(ctx context.Context, l Live) error {
		info, err = l.Write(ctx, path, content)
		return err
	})
	return info, err
}

// Install makes packages (PEP 508) importable in a session. Needs auth.PackagesInstall.
func (h *Hub) Install(ctx context.Context, who auth.Principal, session string, requirements []string, told func(installation.Progress)) (p installation.Provision, err error) {
	defer func() { h.work.WriteAudit(ctx, who, "packages.install", session, strings.Join(requirements, " "), err) }()
	if err := who.Require(auth.PackagesInstall); err != nil {
		return p, err
	}
	wanted, err := parsed(requirements)
	if err != nil {
		return p, err
	}
	err = h.use(ctx, who, session, func(ctx context.Context, l Live) error {
		p, err = l.Install(ctx, wanted, told)
		return err
	})
	return p, err
}

func parsed(requirements []string) ([]require.Requirement, error) {
	if n := len(requirements); n == 0 || n > mostRequired {
		return nil, problem.New(problem.PackageName, fmt.Sprintf("ask for 1 to %d packages", mostRequired))
	}
	var wanted []require.Requirement
	for _, text := range requirements {
		if len(text) > longestRequired {
			return nil, problem.New(problem.PackageName, fmt.Sprintf("%.40q is too long for a requirement", text))
		}
		r, err := require.Parse(text)
		if err != nil {
			return nil, problem.New(problem.PackageName, fmt.Sprintf("%.80q is not a requirement that can be installed: %v", text, err)).
				WithHint("write a package's name, with versions if needed, such as polars or pandas>=2,<3")
		}
		wanted = append(wanted, r)
	}
	return wanted, nil
}

// Packages returns the version of a session's Python and of its packages by name. Needs auth.SessionsRead.
func (h *Hub) Packages(ctx context.Context, who auth.Principal, session string) (python string, packages map[string]string, err error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return "", nil, err
	}
	err = h.peek(ctx, who, session, func(_ context.Context, l Live) error {
		var own map[string]string
		python, own = l.Python()
		packages = maps.Clone(own)
		if packages == nil {
			packages = map[string]string{}
		}
		maps.Copy(packages, l.Installed().Packages)
		return nil
	})
	return python, packages, err
}
