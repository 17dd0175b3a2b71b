package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Entry is a file or a folder of a session's workspace.
type Entry struct {
	Path     string     `json:"path" doc:"From the workspace, slash-separated" example:"data/sales.csv"`
	Folder   bool       `json:"folder"`
	Size     int64      `json:"size" doc:"Bytes"`
	ETag     string     `json:"etag,omitempty" doc:"Changes with the content"`
	Modified *time.Time `json:"modified_at,omitempty"`
}

func entryOf(i workspace.Entry) Entry {
	e := Entry{Path: i.Path, Folder: i.Folder, Size: i.Size, Modified: moment(expressible(i.Modified))}
	if !i.Folder {
		e.ETag = etagOf(i)
	}
	return e
}

// expressible returns zero for a time that JSON cannot express: code can set any time, also one after the year 9999.
func expressible(t time.Time) time.Time {
	if t.Unix() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// Folder is a folder's content.
type Folder struct {
	Path  string  `json:"path"`
	Items []Entry `json:"items"`
	More  bool    `json:"more" doc:"There are more entries than one answer may hold"`
}

type (
	// TreeQuery names a place in a workspace.
	TreeQuery struct {
		SessionPath
		Path string `query:"path" maxLength:"4096" doc:"From the workspace; the workspace itself when left out"`
	}
	movePath struct {
		SessionPath
		Body struct {
			From string `json:"from" minLength:"1" maxLength:"4096"`
			To   string `json:"to" minLength:"1" maxLength:"4096"`
		}
	}
	newFolder struct {
		SessionPath
		Body struct {
			Path string `json:"path" minLength:"1" maxLength:"4096"`
		}
	}
	putStored struct {
		SessionPath
		Body struct {
			File string `json:"file" minLength:"1" maxLength:"64" doc:"Id of a stored file"`
			Path string `json:"path,omitempty" maxLength:"4096" doc:"The file's name when left out"`
		}
	}
	removePath struct {
		SessionPath
		Path string `path:"path" maxLength:"4096"`
		All  bool   `query:"all" doc:"Also a folder with what is in it"`
	}
)

var treeProblems = []problem.Code{problem.SessionNotFound, problem.FileNotFound, problem.InvalidPath, problem.FileDenied}

func (s *server) addTree() {
	const tag = "session files"
	add(s, operation{id: "tree.list", method: http.MethodGet, path: "/sessions/{session}/files", tag: tag, action: auth.FilesRead, summary: "List a folder", about: "One level, by name.",
		errors: treeProblems, example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/files?path=data"`}, s.listFolder)
	add(s, operation{id: "tree.stat", method: http.MethodGet, path: "/sessions/{session}/stat", tag: tag, action: auth.FilesRead, summary: "Look at a file or folder", errors: treeProblems,
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/stat?path=data/sales.csv"`},
		func(ctx context.Context, who auth.Principal, in *TreeQuery) (out Entry, err error) {
			err = s.o.Hub.Tree(ctx, who, in.Session, false, func(ctx context.Context, t hub.Tree) error {
				info, err := t.Stat(ctx, in.Path)
				out = entryOf(info)
				return err
			})
			return out, err
		})
	add(s, operation{id: "tree.move", method: http.MethodPost, path: "/sessions/{session}/move", tag: tag, action: auth.FilesWrite, summary: "Move a file or folder",
		about: "Never replaces what is there.", errors: append([]problem.Code{problem.FileExists}, treeProblems...),
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/move -d '{"from":"data/sales.csv","to":"data/may.csv"}'`},
		func(ctx context.Context, who auth.Principal, in *movePath) (Entry, error) {
			return s.changeTree(ctx, who, in.Session, in.Body.To, func(ctx context.Context, t hub.Tree) error { return t.Move(ctx, in.Body.From, in.Body.To) })
		})
	add(s, operation{id: "tree.folder", method: http.MethodPost, path: "/sessions/{session}/folders", tag: tag, action: auth.FilesWrite, status: http.StatusCreated, repeat: repeatKept,
		summary: "Make a folder", errors: append([]problem.Code{problem.FileExists}, treeProblems...),
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/folders -d '{"path":"old"}'`},
		func(ctx context.Context, who auth.Principal, in *newFolder) (Entry, error) {
			return s.changeTree(ctx, who, in.Session, in.Body.Path, func(ctx context.Context, t hub.Tree) error { return t.MakeFolder(ctx, in.Body.Path) })
		})
	add(s, operation{id: "tree.put", method: http.MethodPost, path: "/sessions/{session}/files", tag: tag, action: auth.FilesWrite, status: http.StatusCreated, repeat: repeatKept,
		summary: "Put a stored file into the workspace", errors: []problem.Code{problem.SessionNotFound, problem.FileNotFound, problem.WorkspaceFull, problem.InvalidPath},
		example: `FILE=$(curl -s -H "Authorization: Bearer $KEY" -F file=@sales.csv $COVE/files | field id)
curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/files -d '{"file":"'$FILE'","path":"data/sales.csv"}'`},
		func(ctx context.Context, who auth.Principal, in *putStored) (Entry, error) {
			out, err := s.o.Hub.PutFile(ctx, who, in.Session, in.Body.File, in.Body.Path)
			return entryOf(out), err
		})
	addSilent(s, operation{id: "tree.delete", method: http.MethodDelete, path: "/sessions/{session}/files/{path...}", tag: tag, action: auth.FilesWrite, summary: "Delete a file or folder",
		errors: append([]problem.Code{problem.NotEmpty}, treeProblems...), example: `curl -H "Authorization: Bearer $KEY" -X DELETE "$COVE/sessions/$SESSION/files/old?all=true"`},
		func(ctx context.Context, who auth.Principal, in *removePath) error {
			if in.Path == "" {
				return problem.New(problem.InvalidPath, "the workspace itself cannot be deleted").WithHint("name a file or folder, or delete the session")
			}
			return s.o.Hub.Tree(ctx, who, in.Session, true, func(ctx context.Context, t hub.Tree) error { return t.Remove(ctx, in.Path, in.All) })
		})
}

func (s *server) listFolder(ctx context.Context, who auth.Principal, in *TreeQuery) (Folder, error) {
	out := Folder{Path: in.Path, Items: []Entry{}}
	err := s.o.Hub.Tree(ctx, who, in.Session, false, func(ctx context.Context, t hub.Tree) error {
		entries, more, err := t.List(ctx, in.Path)
		out.Items, out.More = each(entries, entryOf), more
		return err
	})
	return out, err
}

// changeTree changes the workspace and returns what is at path afterwards.
func (s *server) changeTree(ctx context.Context, who auth.Principal, session, path string, change func(context.Context, hub.Tree) error) (out Entry, err error) {
	err = s.o.Hub.Tree(ctx, who, session, true, func(ctx context.Context, t hub.Tree) error {
		if err := change(ctx, t); err != nil {
			return err
		}
		info, err := t.Stat(ctx, path)
		out = entryOf(info)
		return err
	})
	return out, err
}
