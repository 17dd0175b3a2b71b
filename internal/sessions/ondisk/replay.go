package ondisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
)

// note adds a change to the list in memory and returns the contents that are not needed any more.
func (j *journal) note(c change) (obsolete []string) {
	forget := func(path string) {
		i := j.newest[path]
		delete(j.newest, path)
		if old := &j.changes[i]; i > j.reader && (c.Op != "put" || c.covers(*old)) {
			obsolete = append(obsolete, old.Content)
			j.bytes -= old.Size
			old.void, j.void = true, j.void+1
		}
	}
	switch c.Op {
	case "put":
		if _, ok := j.newest[c.Path]; ok {
			forget(c.Path)
		}
		j.newest[c.Path] = len(j.changes)
		j.bytes += c.Size
	case "remove":
		for _, path := range j.below(c.Path) {
			forget(path)
		}
	case "move":
		if c.Over {
			for _, path := range j.below(c.To) {
				forget(path)
			}
		}
		for _, path := range j.below(c.Path) {
			i := j.newest[path]
			delete(j.newest, path)
			j.newest[c.To+strings.TrimPrefix(path, c.Path)] = i
		}
	}
	if c.Files {
		j.wide++
	}
	if j.reads(c) {
		j.reader = len(j.changes)
	}
	j.changes = append(j.changes, c)
	return obsolete
}

// reads says whether a change goes on from files that changes before it have put there, so that those are needed even when they are replaced later. In a workspace alone a path is all names of a file,
// and a move does so under the names that newest has; in a file system one file has many names.
func (j *journal) reads(c change) bool {
	switch c.Op {
	case "copy", "replace", "set":
		return true
	case "move":
		return j.wide > 0
	}
	return false
}

// covers says whether a change that puts a file there sets all that an earlier one has set of it.
func (c change) covers(earlier change) bool {
	if earlier.Set == nil || reflect.ValueOf(*earlier.Set).IsZero() {
		return true
	}
	return reflect.DeepEqual(c.Set, earlier.Set)
}

// below lists the paths at or below one that a change has put there.
func (j *journal) below(top string) (paths []string) {
	for path := range j.newest {
		if path == top || strings.HasPrefix(path, top+"/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// replay repeats the changes in a workspace that lacks them. failed are the files that could not be put there, by the paths that they would have in the end.
func (j *journal) replay(ctx context.Context, t Changes) (failed []string, err error) {
	files := map[int]string{} // by the index of the change that put the file there: its present name
	for path, i := range j.newest {
		files[i] = path
	}
	for i, c := range j.changes {
		var cause error
		switch {
		case c.void:
		case c.Files:
			cause = j.repeat(ctx, t, c)
		case c.Op == "put":
			cause = j.put(ctx, t, c)
		case c.Op == "move":
			cause = t.Move(ctx, c.Path, c.To)
		case c.Op == "remove":
			cause = t.Remove(ctx, c.Path, c.All)
		case c.Op == "folder":
			cause = t.MakeFolder(ctx, c.Path)
		}
		if cause == nil {
			continue
		}
		if p := problem.Of(cause); ctx.Err() != nil || p.Kind == problem.Internal || p.Kind == problem.Unavailable {
			return failed, fmt.Errorf("put back what was changed since the last save: %w", cause)
		}
		if path, ok := files[i]; ok {
			failed = append(failed, path)
		} else if made := c.made(); made != "" {
			failed = append(failed, made)
		}
	}
	return failed, nil
}

// made returns the path of what a change of the file system has made from what was there, or "".
func (c change) made() string {
	switch {
	case !c.Files:
	case c.Op == "copy", c.Op == "move":
		return c.To
	case c.Op == "folder", c.Op == "link":
		return c.Path
	}
	return ""
}

func (j *journal) put(ctx context.Context, t Changes, c change) error {
	return j.withContent(c, func(content io.Reader) error {
		_, err := t.Write(ctx, c.Path, content)
		return err
	})
}

// withContent has put use the content of a change, where it is still needed.
func (j *journal) withContent(c change, put func(content io.Reader) error) error {
	f, err := j.open(c.Content)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a change that is made meanwhile replaces it
	}
	if err != nil {
		return problem.New(problem.ContentUnreadable, "the content of "+c.Path+" cannot be read").WithCause(err)
	}
	defer func() { _ = f.Close() }()
	return put(f)
}

// repeat makes a change of the file system once more.
func (j *journal) repeat(ctx context.Context, t Changes, c change) error {
	l, ok := t.(FileUser)
	if !ok {
		return unchangeable()
	}
	if c.Root {
		ctx = guestlink.AsRoot(ctx)
	}
	set := filesystem.Set{}
	if c.Set != nil {
		set = *c.Set
	}
	return l.UseFiles(ctx, true, func(f guestlink.Files) (err error) {
		switch c.Op {
		case "put":
			return j.withContent(c, func(content io.Reader) error {
				_, err := f.WritePath(ctx, c.Path, content, set, false)
				return err
			})
		case "set":
			_, err = f.ChangePath(ctx, c.Path, set, c.All)
		case "replace":
			_, err = f.ReplaceText(ctx, *c.Text)
		case "move":
			_, err = f.MovePath(ctx, filesystem.Copy{From: c.Path, To: c.To, Replace: c.Over})
		case "copy":
			_, err = f.CopyPath(ctx, filesystem.Copy{From: c.Path, To: c.To, Replace: c.Over})
		case "remove":
			err = f.RemovePath(ctx, c.Path, c.All)
		case "folder":
			_, err = f.MakePath(ctx, c.Path, set, false)
		case "link":
			_, err = f.LinkPath(ctx, c.Path, c.To, c.Over)
		}
		return err
	})
}
