package jupyter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/hub"
)

// The Contents API, https://jupyter-server.readthedocs.io/en/latest/developers/contents.html, over the workspace of the caller's personal session.

// Bounds of what one request of the Contents API reads or writes.
const (
	longestContents = 32 << 20 // bytes of a file, or of a request's body
	longestPath     = 4096     // bytes
)

// The types of contents.
const (
	typeDirectory = "directory"
	typeNotebook  = "notebook"
	typeFile      = "file"
)

// The formats of contents.
const (
	formatText   = "text"
	formatBase64 = "base64"
	formatJSON   = "json"
)

// contentsModel is a file or a folder as clients see it.
type contentsModel struct {
	Name      string  `json:"name"`
	Path      string  `json:"path"`
	Type      string  `json:"type"`
	Writable  bool    `json:"writable"`
	Created   string  `json:"created"`
	Modified  string  `json:"last_modified"`
	Size      *int64  `json:"size"`
	MIME      *string `json:"mimetype"`
	Format    *string `json:"format"`
	Content   any     `json:"content"`
	Hash      *string `json:"hash"`
	Algorithm *string `json:"hash_algorithm"`
	Message   string  `json:"message,omitempty"` // what is wrong with a notebook that can be read all the same
}

// document is a path in the workspace: relative, clean, "" is the workspace itself.
type document string

func documentOf(said string) (document, error) {
	said = strings.Trim(said, "/")
	for part := range strings.SplitSeq(said, "/") {
		if part == ".." {
			return "", problem.New(problem.InvalidPath, "a path does not leave the folder with the files")
		}
	}
	clean := path.Clean("/" + said)[1:]
	if len(clean) > longestPath {
		return "", problem.New(problem.InvalidPath, "the path is too long")
	}
	return document(clean), filesystem.CheckPath(clean)
}

// hidden says whether a path, or a folder on the way, has a name that begins with a dot. The Contents API does not show these.
func (d document) hidden() bool {
	return strings.HasPrefix(string(d), ".") || strings.Contains(string(d), "/.")
}

func (d document) name() string {
	if d == "" {
		return ""
	}
	return path.Base(string(d))
}

func (d document) folder() document {
	if dir := path.Dir(string(d)); dir != "." {
		return document(dir)
	}
	return ""
}

func (d document) in(name string) document { return document(path.Join(string(d), name)) }

// at is the path for the hub.
func (d document) at() string {
	if d == "" {
		return "."
	}
	return string(d)
}

