package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// FileEntry is an entry of the file system of a session's machine.
type FileEntry struct {
	Path       string            `json:"path" doc:"As you named it" example:"data/sales.csv"`
	Full       string            `json:"full" doc:"Absolute" example:"/home/user/data/sales.csv"`
	Kind       string            `json:"kind" enum:"file,folder,link,other" doc:"Links are symbolic links; other are pipes, sockets and devices"`
	Size       int64             `json:"size" doc:"Bytes; 0 for what is no file"`
	Mode       string            `json:"mode" doc:"Octal" example:"0644"`
	Symbolic   string            `json:"permissions" example:"-rw-r--r--"`
	UID        int               `json:"uid"`
	GID        int               `json:"gid"`
	Owner      string            `json:"owner,omitempty" example:"user"`
	Group      string            `json:"group,omitempty" example:"user"`
	Modified   *time.Time        `json:"modified_at,omitempty"`
	Accessed   *time.Time        `json:"accessed_at,omitempty"`
	Changed    *time.Time        `json:"changed_at,omitempty" doc:"When content, mode, owner or name changed last"`
	ETag       string            `json:"etag,omitempty" doc:"Changes with the content"`
	Target     string            `json:"target,omitempty" doc:"Of a link, as it says"`
	Resolved   string            `json:"resolved,omitempty" doc:"Where a link leads in the end; missing where nothing is"`
	To         string            `json:"to,omitempty" doc:"The kind of what is there"`
	Attributes map[string]string `json:"attributes,omitempty" doc:"Extended attributes user.*, without that"`
}

func fileEntryOf(n filesystem.Entry) FileEntry {
	out := FileEntry{
		Path: n.Path, Full: n.Full, Kind: string(n.Kind), Size: n.Size, Mode: fmt.Sprintf("%04o", n.Mode), Symbolic: n.Symbolic(), UID: n.UID, GID: n.GID, Owner: n.Owner, Group: n.Group,
		Modified: moment(expressible(n.Modified)), Accessed: moment(expressible(n.Accessed)), Changed: moment(expressible(n.Changed)), Target: n.Target, Resolved: n.Resolved, To: string(n.To), Attributes: n.Attributes,
	}
	if n.Kind == filesystem.File {
		out.ETag = contentTag(n.Size, n.Modified, n.Stamp)
	}
	return out
}

// Entry is what a client makes of one.
func (e FileEntry) Entry() filesystem.Entry {
	out := filesystem.Entry{
		Path: e.Path, Full: e.Full, Kind: filesystem.Kind(e.Kind), Size: e.Size, UID: e.UID, GID: e.GID, Owner: e.Owner, Group: e.Group, Target: e.Target, Resolved: e.Resolved, To: filesystem.Kind(e.To),
		Attributes: e.Attributes,
	}
	if mode, err := modeOf(e.Mode); err == nil && mode != nil {
		out.Mode = *mode
	}
	for from, to := range map[*time.Time]*time.Time{e.Modified: &out.Modified, e.Accessed: &out.Accessed, e.Changed: &out.Changed} {
		if from != nil {
			*to = *from
		}
	}
	return out
}

// EntrySet is what to change of a file or folder.
type EntrySet struct {
	Mode       string            `json:"mode,omitempty" pattern:"^[0-7]{1,5}$" doc:"Octal" example:"0640"`
	Owner      string            `json:"owner,omitempty" maxLength:"100" doc:"A name of the sandbox, or a number"`
	Group      string            `json:"group,omitempty" maxLength:"100"`
	Modified   *time.Time        `json:"modified_at,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty" doc:"Extended attributes to set, without user."`
	Remove     []string          `json:"remove_attributes,omitempty" maxItems:"100"`
}

func (n EntrySet) set() (filesystem.Set, error) {
	mode, err := modeOf(n.Mode)
	out := filesystem.Set{Mode: mode, Owner: n.Owner, Group: n.Group, Modified: n.Modified, Attributes: map[string]*string{}}
	for _, name := range n.Remove {
		out.Attributes[name] = nil
	}
	for name, value := range n.Attributes {
		out.Attributes[name] = &value
	}
	return out, err
}

func modeOf(text string) (*uint32, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return nil, problem.New(problem.InvalidRequest, "the mode is not an octal number of at most 7777").WithHint("for example 0644")
	}
	mode := uint32(n)
	return &mode, nil
}

// FileEntries is what is in a folder.
type FileEntries struct {
	Path    string      `json:"path"`
	Items   []FileEntry `json:"items"`
	More    bool        `json:"more" doc:"There is more than one answer may hold"`
	Unnamed int64       `json:"unnamed" doc:"Entries that are left out because their names are no text"`
}

