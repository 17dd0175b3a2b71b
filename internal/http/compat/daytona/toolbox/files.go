package toolbox

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/hub"
)

// fileInfo is a file or folder as clients see it.
type fileInfo struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Size        int64  `json:"size"`
	Mode        string `json:"mode"`
	ModTime     string `json:"modTime"`
	ModifiedAt  string `json:"modifiedAt"`
	Folder      bool   `json:"isDir"`
	Owner       string `json:"owner"`
	Group       string `json:"group"`
	Permissions string `json:"permissions"`
}

func infoOf(n filesystem.Entry) fileInfo {
	at := n.Modified.UTC().Format(time.RFC3339Nano)
	return fileInfo{
		Name: path.Base(n.Full), Path: n.Full, Size: n.Size, Mode: n.Symbolic(), ModTime: at, ModifiedAt: at,
		Folder: n.Kind == filesystem.Folder || n.Kind == filesystem.Link && n.To == filesystem.Folder,
		Owner:  named(n.Owner, n.UID), Group: named(n.Group, n.GID), Permissions: fmt.Sprintf("%04o", n.Mode&0o7777),
	}
}

func named(name string, id int) string {
	if name == "" {
		return strconv.Itoa(id)
	}
	return name
}

// look uses files without changing them.
func (t *Toolbox) look(c *call, p string, use func(ctx context.Context, f guestlink.Files) error) error {
	return t.o.Hub.UseFiles(c.Context(), c.who, c.id(), hub.FilesUse{Paths: []string{p}}, use)
}

// change uses files and changes them.
func (t *Toolbox) change(c *call, action string, use func(ctx context.Context, f guestlink.Files) error, paths ...string) error {
	return t.o.Hub.UseFiles(c.Context(), c.who, c.id(), hub.FilesUse{Action: action, Paths: paths}, use)
}

// named returns the path that a parameter of the address has.
func (c *call) path(name string) (string, error) {
	p := c.URL.Query().Get(name)
	if p == "" {
		return "", invalid(name + ": the path is missing")
	}
	return c.s.absolute(p), nil
}

func notFound(p string) error {
	return &fault{http.StatusNotFound, "FILE_NOT_FOUND", "file not found: " + p}
}

// worded says of a file that is not there which one it is.
func worded(err error, p string) error {
	if problem.Has(err, problem.FileNotFound) {
		return notFound(p)
	}
	return err
}

