package session

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/workspace"
)

// Left lists the files of a workspace that could not be saved. It ends a salvaged archive, as the record LeftRecord of a global header.
type Left struct {
	Paths []string `json:"paths"` // the first of them
	More  int      `json:"more"`  // how many others
}

// LeftRecord is the key of the JSON of a Left among the records of an archive's global header.
const LeftRecord = "COVE.left"

// longestLeft bounds the paths of a Left.
const longestLeft = 100

func (l *Left) add(path string) {
	if len(l.Paths) == longestLeft {
		l.More++
		return
	}
	l.Paths = append(l.Paths, path)
}

// Salvage writes the files of the checkpoint's workspace to w, as tar. Processes that ran when the checkpoint was saved run on meanwhile; the sandbox ends afterwards.
// Folders come before what is in them; permissions are not taken along, nor are links, but for the files of the workspace that they lead to. With variables, one more file has those variables of the main kernel that can
// be pickled: its header has VariablesRecord. Without variables no process of the saved sandbox is asked for anything, so none has to work any more.
func Salvage(ctx context.Context, o Options, variables bool, w io.Writer) error {
	if !variables {
		return salvageFiles(ctx, o, w)
	}
	s, err := Open(ctx, o)
	if err != nil {
		return salvageFiles(ctx, o, w)
	}
	at, err := s.packVariables(ctx)
	s.mu.Lock()
	sb, l := s.sandbox, s.link
	s.mu.Unlock()
	if sb == nil || ended(sb.Done()) || ended(l.Done()) {
		// Packing the variables cost the sandbox; its files are still in the checkpoint.
		return errors.Join(s.Close(context.WithoutCancel(ctx)), salvageFiles(ctx, o, w))
	}
	p := packed{at: at, whole: err == nil}
	return errors.Join(explain(sb, salvage(ctx, l, o.Limits.OrDefault().Workspace, p, w)), s.Close(context.WithoutCancel(ctx)))
}

// packed says where the file with the variables is in a workspace. Unless it is whole it is of no use.
type packed struct {
	at    string
	whole bool
}

func salvageFiles(ctx context.Context, o Options, w io.Writer) (err error) {
	o.Limits = o.Limits.OrDefault()
	s := &Live{opts: o}
	sb, err := s.restore(ctx, s.spec())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Stop(context.WithoutCancel(ctx))) }()
	l, err := guestlink.Dial(ctx, sb, s.about())
	if err != nil {
		return explain(sb, err)
	}
	defer func() { _ = l.Close() }()
	return explain(sb, salvage(ctx, l, o.Limits.Workspace, packed{}, w))
}

// salvage archives a workspace. Files that code has made unreadable must not keep the others from being saved.
func salvage(ctx context.Context, l *guestlink.Link, room int64, p packed, w io.Writer) error {
	archive, left := tar.NewWriter(w), &Left{}
	room += growth
	for todo := []string{""}; len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, more, err := l.ListFolder(ctx, dir)
		if err != nil && !passable(err) {
			return err
		}
		if err != nil || more || strings.Count(dir, "/") > maxDepth {
			left.add(dir + "/")
		}
		for _, e := range entries {
			switch {
			case e.Folder && strings.Count(dir, "/") <= maxDepth:
				todo = append(todo, e.Path)
				err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: e.Path + "/", Mode: 0o755, ModTime: timeOf(e), Format: tar.FormatPAX})
			case e.Link:
				left.add(e.Path)
			case e.Folder, e.Path == p.at && !p.whole:
			case e.Path == p.at:
				err = carry(ctx, l, archive, e, map[string]string{VariablesRecord: "1"}, &room, left)
			default:
				err = carry(ctx, l, archive, e, nil, &room, left)
			}
			if err != nil {
				return fmt.Errorf("save %.300q: %w", e.Path, err)
			}
		}
	}
	text, err := json.Marshal(left)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{LeftRecord: string(text)}}); err != nil {
		return err
	}
	return archive.Close()
}

// passable says whether err is about one file or folder alone, so that others can still be read.
func passable(err error) bool {
	p := problem.Of(err)
	return errors.Is(err, fs.ErrNotExist) || problem.Has(p, problem.FileDenied) || problem.Has(p, problem.InvalidPath)
}

func carry(ctx context.Context, l *guestlink.Link, archive *tar.Writer, e workspace.Entry, records map[string]string, room *int64, left *Left) error {
	c, err := l.OpenFile(ctx, e.Path, 0, 0)
	if err != nil && passable(err) {
		left.add(e.Path)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if c.Len() > *room { // a sparse file may claim any size
		left.add(e.Path)
		return nil
	}
	*room -= c.Len()
	header := &tar.Header{Typeflag: tar.TypeReg, Name: e.Path, Size: c.Len(), Mode: 0o644, ModTime: timeOf(e), Format: tar.FormatPAX, PAXRecords: records}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, c)
	return err
}