// FileMatches are what a search has found.
type FileMatches struct {
	Items   []FileMatch `json:"items"`
	More    bool        `json:"more" doc:"There may be more: the search ended at its limit, or at a bound of size or time"`
	Looked  int         `json:"looked" doc:"Files that it looked into"`
	Skipped int         `json:"skipped" doc:"Files and folders that could not be read, are no text, or are too large"`
}

// FileMatch is a name, or a line with a text.
type FileMatch struct {
	Path   string `json:"path"`
	Folder bool   `json:"folder,omitempty"`
	Line   int    `json:"line,omitempty" doc:"From 1"`
	Column int    `json:"column,omitempty" doc:"Of the first match in the line, in characters from 1"`
	Text   string `json:"text,omitempty" doc:"The line, or of a long one the part around the match"`
}

// FileReplacements are what was replaced in each file.
type FileReplacements struct {
	Items []FileReplacement `json:"items"`
}

// FileReplacement is what was replaced in one.
type FileReplacement struct {
	Path    string `json:"path"`
	Times   int    `json:"times"`
	Code    string `json:"code,omitempty" doc:"Of the problem, where there was one; the file is as it was"`
	Message string `json:"message,omitempty"`
}

type (
	// PathQuery names a place in the file system of a session.
	PathQuery struct {
		SessionPath
		Path string `query:"path" maxLength:"4096" doc:"From the workspace, which it does not leave; or absolute, anywhere in the sandbox"`
	}
	pathStat struct {
		PathQuery
		Link bool `query:"link" doc:"Look at a symbolic link itself"`
	}
	pathList struct {
		PathQuery
		Depth int `query:"depth" minimum:"1" maximum:"100" default:"1" doc:"Folders within each other"`
	}
	pathSearch struct {
		PathQuery
		Name       string `query:"name" maxLength:"4096" doc:"A pattern of names, or where it has a slash of paths below path: *, ?, [abc], ** over folders" example:"*.py"`
		Text       string `query:"text" maxLength:"4096" doc:"To look for in each line; names alone when left out"`
		Regular    bool   `query:"regular" doc:"text is a regular expression (RE2)"`
		IgnoreCase bool   `query:"ignore_case"`
		Limit      int    `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
	}
	pathWatch struct {
		PathQuery
		All bool `query:"all" doc:"Also the folders below, those that come later too"`
	}
	changePath struct {
		SessionPath
		Body struct {
			EntrySet
			Path string `json:"path" maxLength:"4096"`
			All  bool   `json:"all,omitempty" doc:"Also of all that is in a folder"`
		}
	}
	copyPath struct {
		SessionPath
		Body struct {
			From    string `json:"from" minLength:"1" maxLength:"4096"`
			To      string `json:"to" minLength:"1" maxLength:"4096"`
			Replace bool   `json:"replace,omitempty" doc:"A file that is there may be replaced; a folder never is"`
		}
	}
	removeEntry struct {
		SessionPath
		Body struct {
			Path string `json:"path" minLength:"1" maxLength:"4096"`
			All  bool   `json:"all,omitempty" doc:"Also a folder with what is in it"`
		}
	}
	makePath struct {
		SessionPath
		Body struct {
			Path string `json:"path" minLength:"1" maxLength:"4096"`
			Mode string `json:"mode,omitempty" pattern:"^[0-7]{1,5}$"`
			New  bool   `json:"new,omitempty" doc:"It may not be there yet"`
		}
	}
	linkPath struct {
		SessionPath
		Body struct {
			Path    string `json:"path" minLength:"1" maxLength:"4096"`
			Target  string `json:"target" minLength:"1" maxLength:"4096" doc:"Which need not be there"`
			Replace bool   `json:"replace,omitempty"`
		}
	}
	replaceText struct {
		SessionPath
		Body struct {
			Paths      []string `json:"paths" minItems:"1" maxItems:"1000"`
			Text       string   `json:"text" minLength:"1" maxLength:"4096"`
			With       string   `json:"with" maxLength:"65536" doc:"With regular, $1 is the first group"`
			Regular    bool     `json:"regular,omitempty" doc:"text is a regular expression (RE2)"`
			IgnoreCase bool     `json:"ignore_case,omitempty"`
		}
	}
)

const (
	tagFileSystem = "file system"
	atFileSystem  = "/sessions/{session}/fs"
)

var (
	pathProblems   = []problem.Code{problem.SessionNotFound, problem.FileNotFound, problem.InvalidPath, problem.FileDenied, problem.FilesAbsent}
	changeProblems = append([]problem.Code{problem.FileExists, problem.WorkspaceFull}, pathProblems...)
)

func (s *server) addFileSystem() {
	add(s, operation{id: "fs.stat", method: http.MethodGet, path: atFileSystem + "/stat", tag: tagFileSystem, action: auth.FilesRead, summary: "Look at a file, folder or link", errors: pathProblems,
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/fs/stat?path=/etc/hosts"`},
		func(ctx context.Context, who auth.Principal, in *pathStat) (out FileEntry, err error) {
			err = s.look(ctx, who, in.PathQuery, func(ctx context.Context, f guestlink.Files) error {
				n, err := f.StatPath(ctx, in.Path, in.Link)
				out = fileEntryOf(n)
				return err
			})
			return out, err
		})
	add(s, operation{id: "fs.list", method: http.MethodGet, path: atFileSystem + "/list", tag: tagFileSystem, action: auth.FilesRead, summary: "List a folder, and what is below it",
		about: "A folder before what is in it, and by name. Links are listed and not followed.", errors: pathProblems,
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/fs/list?path=data&depth=3"`},
		func(ctx context.Context, who auth.Principal, in *pathList) (out FileEntries, err error) {
			out.Path = in.Path
			err = s.look(ctx, who, in.PathQuery, func(ctx context.Context, f guestlink.Files) error {
				entries, more, unnamed, err := f.ListPath(ctx, in.Path, in.Depth)
				out.Items, out.More, out.Unnamed = each(entries, fileEntryOf), more, unnamed
				return err
			})
			return out, err
		})
	add(s, operation{id: "fs.search", method: http.MethodGet, path: atFileSystem + "/search", tag: tagFileSystem, action: auth.FilesRead, summary: "Search for names and text",
		about: "In a file, or in a folder and below it. Links are not followed. A search looks at most 30 seconds, at a million names and into a gibibyte of text.", errors: pathProblems,
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/fs/search?path=&name=*.csv&text=amount"`}, s.searchFiles)
	add(s, operation{id: "fs.change", method: http.MethodPost, path: atFileSystem + "/change", tag: tagFileSystem, action: auth.FilesWrite, summary: "Change mode, owner, time or attributes",
		errors: changeProblems, example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/fs/change \
  -d '{"path":"data/sales.csv","mode":"0640","attributes":{"source":"erp"}}'`},
		func(ctx context.Context, who auth.Principal, in *changePath) (FileEntry, error) {
			set, err := in.Body.set()
			if err != nil {
				return FileEntry{}, err
			}
			return s.changeFiles(ctx, who, in.Session, "session.file.change", []string{in.Body.Path}, func(ctx context.Context, f guestlink.Files) (filesystem.Entry, error) {
				return f.ChangePath(ctx, in.Body.Path, set, in.Body.All)
			})
		})
	s.addFileSystemNames()
	s.addFileSystemContent()
}

// addFileSystemNames adds what makes, moves and removes names.
func (s *server) addFileSystemNames() {
	move := func(id, summary, about, action, example string, do func(f guestlink.Files, ctx context.Context, c filesystem.Copy) (filesystem.Entry, error)) {
		add(s, operation{id: "fs." + id, method: http.MethodPost, path: atFileSystem + "/" + id, tag: tagFileSystem, action: auth.FilesWrite, summary: summary, about: about, errors: changeProblems, example: example},
			func(ctx context.Context, who auth.Principal, in *copyPath) (FileEntry, error) {
				b := in.Body
				return s.changeFiles(ctx, who, in.Session, action, []string{b.From, b.To}, func(ctx context.Context, f guestlink.Files) (filesystem.Entry, error) {
					return do(f, ctx, filesystem.Copy{From: b.From, To: b.To, Replace: b.Replace})
				})
			})
	}
	move("copy", "Copy a file, folder or link", "A folder goes with what is in it, and is there when it is whole.", "session.file.copy",
		`curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/fs/copy -d '{"from":"data/sales.csv","to":"/tmp/kept.csv"}'`, guestlink.Files.CopyPath)
	move("move", "Move a file, folder or link", "Also from one file system to another.", "session.file.move",
		`curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/fs/move -d '{"from":"/tmp/kept.csv","to":"data/kept.csv"}'`, guestlink.Files.MovePath)
	add(s, operation{id: "fs.folder", method: http.MethodPost, path: atFileSystem + "/folder", tag: tagFileSystem, action: auth.FilesWrite, status: http.StatusCreated, repeat: repeatKept, summary: "Make a folder",
		about: "And those that lead to it.", errors: changeProblems, example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/fs/folder -d '{"path":"scratch/deep","mode":"0700"}'`},
		func(ctx context.Context, who auth.Principal, in *makePath) (FileEntry, error) {
			mode, err := modeOf(in.Body.Mode)
			if err != nil {
				return FileEntry{}, err
			}
			return s.changeFiles(ctx, who, in.Session, "session.folder.create", []string{in.Body.Path}, func(ctx context.Context, f guestlink.Files) (filesystem.Entry, error) {
				return f.MakePath(ctx, in.Body.Path, filesystem.Set{Mode: mode}, in.Body.New)
			})
		})
	add(s, operation{id: "fs.link", method: http.MethodPost, path: atFileSystem + "/link", tag: tagFileSystem, action: auth.FilesWrite, status: http.StatusCreated, repeat: repeatKept, summary: "Make a symbolic link",
		errors: changeProblems, example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/fs/link \
  -d '{"path":"latest.csv","target":"data/sales.csv","replace":true}'`},
		func(ctx context.Context, who auth.Principal, in *linkPath) (FileEntry, error) {
			b := in.Body
			return s.changeFiles(ctx, who, in.Session, "session.link.create", []string{b.Path}, func(ctx context.Context, f guestlink.Files) (filesystem.Entry, error) {
				return f.LinkPath(ctx, b.Path, b.Target, b.Replace)
			})
		})
	add(s, operation{id: "fs.replace", method: http.MethodPost, path: atFileSystem + "/replace", tag: tagFileSystem, action: auth.FilesWrite, summary: "Replace text in files",
		about: "In each file all of it or nothing. Each has its own outcome.", errors: pathProblems, example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/fs/replace \
  -d '{"paths":["data/sales.csv"],"text":"amount","with":"total"}'`}, s.replaceText)
	addSilent(s, operation{id: "fs.remove", method: http.MethodPost, path: atFileSystem + "/remove", tag: tagFileSystem, action: auth.FilesWrite, summary: "Remove a file, folder or link",
		errors: append([]problem.Code{problem.NotEmpty}, pathProblems...), example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/fs/remove -d '{"path":"scratch","all":true}'`},
		func(ctx context.Context, who auth.Principal, in *removeEntry) error {
			use := hub.FilesUse{Action: "session.file.delete", Paths: []string{in.Body.Path}}
			return s.o.Hub.UseFiles(ctx, who, in.Session, use, func(ctx context.Context, f guestlink.Files) error {
				return f.RemovePath(ctx, in.Body.Path, in.Body.All)
			})
		})
}

// look uses the file system without changing it.
func (s *server) look(ctx context.Context, who auth.Principal, in PathQuery, use func(ctx context.Context, f guestlink.Files) error) error {
	return s.o.Hub.UseFiles(ctx, who, in.Session, hub.FilesUse{Paths: []string{in.Path}}, use)
}

// changeFiles changes the file system and returns what is there afterwards.
func (s *server) changeFiles(ctx context.Context, who auth.Principal, session, action string, paths []string, change func(ctx context.Context, f guestlink.Files) (filesystem.Entry, error)) (out FileEntry, err error) {
	err = s.o.Hub.UseFiles(ctx, who, session, hub.FilesUse{Action: action, Paths: paths}, func(ctx context.Context, f guestlink.Files) error {
		n, err := change(ctx, f)
		out = fileEntryOf(n)
		return err
	})
	return out, err
}

func (s *server) searchFiles(ctx context.Context, who auth.Principal, in *pathSearch) (out FileMatches, err error) {
	search := filesystem.Search{Path: in.Path, Name: in.Name, Text: in.Text, Regular: in.Regular, Fold: in.IgnoreCase, Limit: in.Limit}
	err = s.look(ctx, who, in.PathQuery, func(ctx context.Context, f guestlink.Files) error {
		if err := search.Check(); err != nil {
			return err
		}
		found, err := f.SearchFiles(ctx, search)
		out = FileMatches{More: found.More, Looked: found.Looked, Skipped: found.Skipped}
		out.Items = each(found.Matches, func(m filesystem.Match) FileMatch { return FileMatch(m) })
		return err
	})
	return out, err
}

func (s *server) replaceText(ctx context.Context, who auth.Principal, in *replaceText) (out FileReplacements, err error) {
	b := in.Body
	replace := filesystem.Replace{Paths: b.Paths, Text: b.Text, With: b.With, Regular: b.Regular, Fold: b.IgnoreCase}
	if err := replace.Check(); err != nil {
		return out, err
	}
	use := hub.FilesUse{Action: "session.file.replace", Paths: b.Paths}
	err = s.o.Hub.UseFiles(ctx, who, in.Session, use, func(ctx context.Context, f guestlink.Files) error {
		did, err := f.ReplaceText(ctx, replace)
		out.Items = each(did, func(r filesystem.Replaced) FileReplacement {
			one := FileReplacement{Path: r.Path, Times: r.Times}
			if r.Err != nil {
				one.Code, one.Message = r.Err.Code, r.Err.Message
			}
			return one
		})
		return err
	})
	return out, err
}
