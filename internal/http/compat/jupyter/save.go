package jupyter

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/hub"
)

// Actions, as the audit log has them.
const (
	writesFile  = "session.file.write"
	movesFile   = "session.file.move"
	removesFile = "session.file.delete"
	makesFolder = "session.folder.create"
)

// contentsRequest is what clients say of contents.
type contentsRequest struct {
	Type     string          `json:"type"`
	Format   string          `json:"format"`
	Path     *string         `json:"path"`
	Ext      string          `json:"ext"`
	CopyFrom string          `json:"copy_from"`
	Chunk    *int            `json:"chunk"`
	Content  json.RawMessage `json:"content"`
}

// readContents reads a body of the Contents API. there is false for an empty one.
func (c *call) readContents() (in contentsRequest, there bool, err error) {
	text, err := c.body(longestContents)
	if err != nil {
		return in, false, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return in, false, nil
	}
	if err := hold(c.Context(), int64(len(text))); err != nil { // it is decoded, and written
		return in, false, err
	}
	if json.Unmarshal(text, &in) != nil {
		return in, false, problem.New(problem.InvalidRequest, "the body is not the JSON object that was expected")
	}
	switch in.Type {
	case "", typeDirectory, typeFile, typeNotebook:
	default:
		in.Type = typeFile
	}
	return in, true, nil
}

// visible is the path of a request that changes something, which is none that the Contents API hides.
func visible(said, what string) (document, error) {
	d, err := documentOf(said)
	if err == nil && d.hidden() {
		err = problem.New(problem.InvalidRequest, "Cannot "+what+" file or directory '"+string(d)+"'").WithHint("names that begin with a dot are hidden here; code and terminals have them")
	}
	return d, err
}

// told answers with a model, and where it is.
func (s *server) told(c *call, status int, d document, m contentsModel) error {
	c.w.Header().Set("Location", d.address())
	c.w.Header().Set("Last-Modified", m.Modified)
	return c.reply(status, m)
}

// postContents answers POST api/contents/{path}: a new file, folder or notebook in a folder, whose name the server chooses, or a copy.
func (s *server) postContents(c *call) error {
	at, rest, err := parted(c.PathValue("path"))
	if err != nil {
		return err
	}
	if rest != "" {
		return s.postCheckpoint(c, at, rest)
	}
	in, _, err := c.readContents()
	if err == nil {
		at, err = visible(string(at), "create")
	}
	var from document
	if err == nil && in.CopyFrom != "" {
		from, err = visible(in.CopyFrom, "copy")
	}
	if err != nil {
		return err
	}
	var made document
	var m contentsModel
	err = s.use(c, writesFile, []document{at}, func(ctx context.Context, f guestlink.Files) error {
		e, err := f.StatPath(ctx, at.at(), false)
		if from != "" && problem.Has(err, problem.FileNotFound) {
			e, err = f.MakePath(ctx, at.at(), filesystem.Set{}, false)
		}
		if err != nil || kindOf(e) != filesystem.Folder {
			return problem.New(problem.InvalidRequest, "'"+string(at)+"' is not a directory").WithHint("POST makes something in a directory; PUT saves a file")
		}
		made, e, err = in.make(ctx, f, at, from)
		m = bare(made, e)
		return err
	})
	if err != nil {
		return err
	}
	return s.told(c, http.StatusCreated, made, m)
}

