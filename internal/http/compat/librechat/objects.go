package librechat

import (
	"context"
	"path"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/server/hub"
)

const (
	mostEntries = 10_000 // files of a workspace that is listed
	deepest     = 16     // folders in folders
	purpose     = "librechat."
)

func absent() error {
	return problem.New(problem.FileNotFound, "there is no such file").WithHint("upload it again")
}

// uploaded returns a stored file that was uploaded as a part of this storage, with its id in the hub.
func (s *server) uploaded(ctx context.Context, c *call, storage, object string) (hub.File, string, error) {
	id, ok := own(ident.File, object)
	if !ok {
		return hub.File{}, "", absent()
	}
	f, err := s.Hub.File(ctx, c.who, id)
	if err == nil && f.Purpose != purpose+storage {
		err = absent()
	}
	return f, id, err
}

// object returns a file of a session's workspace, and the session.
func (s *server) object(ctx context.Context, c *call, storage, object string) (session string, found workspace.Entry, err error) {
	session, all, err := s.objects(ctx, c, storage)
	if err != nil {
		return session, found, err
	}
	for _, e := range all {
		if objectID(storage, e.Path) == object {
			return session, e, nil
		}
	}
	return session, found, absent()
}

// objects lists the files of a session's workspace.
func (s *server) objects(ctx context.Context, c *call, storage string) (session string, all []workspace.Entry, err error) {
	session, ok := own(ident.Session, storage)
	if !ok {
		return "", nil, absent()
	}
	err = s.Hub.Tree(ctx, c.who, session, false, func(ctx context.Context, t hub.Tree) error {
		all, err = walk(ctx, t, "", 0, nil)
		return err
	})
	if problem.Has(err, problem.SessionNotFound) {
		err = absent()
	}
	return session, all, err
}

// walk lists files, folder by folder, without hidden ones.
func walk(ctx context.Context, t hub.Tree, dir string, depth int, found []workspace.Entry) ([]workspace.Entry, error) {
	entries, _, err := t.List(ctx, dir)
	if err != nil {
		return found, err
	}
	for _, e := range entries {
		if dir != "" && !strings.HasPrefix(e.Path, dir+"/") {
			e.Path = path.Join(dir, e.Path)
		}
		if strings.HasPrefix(path.Base(e.Path), ".") || len(found) >= mostEntries {
			continue
		}
		if !e.Folder {
			found = append(found, e)
		} else if depth < deepest {
			if found, err = walk(ctx, t, e.Path, depth+1, found); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}
