package librechat

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/server/hub"
)

const (
	mostParts = 200 // of an upload
	// kept is how long an uploaded file is kept.
	kept = 7 * 24 * time.Hour
)

// stored is what is told of an uploaded file.
type stored struct {
	Status string `json:"status"`
	ID     string `json:"fileId"`
	Name   string `json:"filename"`
}

// upload stores the files of a form together.
func (s *server) upload(c *call) error {
	c.Body = bodybudget.Bounded(c.w, c.Body, s.MaxFiles)
	parts, err := c.MultipartReader()
	if err != nil {
		return problem.New(problem.InvalidRequest, "an upload is a form with files")
	}
	storage, files := newID(), []stored{}
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && n >= mostParts {
			err = problem.New(problem.InvalidRequest, "the form has too many parts")
		}
		if err != nil {
			return broken(err)
		}
		if part.FileName() == "" {
			continue // who it is for; NextPart reads over it
		}
		f, err := s.store(c, storage, part)
		if err != nil {
			return broken(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return problem.New(problem.InvalidRequest, "the form has no file")
	}
	return c.reply(map[string]any{"message": "success", "session_id": storage, "storage_session_id": storage, "files": files, "succeeded": len(files), "failed": 0})
}

func (s *server) store(c *call, storage string, part *multipart.Part) (stored, error) {
	f, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: path.Base(part.FileName()), Purpose: purpose + storage, Life: kept}, part)
	return stored{"success", foreign(f.ID), f.Name}, err
}

// broken keeps problems, and says of anything else that the form was not whole.
func broken(err error) error {
	_, long := errors.AsType[*http.MaxBytesError](err)
	if _, known := errors.AsType[*problem.Error](err); known || long {
		return err
	}
	return problem.New(problem.InvalidRequest, "the form could not be read to its end").WithCause(err)
}

// item is a file of a list.
type item struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Storage  string            `json:"session_id"`
	Size     int64             `json:"size"`
	Modified string            `json:"lastModified"`
	Etag     string            `json:"etag,omitempty"`
	Metadata map[string]string `json:"metadata"`
}

func itemOf(storage, id, name string, size int64, at time.Time, etag string) item {
	return item{id, name, storage, size, at.UTC().Format(time.RFC3339), etag, map[string]string{"original-filename": name}}
}

func (s *server) list(c *call) error {
	storage, all := c.PathValue("storage"), []item{}
	_, entries, err := s.objects(c.Context(), c, storage)
	if err == nil {
		for _, e := range entries {
			all = append(all, itemOf(storage, objectID(storage, e.Path), e.Path, e.Size, e.Modified, e.Stamp))
		}
		return c.reply(all)
	}
	if !problem.Has(err, problem.FileNotFound) {
		return err
	}
	files, err := s.Hub.Files(c.Context(), c.who, purpose+storage, hub.Page{Limit: 100})
	if err != nil {
		return err
	}
	if len(files.Items) == 0 {
		return absent()
	}
	for _, f := range files.Items {
		all = append(all, itemOf(storage, foreign(f.ID), f.Name, f.Size, f.Created, f.SHA256))
	}
	return c.reply(all)
}

// look says whether a file is still there: LibreChat uploads one again that is not.
func (s *server) look(c *call) error {
	storage, object := c.PathValue("storage"), c.PathValue("object")
	if f, _, err := s.uploaded(c.Context(), c, storage, object); err == nil {
		return c.reply(itemOf(storage, object, f.Name, f.Size, f.Created, f.SHA256))
	}
	_, e, err := s.object(c.Context(), c, storage, object)
	if err != nil {
		return err
	}
	return c.reply(itemOf(storage, object, e.Path, e.Size, e.Modified, e.Stamp))
}

// download answers with a file's bytes, as a file to be saved: what code has made is nothing that a browser should show as the server's.
func (s *server) download(c *call) error {
	storage, object := c.PathValue("storage"), c.PathValue("object")
	if _, id, err := s.uploaded(c.Context(), c, storage, object); err == nil {
		f, r, err := s.Hub.OpenFile(c.Context(), c.who, id)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		c.attach(f.Name, f.Size)
		_, _ = io.Copy(c.w, r)
		return nil
	}
	session, e, err := s.object(c.Context(), c, storage, object)
	if err != nil {
		return err
	}
	return s.Hub.Tree(c.Context(), c.who, session, false, func(ctx context.Context, t hub.Tree) error {
		begun := &beginning{c: c, name: e.Path, size: e.Size}
		_, err := t.Read(ctx, e.Path, 0, e.Size, begun)
		if begun.begun {
			return nil // the client sees from the length that something is missing
		}
		if err == nil {
			c.attach(e.Path, 0)
		}
		return err
	})
}

// beginning writes the headers before the first byte, when the file was found to be readable.
type beginning struct {
	c     *call
	name  string
	size  int64
	begun bool
}

func (b *beginning) Write(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.c.attach(b.name, b.size)
	}
	return b.c.w.Write(p)
}

func (c *call) attach(name string, size int64) {
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(path.Base(name)))
}

func (s *server) remove(c *call) error {
	storage, object := c.PathValue("storage"), c.PathValue("object")
	if _, id, err := s.uploaded(c.Context(), c, storage, object); err == nil {
		if err := s.Hub.DeleteFile(c.Context(), c.who, id); err != nil {
			return err
		}
		return c.reply(map[string]string{"message": "success"})
	}
	session, e, err := s.object(c.Context(), c, storage, object)
	if err == nil {
		err = s.Hub.Tree(c.Context(), c.who, session, true, func(ctx context.Context, t hub.Tree) error { return t.Remove(ctx, e.Path, false) })
	}
	if err != nil {
		return err
	}
	return c.reply(map[string]string{"message": "success"})
}
