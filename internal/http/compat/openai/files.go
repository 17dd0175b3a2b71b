package openai

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/http/byterange"
	"cove/internal/server/hub"
)

type file struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at,omitempty"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`
}

func shownFile(f hub.File) file {
	shown := file{ID: fileID(f.ID), Object: "file", Bytes: f.Size, CreatedAt: f.Created.Unix(), Filename: f.Name, Purpose: f.Purpose, Status: "processed"}
	if shown.Purpose == "" { // stored through another surface
		shown.Purpose = "user_data"
	}
	if !f.Expires.IsZero() {
		shown.ExpiresAt = new(f.Expires.Unix())
	}
	return shown
}

func purposes() []string {
	return []string{"assistants", "batch", "fine-tune", "vision", "user_data", "evals"}
}

func (s *server) addFile(c *call) error {
	u, err := s.receive(c)
	defer u.close()
	if err != nil {
		return err
	}
	purpose := u.field("purpose")
	switch {
	case u.file == nil:
		return missing("file")
	case u.size > s.MaxFile:
		return s.tooLarge()
	case purpose == "":
		return missing("purpose")
	case !slices.Contains(purposes(), purpose):
		return notOneOf("purpose", purpose, purposes())
	}
	life, err := expiry(u)
	if err != nil {
		return err
	}
	record, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: u.name, Purpose: purpose, Life: life}, u.file)
	if err != nil {
		return err
	}
	return c.reply(shownFile(record))
}

func (s *server) tooLarge() error {
	return &fault{status: http.StatusRequestEntityTooLarge, kind: invalidRequest, param: "file", code: "file_too_large",
		message: "The file is larger than the " + strconv.FormatInt(s.MaxFile, 10) + " bytes that this server takes.", final: true}
}

// expiry reads expires_after[anchor] and expires_after[seconds]: an hour to 30 days after the upload.
func expiry(u *upload) (time.Duration, error) {
	anchor, text := u.field("expires_after[anchor]"), u.field("expires_after[seconds]")
	if anchor == "" && text == "" {
		return 0, nil
	}
	return lifeOf(anchor, text)
}

// lifeOf is how long a file is to be kept.
func lifeOf(anchor, text string) (time.Duration, error) {
	if anchor != "created_at" {
		return 0, notOneOf("expires_after.anchor", anchor, []string{"created_at"})
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 3600 || seconds > 2592000 {
		return 0, invalid("expires_after.seconds", "invalid_value", "Invalid 'expires_after.seconds': expected an integer from 3600 to 2592000, but got '"+short(text)+"' instead.")
	}
	return time.Duration(seconds) * time.Second, nil
}

func (s *server) listFiles(c *call) error {
	q, err := readPage(c, 10000, 10000)
	if err != nil {
		return err
	}
	purpose := c.URL.Query().Get("purpose")
	entries, more, err := collect(q, func(p hub.Page) (hub.Listing[hub.File], error) {
		return s.Hub.Files(c.Context(), c.who, purpose, p)
	}, func(f hub.File) (entry, bool) { return entry{fileID(f.ID), shownFile(f)}, !inUpload(f.Purpose) })
	if err != nil {
		return err
	}
	return c.reply(newList(entries, more))
}

// collect reads pages of the hub until q.limit entries after q.after are there. OpenAI's cursors are ids, the hub's are its own.
func collect[T any](q query, page func(hub.Page) (hub.Listing[T], error), shown func(T) (entry, bool)) ([]entry, bool, error) {
	var out []entry
	found := q.after == ""
	for p := (hub.Page{Limit: 100, Oldest: q.oldest}); ; {
		l, err := page(p)
		if err != nil {
			return nil, false, err
		}
		for _, t := range l.Items {
			e, ok := shown(t)
			switch {
			case !found:
				found = e.id == q.after
			case !ok:
			case len(out) == q.limit:
				return out, true, nil
			default:
				out = append(out, e)
			}
		}
		if p.After = l.Next; p.After == "" {
			if !found {
				return nil, false, invalid("after", "", "No object with id '"+short(q.after)+"' found for 'after'.")
			}
			return out, false, nil
		}
	}
}

func (s *server) getFile(c *call) error {
	id, err := ownFile(c.PathValue("id"))
	if err != nil {
		return err
	}
	record, err := s.Hub.File(c.Context(), c.who, id)
	if err != nil {
		return named(err, noFile(c.PathValue("id")))
	}
	return c.reply(shownFile(record))
}

func (s *server) deleteFile(c *call) error {
	id, err := ownFile(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.Hub.DeleteFile(c.Context(), c.who, id); err != nil {
		return named(err, noFile(c.PathValue("id")))
	}
	return c.reply(deleted{c.PathValue("id"), "file", true})
}

func (s *server) fileContent(c *call) error {
	id, err := ownFile(c.PathValue("id"))
	if err != nil {
		return err
	}
	record, content, err := s.Hub.OpenFile(c.Context(), c.who, id)
	if err != nil {
		return named(err, noFile(c.PathValue("id")))
	}
	defer func() { _ = content.Close() }()
	asDownload(c.w, record.Name)
	http.ServeContent(c.w, byterange.One(c.Request, ""), "", record.Created, content)
	return nil
}

// asDownload keeps browsers from showing what users and code wrote as if it were a page of this server.
func asDownload(w http.ResponseWriter, name string) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename*=UTF-8''%s", strings.ReplaceAll(url.QueryEscape(name), "+", "%20")))
}

type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func shownModel(m hub.ModelInfo) modelObject {
	return modelObject{ID: m.ID, Object: "model", OwnedBy: m.Provider}
}

func (s *server) listModels(c *call) error {
	models, err := s.Hub.Models(c.Context(), c.who)
	if err != nil {
		return err
	}
	var entries []entry
	for _, m := range models {
		entries = append(entries, entry{m.ID, shownModel(m)})
	}
	return c.reply(newList(entries, false))
}

func (s *server) getModel(c *call) error {
	models, err := s.Hub.Models(c.Context(), c.who)
	if err != nil {
		return err
	}
	id := c.PathValue("id")
	for _, m := range models {
		if m.ID == id {
			return c.reply(shownModel(m))
		}
	}
	for _, m := range models { // a request may leave the provider out, and so may this one
		if m.ID == m.Provider+"/"+id {
			return c.reply(shownModel(m))
		}
	}
	return noModel(id)
}

func noModel(id string) error {
	f := absent("The model '" + short(id) + "' does not exist or you do not have access to it.")
	f.param, f.code = "model", "model_not_found"
	return f
}
