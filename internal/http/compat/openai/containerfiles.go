package openai

import (
	"context"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/server/hub"
)

const (
	mostEntries = 10000 // of a workspace that is listed
	deepest     = 16    // folders in folders
)

type containerFile struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Bytes       int64  `json:"bytes"`
	ContainerID string `json:"container_id"`
	CreatedAt   int64  `json:"created_at"`
	Path        string `json:"path"`
	Source      string `json:"source"`
}

func shownContainerFile(session hub.Session, info workspace.Entry) containerFile {
	f := containerFile{ID: cfileID(info.Path), Object: "container.file", Bytes: info.Size, ContainerID: containerID(session.ID),
		CreatedAt: info.Modified.Unix(), Path: mounted + info.Path, Source: "assistant"}
	if info.Modified.IsZero() {
		f.CreatedAt = session.Created.Unix()
	}
	if fromUser(session, info.Path) {
		f.Source = "user"
	}
	return f
}

func (s *server) addContainerFile(c *call) error {
	session, err := s.container(c, c.PathValue("id"))
	if err != nil {
		return err
	}
	if !isMultipart(c) {
		f, err := s.readForm(c)
		if err != nil {
			return err
		}
		f.only("file_id")
		id := f.needed("file_id")
		if f.err != nil {
			return f.err
		}
		return s.putStored(c, session, id)
	}
	u, err := s.receive(c)
	defer u.close()
	switch {
	case err != nil:
		return err
	case u.field("file_id") != "" && u.file == nil:
		return s.putStored(c, session, u.field("file_id"))
	case u.file == nil:
		return missing("file")
	case u.size > s.MaxFile:
		return s.tooLarge()
	}
	var info workspace.Entry
	err = s.Hub.Tree(c.Context(), c.who, session.ID, true, func(ctx context.Context, t hub.Tree) error {
		var err error
		info, err = t.Write(ctx, u.name, u.file)
		return err
	})
	if err != nil {
		return err
	}
	return s.replyUploaded(c, session, info)
}

func (s *server) putStored(c *call, session hub.Session, id string) error {
	file, err := ownFile(id)
	if err != nil {
		return err
	}
	info, err := s.Hub.PutFile(c.Context(), c.who, session.ID, file, "")
	if err != nil {
		if problem.Has(err, problem.FileNotFound) {
			err = noFile(id)
		}
		return err
	}
	return s.replyUploaded(c, session, info)
}

func (s *server) replyUploaded(c *call, session hub.Session, info workspace.Entry) error {
	s.noteUpload(c, session, info.Path)
	shown := shownContainerFile(session, info)
	shown.Source = "user"
	return c.reply(shown)
}

func (s *server) listContainerFiles(c *call) error {
	q, err := readPage(c, 20, 100)
	if err != nil {
		return err
	}
	session, err := s.container(c, c.PathValue("id"))
	if err != nil {
		return err
	}
	var infos []workspace.Entry
	err = s.Hub.Tree(c.Context(), c.who, session.ID, false, func(ctx context.Context, t hub.Tree) error {
		var err error
		infos, err = walk(ctx, t, "", 0, nil)
		return err
	})
	if err != nil {
		return err
	}
	var entries []entry
	for _, info := range infos {
		entries = append(entries, entry{cfileID(info.Path), shownContainerFile(session, info)})
	}
	q.oldest = true // files have an order of their own: by path
	if c.URL.Query().Get("order") == "desc" {
		q.oldest = false
	}
	page, err := q.cut(entries)
	if err != nil {
		return err
	}
	return c.reply(page)
}

// walk lists the files of a workspace, folder by folder. Hidden ones, as caches, are left out.
func walk(ctx context.Context, t hub.Tree, dir string, depth int, found []workspace.Entry) ([]workspace.Entry, error) {
	entries, _, err := t.List(ctx, dir)
	if err != nil {
		return found, err
	}
	for _, e := range entries {
		if e.Path = within(dir, e.Path); hidden(e.Path) || len(found) >= mostEntries {
			continue
		}
		if !e.Folder {
			found = append(found, e)
			continue
		}
		if depth < deepest {
			if found, err = walk(ctx, t, e.Path, depth+1, found); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// within is an entry's path below the workspace.
func within(dir, name string) string {
	if dir == "" || strings.HasPrefix(name, dir+"/") {
		return name
	}
	return path.Join(dir, name)
}

// containerFileOf returns the session and the path that the request names.
func (s *server) containerFileOf(c *call) (hub.Session, string, error) {
	session, err := s.container(c, c.PathValue("id"))
	if err != nil {
		return session, "", err
	}
	file, ok := cfilePath(c.PathValue("file"))
	if !ok {
		return session, "", noContainerFile(c)
	}
	return session, file, nil
}

func noContainerFile(c *call) error {
	return absent("Container file with id '" + short(c.PathValue("file")) + "' not found.")
}

// inTree uses a file of a container; what is not there, or not a file, is not found.
func (s *server) inTree(c *call, write bool, use func(ctx context.Context, t hub.Tree, session hub.Session, info workspace.Entry) error) error {
	session, file, err := s.containerFileOf(c)
	if err != nil {
		return err
	}
	return s.Hub.Tree(c.Context(), c.who, session.ID, write, func(ctx context.Context, t hub.Tree) error {
		info, err := t.Stat(ctx, file)
		if err == nil && info.Folder {
			return noContainerFile(c)
		}
		if err != nil {
			return fileFault(c, err)
		}
		info.Path = file
		return fileFault(c, use(ctx, t, session, info))
	})
}

func fileFault(c *call, err error) error {
	if err == nil {
		return nil
	}
	switch problem.Of(err).Code {
	case string(problem.FileNotFound), string(problem.FileDenied), string(problem.InvalidPath):
		return noContainerFile(c)
	}
	return err
}

func (s *server) getContainerFile(c *call) error {
	return s.inTree(c, false, func(_ context.Context, _ hub.Tree, session hub.Session, info workspace.Entry) error {
		return c.reply(shownContainerFile(session, info))
	})
}

func (s *server) deleteContainerFile(c *call) error {
	return s.inTree(c, true, func(ctx context.Context, t hub.Tree, _ hub.Session, info workspace.Entry) error {
		if err := t.Remove(ctx, info.Path, false); err != nil {
			return err
		}
		return c.reply(deleted{c.PathValue("file"), "container.file.deleted", true})
	})
}

func (s *server) containerFileContent(c *call) error {
	begun := false
	err := s.inTree(c, false, func(ctx context.Context, t hub.Tree, _ hub.Session, info workspace.Entry) error {
		w := &lateHeader{begin: func() {
			begun = true
			asDownload(c.w, path.Base(info.Path))
			c.w.Header().Set("Content-Length", strconv.FormatInt(info.Size, 10))
		}, w: c.w}
		if _, err := t.Read(ctx, info.Path, 0, info.Size, w); err != nil {
			return err
		}
		if !begun {
			w.begin()
		}
		return nil
	})
	if err != nil && begun {
		// Half of the file is out: breaking the connection is the only honest end.
		panic(http.ErrAbortHandler)
	}
	return err
}

// lateHeader sets the headers when the first byte comes, so that what fails before can still be an error.
type lateHeader struct {
	begin func()
	w     io.Writer
	begun bool
}

func (l *lateHeader) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		l.begin()
	}
	return l.w.Write(p)
}