func (d document) address() string {
	parts := strings.Split(string(d), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return Prefix + "/api/contents/" + strings.Join(parts, "/")
}

func missing(d document) error {
	return problem.New(problem.FileNotFound, "file or directory '"+string(d)+"' does not exist")
}

// use has f work with the files of a caller's personal session. Where there is none, one is made for a change, and nothing is found otherwise.
func (s *server) use(c *call, action string, paths []document, f func(ctx context.Context, files guestlink.Files) error) error {
	personal, ok, err := s.findPersonal(c.Context(), c.who)
	if err == nil && !ok && action != "" {
		personal, err = s.personal(c.Context(), c.who)
	}
	if err != nil {
		return err
	}
	if personal.ID == "" {
		return missing(paths[0])
	}
	u := hub.FilesUse{Action: action}
	for _, p := range paths {
		u.Paths = append(u.Paths, p.at())
	}
	return s.Hub.UseFiles(c.Context(), c.who, personal.ID, u, f)
}

// look is use for what changes nothing.
func (s *server) look(c *call, d document, f func(ctx context.Context, files guestlink.Files) error) error {
	return s.use(c, "", []document{d}, f)
}

// is the kind of what an entry leads to.
func kindOf(e filesystem.Entry) filesystem.Kind {
	if e.Kind == filesystem.Link {
		return e.To
	}
	return e.Kind
}

// bare is a model without content.
func bare(d document, e filesystem.Entry) contentsModel {
	m := contentsModel{Name: d.name(), Path: string(d), Type: typeFile, Writable: true, Created: moment(e.Changed), Modified: moment(e.Modified)}
	switch {
	case kindOf(e) == filesystem.Folder:
		m.Type = typeDirectory
		return m
	case strings.HasSuffix(string(d), ".ipynb"):
		m.Type = typeNotebook
	}
	m.Size = &e.Size
	if kind := mimeOf(m.Name); kind != "" && m.Type == typeFile {
		m.MIME = &kind
	}
	return m
}

// mimeOf is the type of files of a name; "" where nothing is known.
func mimeOf(name string) string {
	kind, _, _ := strings.Cut(mime.TypeByExtension(path.Ext(name)), ";")
	if kind == "" && strings.HasSuffix(name, ".py") {
		return "text/x-python"
	}
	return kind
}

// wanted is what a client wants to know of contents.
type wanted struct {
	kind, format  string
	content, hash bool
}

func wantedOf(q url.Values) (w wanted, err error) {
	w = wanted{kind: q.Get("type"), format: q.Get("format"), content: q.Get("content") != "0", hash: q.Get("hash") == "1"}
	switch w.kind {
	case "", typeDirectory, typeFile, typeNotebook:
	default:
		w.kind = typeFile
	}
	if w.format != "" && w.format != formatText && w.format != formatBase64 {
		return w, problem.New(problem.InvalidRequest, "Format '"+w.format+"' is invalid")
	}
	for _, name := range []string{"content", "hash"} {
		if v := q.Get(name); q.Has(name) && v != "0" && v != "1" {
			return w, problem.New(problem.InvalidRequest, name+" '"+v+"' is invalid")
		}
	}
	return w, nil
}

// getContents answers GET api/contents/{path}.
func (s *server) getContents(c *call) error {
	d, rest, err := parted(c.PathValue("path"))
	if err != nil {
		return err
	}
	if rest != "" {
		return s.listCheckpoints(c, d, rest)
	}
	w, err := wantedOf(c.URL.Query())
	if err == nil && d.hidden() {
		err = missing(d)
	}
	if err != nil {
		return err
	}
	m, err := s.read(c, d, w)
	if d == "" && problem.Has(err, problem.FileNotFound) && w.kind != typeFile && w.kind != typeNotebook { // there is no personal session yet
		m, err = contentsModel{Type: typeDirectory, Writable: true, Created: moment(s.began), Modified: moment(s.began)}, nil
		if w.content {
			m.Content, m.Format = []contentsModel{}, new(formatJSON)
		}
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Last-Modified", m.Modified)
	return c.reply(http.StatusOK, m)
}

// read makes the model of a path.
func (s *server) read(c *call, d document, w wanted) (m contentsModel, err error) {
	err = s.look(c, d, func(ctx context.Context, f guestlink.Files) error {
		e, err := f.StatPath(ctx, d.at(), false)
		if err != nil {
			return err
		}
		m = bare(d, e)
		switch {
		case m.Type == typeDirectory && w.kind != "" && w.kind != typeDirectory:
			return problem.New(problem.InvalidRequest, string(d)+" is a directory, not a "+w.kind)
		case m.Type != typeDirectory && w.kind == typeDirectory:
			return problem.New(problem.InvalidRequest, string(d)+" is not a directory")
		case m.Type == typeDirectory && w.content:
			return m.list(ctx, f, d)
		case m.Type == typeDirectory || !w.content && !w.hash:
			return nil
		case w.kind == typeFile:
			m.Type = typeFile
		}
		if w.kind == typeNotebook {
			m.Type = typeNotebook
		}
		return m.fill(ctx, f, d, w)
	})
	return m, err
}

// list fills in what is in a folder.
func (m *contentsModel) list(ctx context.Context, f guestlink.Files, d document) error {
	all, _, _, err := f.ListPath(ctx, d.at(), 1)
	if err != nil {
		return err
	}
	inside := []contentsModel{}
	for _, e := range all {
		name := path.Base(e.Path)
		if kind := kindOf(e); !strings.HasPrefix(name, ".") && (kind == filesystem.Folder || kind == filesystem.File) {
			inside = append(inside, bare(d.in(name), e))
		}
	}
	m.Content, m.Format = inside, new(formatJSON)
	return nil
}

// fill reads a file.
func (m *contentsModel) fill(ctx context.Context, f guestlink.Files, d document, w wanted) error {
	r, err := f.OpenPath(ctx, d.at(), 0, longestContents)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if !w.content { // its hash alone
		whole, err := f.OpenPath(ctx, d.at(), 0, 0)
		if err != nil {
			return err
		}
		defer func() { _ = whole.Close() }()
		return m.sum(whole)
	}
	if r.Whole() > longestContents {
		return problem.New(problem.FileTooLarge, "the file is larger than 32 MiB").WithHint("download it from files/" + string(d))
	}
	if err := hold(ctx, min(max(r.Len(), 0), longestContents)); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, longestContents))
	if err != nil {
		return err
	}
	if w.hash {
		_ = m.sum(strings.NewReader(string(text)))
	}
	if m.Type == typeNotebook {
		nb, err := readNotebook(ctx, text)
		m.Content, m.Format, m.Message = nb, new(formatJSON), invalidNotebook(nb)
		return err
	}
	return m.hasText(text, w.format)
}

func (m *contentsModel) sum(r io.Reader) error {
	h := sha256.New()
	_, err := io.Copy(h, r)
	m.Hash, m.Algorithm = new(hex.EncodeToString(h.Sum(nil))), new("sha256")
	return err
}

// hold takes of the memory that the caller's requests may take together what a file of a size takes that is read or written as JSON. It is given back with the answer.
func hold(ctx context.Context, size int64) error { return bodybudget.Recall(ctx, 3*size) }

// download answers GET files/{path}: a file as it is, of any size.
func (s *server) download(c *call) error {
	d, err := documentOf(c.PathValue("path"))
	if err == nil && (d.hidden() || d == "") {
		err = missing(d)
	}
	if err != nil {
		return err
	}
	return s.look(c, d, func(ctx context.Context, f guestlink.Files) error {
		r, err := f.OpenPath(ctx, d.at(), 0, 0)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		h := c.w.Header()
		kind := mimeOf(d.name())
		if kind == "" {
			kind = "application/octet-stream"
		}
		h.Set("Content-Type", kind)
		// What code has written must not run as a page of the server's.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox")
		if c.URL.Query().Get("download") != "" || !strings.HasPrefix(kind, "image/") {
			h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": d.name()}))
		}
		_, _ = io.CopyN(c.w, r, r.Len())
		return nil
	})
}
