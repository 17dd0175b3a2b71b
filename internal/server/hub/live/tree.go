package live

import (
	"context"
	"io"

	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub/files"
	"cove/internal/server/hub/record"
)

// Tree loads a session and calls use with its workspace, which use may not keep. With write, use may change the workspace, which needs auth.FilesWrite,
// otherwise auth.FilesRead. Bytes that use writes are bounded by Limits.File and counted, and its changes are in the audit log.
func (m *Manager) Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, Tree) error) error {
	if !write {
		if err := who.Require(auth.FilesRead); err != nil {
			return err
		}
		return m.PeekSession(ctx, who, session, func(ctx context.Context, l Live) error { return use(ctx, readOnly{l}) })
	}
	if err := who.Require(auth.FilesWrite); err != nil {
		m.work.WriteAudit(ctx, who, "session.files.write", session, "", err)
		return err
	}
	return m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
		return use(ctx, &watched{Tree: l, m: m, who: who, session: session})
	})
}

// watched is a workspace whose changes are written to the audit log.
type watched struct {
	Tree
	m       *Manager
	who     auth.Principal
	session string
}

func (w *watched) Write(ctx context.Context, path string, r io.Reader) (info workspace.Entry, err error) {
	if err = w.m.meter.MayStore(ctx, w.who.Project, w.who.Key, 0); err == nil {
		info, err = w.Tree.Write(ctx, path, files.NewBoundedReader(ctx, r, w.m.o.Limits.File))
	}
	w.m.work.WriteAudit(ctx, w.who, "session.file.write", w.session, path, err)
	if err == nil {
		w.m.meter.AddUsage(ctx, w.who, record.Usage{UploadBytes: info.Size})
	}
	return info, err
}

func (w *watched) Move(ctx context.Context, from, to string) error {
	err := w.Tree.Move(ctx, from, to)
	w.m.work.WriteAudit(ctx, w.who, "session.file.move", w.session, from+" to "+to, err)
	return err
}

func (w *watched) Remove(ctx context.Context, path string, all bool) error {
	err := w.Tree.Remove(ctx, path, all)
	w.m.work.WriteAudit(ctx, w.who, "session.file.delete", w.session, path, err)
	return err
}

func (w *watched) MakeFolder(ctx context.Context, path string) error {
	err := w.Tree.MakeFolder(ctx, path)
	w.m.work.WriteAudit(ctx, w.who, "session.folder.create", w.session, path, err)
	return err
}

// readOnly is a workspace that refuses changes, for a use without write.
type readOnly struct{ Tree }

func (readOnly) refuse() error {
	return problem.New(problem.Forbidden, "the session's files were opened for reading only")
}

func (r readOnly) Write(context.Context, string, io.Reader) (workspace.Entry, error) {
	return workspace.Entry{}, r.refuse()
}
func (r readOnly) Move(context.Context, string, string) error { return r.refuse() }
func (r readOnly) Remove(context.Context, string, bool) error { return r.refuse() }
func (r readOnly) MakeFolder(context.Context, string) error   { return r.refuse() }
