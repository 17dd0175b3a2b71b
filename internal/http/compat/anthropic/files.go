package anthropic

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/http/byterange"
	"cove/internal/server/hub"
)

func shownFile(f hub.File) object {
	o := object{"id": fileID(f.ID), "type": "file", "filename": f.Name, "mime_type": mimeOf(f.Name), "size_bytes": f.Size,
		"created_at": f.Created.UTC().Format(time.RFC3339Nano), "downloadable": true, "expires_at": nil}
	if !f.Expires.IsZero() {
		o["expires_at"] = f.Expires.UTC().Format(time.RFC3339Nano)
	}
	return o
}

// mimeOf goes by the name. What a machine's own table says is not asked first, so that every server says the same of common files.
func mimeOf(name string) string {
	suffix := strings.ToLower(path.Ext(name))
	known := map[string]string{".csv": "text/csv", ".txt": "text/plain", ".md": "text/markdown", ".py": "text/x-python", ".json": "application/json",
		".pdf": "application/pdf", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
		".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".zip": "application/zip"}
	if kind := known[suffix]; kind != "" {
		return kind
	}
	kind, _, err := mime.ParseMediaType(mime.TypeByExtension(suffix))
	if err != nil {
		return "application/octet-stream"
	}
	return kind
}

func tooLarge(most int64) *fault {
	return &fault{status: http.StatusRequestEntityTooLarge, kind: "request_too_large", final: true,
		message: "The file is larger than the " + strconv.FormatInt(most, 10) + " bytes that this server takes."}
}

func (s *server) addFile(c *call) error {
	u, err := s.receive(c)
	defer u.close()
	if err != nil {
		return err
	}
	switch {
	case u.file == nil:
		return invalid("file: Field required")
	case u.size > s.MaxFile:
		return tooLarge(s.MaxFile)
	}
	var life time.Duration
	if u.expires != "" {
		n, err := strconv.ParseInt(u.expires, 10, 64)
		if err != nil || n < 1 || n > 10*365*24*3600 {
			return invalid("expires_in_seconds: Input should be an integer from 1 to 315360000")
		}
		life = time.Duration(n) * time.Second
	}
	record, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: u.name, Purpose: "user_data", Life: life}, u.file)
	if err != nil {
		return err
	}
	return c.reply(shownFile(record))
}

const (
	usualPage = 20
	mostPage  = 100 // a client that asks for more gets this many, and where the next ones are
	mostIDs   = 100
)

func (s *server) listFiles(c *call) error {
	q := c.URL.Query()
	p := hub.Page{Limit: usualPage, After: q.Get("page")}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return invalid("limit: Input should be an integer from 1 to 1000")
		}
		p.Limit = min(n, mostPage)
	}
	if ids := slices.Concat(q["ids"], q["ids[]"]); len(ids) > 0 {
		return s.namedFiles(c, ids)
	}
	if q.Get("before_id") != "" || q.Get("scope_id") != "" {
		return invalid("This server lists files with limit, page, after_id and ids.")
	}
	after := q.Get("after_id")
	if after != "" {
		// The hub's cursors are its own: the page after a file is found by going there.
		p.Limit = mostPage
	}
	for {
		l, err := s.Hub.Files(c.Context(), c.who, "", p)
		if err != nil {
			return err
		}
		all := []object{}
		for _, f := range l.Items {
			switch {
			case after == "":
				all = append(all, shownFile(f))
			case fileID(f.ID) == after:
				after = ""
			}
		}
		if after == "" && (len(all) > 0 || l.Next == "") {
			return c.reply(page(all, l.Next))
		}
		if p.After = l.Next; l.Next == "" {
			return noFile(after)
		}
	}
}

func (s *server) namedFiles(c *call, ids []string) error {
	if len(ids) > mostIDs {
		return invalid("ids: at most " + strconv.Itoa(mostIDs) + " files can be asked for at once")
	}
	all := []object{}
	for _, id := range ids {
		record, err := s.fileOf(c, id)
		if err == nil {
			all = append(all, shownFile(record))
		} else if f, ok := errors.AsType[*fault](err); !ok || f.status != http.StatusNotFound {
			return err
		}
	}
	return c.reply(page(all, ""))
}

func (s *server) fileOf(c *call, id string) (hub.File, error) {
	file, err := ownFile(id)
	if err != nil {
		return hub.File{}, err
	}
	record, err := s.Hub.File(c.Context(), c.who, file)
	return record, named(err, noFile(id))
}

func (s *server) getFile(c *call) error {
	record, err := s.fileOf(c, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.reply(shownFile(record))
}

func (s *server) deleteFile(c *call) error {
	file, err := ownFile(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.Hub.DeleteFile(c.Context(), c.who, file); err != nil {
		return named(err, noFile(c.PathValue("id")))
	}
	return c.reply(object{"id": c.PathValue("id"), "type": "file_deleted"})
}

func (s *server) fileContent(c *call) error {
	file, err := ownFile(c.PathValue("id"))
	if err != nil {
		return err
	}
	record, content, err := s.Hub.OpenFile(c.Context(), c.who, file)
	if err != nil {
		return named(err, noFile(c.PathValue("id")))
	}
	defer func() { _ = content.Close() }()
	// Browsers must not show what users and code wrote as if it were a page of this server.
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename*=UTF-8''%s", strings.ReplaceAll(url.QueryEscape(record.Name), "+", "%20")))
	http.ServeContent(c.w, byterange.One(c.Request, ""), "", record.Created, content)
	return nil
}