func (t *Toolbox) listFiles(c *call) error {
	q := c.URL.Query()
	p := c.s.absolute(q.Get("path"))
	depth := 1
	if text := q.Get("depth"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return invalid("depth: it is a number from 1 on")
		}
		depth = min(n, filesystem.DeepestList)
	}
	out := []fileInfo{}
	err := t.look(c, p, func(ctx context.Context, f guestlink.Files) error {
		all, more, _, err := f.ListPath(ctx, p, depth)
		if err == nil && more {
			err = &fault{http.StatusUnprocessableEntity, "", "the folder has more entries than one listing holds; list its folders one by one"}
		}
		for _, n := range all {
			out = append(out, infoOf(n))
		}
		return err
	})
	if err != nil {
		return worded(err, p)
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

func (t *Toolbox) fileInfo(c *call) error {
	p, err := c.path("path")
	if err != nil {
		return err
	}
	var out fileInfo
	err = t.look(c, p, func(ctx context.Context, f guestlink.Files) error {
		n, err := f.StatPath(ctx, p, false)
		out = infoOf(n)
		return err
	})
	if err != nil {
		return worded(err, p)
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// parseMode reads permissions, "755" or "0755".
func parseMode(text string) (*uint32, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return nil, invalid("mode: permissions are octal digits, as 755")
	}
	mode := uint32(n)
	return &mode, nil
}

func (t *Toolbox) makeFolder(c *call) error {
	p, err := c.path("path")
	if err != nil {
		return err
	}
	mode, err := parseMode(c.URL.Query().Get("mode"))
	if err != nil {
		return err
	}
	err = t.change(c, "session.folder.make", func(ctx context.Context, f guestlink.Files) error {
		if old, err := f.StatPath(ctx, p, false); err == nil && old.Kind != filesystem.Folder {
			return &fault{http.StatusConflict, "CONFLICT", "there is a file already: " + p}
		}
		_, err := f.MakePath(ctx, p, filesystem.Set{Mode: mode}, false)
		return err
	}, p)
	if err == nil {
		c.w.WriteHeader(http.StatusCreated)
	}
	return err
}

func (t *Toolbox) moveFile(c *call) error {
	from, err := c.path("source")
	if err != nil {
		return err
	}
	to, err := c.path("destination")
	if err != nil {
		return err
	}
	err = t.change(c, "session.file.move", func(ctx context.Context, f guestlink.Files) error {
		if _, err := f.StatPath(ctx, from, true); err != nil {
			return worded(err, from)
		}
		_, err := f.MovePath(ctx, filesystem.Copy{From: from, To: to})
		return err
	}, from, to)
	if problem.Has(err, problem.FileExists) {
		err = &fault{http.StatusConflict, "CONFLICT", "the destination exists already: " + to}
	}
	if err == nil {
		c.w.WriteHeader(http.StatusOK)
	}
	return err
}

// ownName is the name of a user or a group in the sandbox: "daytona" is that of Daytona's own sandboxes for the one whose they are.
func (s Sandbox) ownName(name string) string {
	if name == "daytona" {
		return s.User
	}
	return name
}

func (t *Toolbox) setPermissions(c *call) error {
	p, err := c.path("path")
	if err != nil {
		return err
	}
	q := c.URL.Query()
	mode, err := parseMode(q.Get("mode"))
	if err != nil {
		return err
	}
	err = t.change(c, "session.file.change", func(ctx context.Context, f guestlink.Files) error {
		_, err := f.ChangePath(ctx, p, filesystem.Set{Mode: mode, Owner: c.s.ownName(q.Get("owner")), Group: c.s.ownName(q.Get("group"))}, false)
		return err
	}, p)
	if err != nil {
		return worded(err, p)
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func (t *Toolbox) deleteFile(c *call) error {
	p, err := c.path("path")
	if err != nil {
		return err
	}
	all := c.URL.Query().Get("recursive") == "true"
	err = t.change(c, "session.file.remove", func(ctx context.Context, f guestlink.Files) error {
		n, err := f.StatPath(ctx, p, true)
		if err != nil {
			return err
		}
		if n.Kind == filesystem.Folder && !all {
			return &fault{http.StatusBadRequest, "BAD_REQUEST", "cannot delete a directory without recursive=true: " + p}
		}
		return f.RemovePath(ctx, p, all)
	}, p)
	if err != nil {
		return worded(err, p)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// mostFound bounds what a search answers with.
const mostFound = 5000

// findText looks for text in files, as it is written.
func (t *Toolbox) findText(c *call) error {
	type match struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Content string `json:"content"`
	}
	out := []match{}
	err := t.search(c, func(s *filesystem.Search, pattern string) { s.Text = pattern }, func(m filesystem.Match) {
		out = append(out, match{m.Path, m.Line, m.Text})
	})
	if err == nil {
		reply(c.w, http.StatusOK, out)
	}
	return err
}

// findNames looks for files and folders by the patterns of their names.
func (t *Toolbox) findNames(c *call) error {
	out := []string{}
	err := t.search(c, func(s *filesystem.Search, pattern string) { s.Name = pattern }, func(m filesystem.Match) { out = append(out, m.Path) })
	if err == nil {
		reply(c.w, http.StatusOK, map[string]any{"files": out})
	}
	return err
}

func (t *Toolbox) search(c *call, set func(s *filesystem.Search, pattern string), take func(m filesystem.Match)) error {
	pattern, p := c.URL.Query().Get("pattern"), c.s.absolute(c.URL.Query().Get("path"))
	if pattern == "" {
		return invalid("pattern: it is missing")
	}
	s := filesystem.Search{Path: p, Limit: mostFound}
	set(&s, pattern)
	err := t.look(c, p, func(ctx context.Context, f guestlink.Files) error {
		found, err := f.SearchFiles(ctx, s)
		for _, m := range found.Matches {
			take(m)
		}
		if found.More {
			c.w.Header().Set("X-Cove-More", "true") // there is no place for it in the answer
		}
		return err
	})
	return worded(err, p)
}

// replaceText replaces text in files, each whole or not at all.
func (t *Toolbox) replaceText(c *call) error {
	var in struct {
		Files   []string `json:"files"`
		Pattern string   `json:"pattern"`
		With    string   `json:"newValue"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if len(in.Files) == 0 || in.Pattern == "" {
		return invalid("files, pattern: there must be files, and a text to replace")
	}
	paths := make([]string, 0, len(in.Files))
	for _, p := range in.Files {
		paths = append(paths, c.s.absolute(p))
	}
	type result struct {
		File    string `json:"file"`
		Success bool   `json:"success"`
		Error   string `json:"error,omitempty"`
	}
	var out []result
	err := t.change(c, "session.file.replace", func(ctx context.Context, f guestlink.Files) error {
		all, err := f.ReplaceText(ctx, filesystem.Replace{Paths: paths, Text: in.Pattern, With: in.With})
		for i, one := range all {
			r := result{File: in.Files[i], Success: one.Err == nil}
			if one.Err != nil {
				r.Error = strings.TrimSpace(problemText(one.Err))
			}
			out = append(out, r)
		}
		return err
	}, paths...)
	if err == nil {
		reply(c.w, http.StatusOK, out)
	}
	return err
}