// copied is what copies have after their names.
var copied = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-Copy\d*\.`) })

const mostNames = 10_000 // that are tried for something new

// make makes something new in a folder, under the first name that is free.
func (in contentsRequest) make(ctx context.Context, f guestlink.Files, at, from document) (made document, e filesystem.Entry, err error) {
	name, insert := "untitled"+in.Ext, ""
	switch {
	case from != "":
		name, insert = copied().ReplaceAllString(from.name(), "."), "-Copy"
	case in.Type == typeDirectory:
		name, insert = "Untitled Folder", " "
	case in.Type == typeNotebook || in.Type == "" && in.Ext == ".ipynb":
		name = "Untitled.ipynb"
		in.Type = typeNotebook
	}
	stem, ext := name, ""
	if at := strings.IndexByte(name, '.'); at >= 0 && in.Type != typeDirectory {
		stem, ext = name[:at], name[at:]
	}
	if strings.HasSuffix(name, ".ipynb") {
		stem, ext = strings.TrimSuffix(name, ".ipynb"), ".ipynb"
	}
	if strings.ContainsAny(ext, "/\x00") || len(ext) > 100 {
		return "", e, problem.New(problem.InvalidPath, "that cannot be the ending of a name")
	}
	for n := range mostNames {
		made = at.in(name)
		if n > 0 {
			made = at.in(stem + insert + strconv.Itoa(n) + ext)
		}
		switch {
		case from != "" && made == from:
			continue
		case from != "":
			e, err = f.CopyPath(ctx, filesystem.Copy{From: from.at(), To: made.at()})
		case in.Type == typeDirectory:
			e, err = f.MakePath(ctx, made.at(), filesystem.Set{}, true)
		default:
			text := ""
			if in.Type == typeNotebook {
				text = emptyNotebook
			}
			e, err = f.WritePath(ctx, made.at(), strings.NewReader(text), filesystem.Set{}, true)
		}
		if !problem.Has(err, problem.FileExists) {
			break
		}
	}
	return made, e, err
}

// putContents answers PUT api/contents/{path}: it saves what the client sends under that name.
func (s *server) putContents(c *call) error {
	in, there, err := c.readContents()
	if err != nil {
		return err
	}
	d, err := visible(c.PathValue("path"), "create")
	if err == nil && in.Path != nil {
		_, err = visible(*in.Path, "create")
	}
	switch {
	case err != nil:
	case in.CopyFrom != "":
		err = problem.New(problem.InvalidRequest, "Cannot copy with PUT, only POST")
	case d == "":
		err = problem.New(problem.InvalidRequest, "Cannot create file or directory ''")
	case in.Type == "" && there:
		err = problem.New(problem.InvalidRequest, "No file type provided")
	case in.Type == "":
		in.Type = typeFile
		if strings.HasSuffix(string(d), ".ipynb") {
			in.Type = typeNotebook
		}
	}
	if err != nil {
		return err
	}
	var m contentsModel
	fresh := false
	save := func(ctx context.Context, f guestlink.Files) error {
		_, err := f.StatPath(ctx, d.at(), false)
		fresh = problem.Has(err, problem.FileNotFound)
		m, err = in.save(ctx, f, d)
		return err
	}
	if err = s.use(c, writesFile, []document{d}, save); err != nil {
		return err
	}
	if fresh {
		return s.told(c, http.StatusCreated, d, m)
	}
	return s.told(c, http.StatusOK, d, m)
}

// save writes what a client sends.
func (in contentsRequest) save(ctx context.Context, f guestlink.Files, d document) (m contentsModel, err error) {
	var text []byte
	var e filesystem.Entry
	switch {
	case in.Type == typeDirectory:
		e, err = f.MakePath(ctx, d.at(), filesystem.Set{}, false)
		return bare(d, e), err
	case in.Chunk != nil && in.Type != typeFile:
		err = problem.New(problem.InvalidRequest, `File type "`+in.Type+`" is not supported for large file transfer`)
	case in.Type == typeNotebook && in.blank():
		text = []byte(emptyNotebook)
	case in.Type == typeNotebook:
		text, err = writeNotebook(in.Content)
	case in.blank() && in.Chunk == nil && in.Format == "":
	default:
		text, err = bytesOf(in.Content, in.Format)
	}
	if err != nil {
		return m, err
	}
	if in.Chunk != nil {
		return in.saveChunk(ctx, f, d, text)
	}
	if e, err = f.WritePath(ctx, d.at(), bytes.NewReader(text), filesystem.Set{}, false); err != nil {
		return m, err
	}
	m = bare(d, e)
	m.Type = in.Type
	if in.Type == typeNotebook { // the first state that is saved can be gone back to
		if _, err := f.StatPath(ctx, checkpointOf(d).at(), false); problem.Has(err, problem.FileNotFound) {
			_, err = f.CopyPath(ctx, filesystem.Copy{From: d.at(), To: checkpointOf(d).at()})
			return m, err
		}
	}
	return m, nil
}

func (in contentsRequest) blank() bool { return len(in.Content) == 0 || string(in.Content) == "null" }

// renameContents answers PATCH api/contents/{path}: it gives a file or folder another name.
func (s *server) renameContents(c *call) error {
	in, there, err := c.readContents()
	if err == nil && !there {
		err = problem.New(problem.InvalidRequest, "JSON body missing")
	}
	if err != nil {
		return err
	}
	from, err := visible(c.PathValue("path"), "rename")
	to := from
	if err == nil && in.Path != nil {
		to, err = visible(*in.Path, "rename")
	}
	if err == nil && (from == "" || to == "") {
		err = problem.New(problem.InvalidRequest, "the folder with all files has no other name")
	}
	if err != nil {
		return err
	}
	var m contentsModel
	err = s.use(c, movesFile, []document{from, to}, func(ctx context.Context, f guestlink.Files) error {
		e, err := f.StatPath(ctx, from.at(), false)
		if err == nil && from != to {
			if e, err = f.MovePath(ctx, filesystem.Copy{From: from.at(), To: to.at()}); err == nil {
				_, gone := f.MovePath(ctx, filesystem.Copy{From: checkpointOf(from).at(), To: checkpointOf(to).at(), Replace: true})
				if gone != nil && !problem.Has(gone, problem.FileNotFound) {
					return gone
				}
			}
		}
		m = bare(to, e)
		return err
	})
	if err != nil {
		return err
	}
	return s.told(c, http.StatusOK, to, m)
}

// deleteContents answers DELETE api/contents/{path}. A folder goes with what is in it.
func (s *server) deleteContents(c *call) error {
	d, rest, err := parted(c.PathValue("path"))
	if err != nil {
		return err
	}
	if rest == "" {
		d, err = visible(string(d), "delete")
	}
	if err == nil && d == "" {
		err = problem.New(problem.InvalidRequest, "the folder with all files is not deleted").WithHint("delete the session whose metadata say jupyter.personal")
	}
	if err == nil && rest != "" {
		return s.deleteCheckpoint(c, d, rest)
	}
	if err != nil {
		return err
	}
	err = s.use(c, removesFile, []document{d}, func(ctx context.Context, f guestlink.Files) error {
		if err := f.RemovePath(ctx, d.at(), true); err != nil {
			return err
		}
		if err := f.RemovePath(ctx, checkpointOf(d).at(), false); err != nil && !problem.Has(err, problem.FileNotFound) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// resolvePath answers GET api/resolvePath: where a path that a kernel speaks of is in the Contents API, and in the kernel's file system.
func (s *server) resolvePath(c *call) error {
	q := c.URL.Query()
	said := q.Get("path")
	if said == "" {
		return problem.New(problem.InvalidRequest, "Missing argument path")
	}
	type resolution struct {
		Scope string `json:"scope"`
		Path  string `json:"path"`
	}
	out := map[string]any{}
	resolved := []resolution{}
	if d, err := documentOf(path.Clean("/" + strings.TrimPrefix(said, "~/"))); err == nil && !d.hidden() && !path.IsAbs(said) && !filesystem.Outside(strings.TrimPrefix(said, "~/")) {
		if _, err := s.read(c, d, wanted{}); err == nil {
			resolved = append(resolved, resolution{"server", string(d)})
		}
	}
	if id := q.Get("kernel"); id != "" {
		p, err := s.place(c.Context(), c.who, id)
		switch {
		case problem.Is(err, problem.NotFound):
			out["unresolved"] = []map[string]string{{"scope": "kernel", "reason": "Kernel " + id + " could not be found"}}
		case err != nil:
			return err
		default:
			if at, err := s.resolveIn(c, p, said); err == nil {
				resolved = append(resolved, resolution{"kernel", at})
			}
		}
	}
	out["resolved"] = resolved
	return c.reply(http.StatusOK, out)
}

// resolveIn is where a path is for a kernel, as long as its code has not gone to another folder.
func (s *server) resolveIn(c *call, p place, said string) (full string, err error) {
	at := said
	if !path.IsAbs(said) {
		at = path.Join(p.entry.Dir, said)
	}
	err = s.Hub.UseFiles(c.Context(), c.who, p.session.ID, hub.FilesUse{Paths: []string{at}}, func(ctx context.Context, f guestlink.Files) error {
		e, err := f.StatPath(ctx, at, false)
		full = e.Full
		return err
	})
	return full, err
}
