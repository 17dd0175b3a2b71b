package gemini

import (
	"encoding/base64"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

// Files of Google's Files API are stored files: all of the project's that are whole. https://ai.google.dev/api/files has the shapes.

// fileInfo is a File.
type fileInfo struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Type        string `json:"mimeType"`
	Size        string `json:"sizeBytes"`
	Created     string `json:"createTime"`
	Updated     string `json:"updateTime"`
	Expires     string `json:"expirationTime,omitempty"`
	Hash        string `json:"sha256Hash"`
	URI         string `json:"uri"`
	State       string `json:"state"`
	Source      string `json:"source"`
}

func shownFile(r *http.Request, f hub.File) fileInfo {
	name := "files/" + ident.Body(f.ID)
	sum, _ := hex.DecodeString(f.SHA256)
	out := fileInfo{Name: name, DisplayName: f.Name, Type: typeOf(f), Size: strconv.FormatInt(f.Size, 10), Created: f.Created.UTC().Format(time.RFC3339Nano),
		Updated: f.Created.UTC().Format(time.RFC3339Nano), Hash: base64.StdEncoding.EncodeToString(sum), URI: base(r) + prefix + "v1beta/" + name, State: "ACTIVE", Source: "UPLOADED"}
	if !f.Expires.IsZero() {
		out.Expires = f.Expires.UTC().Format(time.RFC3339Nano)
	}
	return out
}

// typeOf is what the client has called a file, or else what its name says.
func typeOf(f hub.File) string {
	if kind, ok := strings.CutPrefix(f.Purpose, filePurpose); ok && kind != "" {
		return kind
	}
	if kind, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(f.Name))); err == nil {
		return kind
	}
	return "application/octet-stream"
}

func noFile(name string) error {
	return &fault{http.StatusNotFound, "There is no file '" + short(name) + "', or the key may not have it.", "NOT_FOUND", 0}
}

// storedID is cove's id of a file that a name or an address means.
func storedID(name string) (string, bool) {
	if at := strings.LastIndex(name, "files/"); at >= 0 {
		name = name[at+len("files/"):]
	}
	id := ident.File + "_" + name
	return id, ident.Valid(ident.File, id)
}

// fileOf is the file that the path names.
func (s *server) fileOf(c *call) (hub.File, error) {
	name := c.PathValue("id")
	id, ok := storedID(name)
	if !ok {
		return hub.File{}, noFile(name)
	}
	f, err := s.Hub.File(c.Context(), c.who, id)
	if err != nil && problem.Of(err).Kind == problem.NotFound || err == nil && strings.HasPrefix(f.Purpose, partPurpose) {
		return f, noFile(name)
	}
	return f, err
}

func (s *server) getFile(c *call) error {
	if id, ok := strings.CutSuffix(c.PathValue("id"), ":download"); ok {
		return lacking("files/"+short(id)+":download", "What was uploaded is not downloaded, as at Google.")
	}
	f, err := s.fileOf(c)
	if err != nil {
		return err
	}
	return c.reply(shownFile(c.Request, f))
}

func (s *server) deleteFile(c *call) error {
	f, err := s.fileOf(c)
	if err == nil {
		err = s.Hub.DeleteFile(c.Context(), c.who, f.ID)
	}
	if err != nil {
		return err
	}
	return c.reply(map[string]any{})
}

// listFiles lists the files, the newest first, at most 100 a page.
func (s *server) listFiles(c *call) error {
	size, err := number(c.URL.Query().Get("pageSize"), 10)
	if err != nil || size < 0 {
		return invalid("Invalid value at 'pageSize'.")
	}
	if size == 0 {
		size = 10
	}
	l, err := s.Hub.Files(c.Context(), c.who, "", hub.Page{Limit: min(size, 100), After: c.URL.Query().Get("pageToken")})
	if err != nil {
		return err
	}
	files := []fileInfo{}
	for _, f := range l.Items {
		if !strings.HasPrefix(f.Purpose, partPurpose) {
			files = append(files, shownFile(c.Request, f))
		}
	}
	out := map[string]any{"files": files}
	if l.Next != "" {
		out["nextPageToken"] = l.Next
	}
	return c.reply(out)
}
