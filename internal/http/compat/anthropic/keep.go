package anthropic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	mostKept    = 20                  // files of one execution
	keptFor     = 30 * 24 * time.Hour // then a file that code wrote is deleted
	keepingTime = 2 * time.Minute     // of one execution's files
	outputs     = "assistants_output" // the purpose of such files

	mostPictures    = 1000     // of one execution, of which mostKept are kept
	roomForPictures = 64 << 20 // bytes of them
	roomForText     = 64 << 20 // bytes of what it prints, above what a kernel may
)

// keepFiles stores copies of what an execution wrote and showed, so that they are there when the container is gone.
func (s *server) keepFiles(c *call, session string, x *execution) (ids, notes []string) {
	pictures := x.screen.Shown()
	if len(x.files) == 0 && len(pictures) == 0 {
		return nil, nil
	}
	for _, action := range []auth.Action{auth.FilesRead, auth.FilesWrite} {
		if !c.who.May(action) {
			return nil, []string{"[Files that the code wrote are in the container, but were not kept: the key has not the right " + string(action) + ".]"}
		}
	}
	ctx, cancel := context.WithTimeout(c.Context(), keepingTime)
	defer cancel()
	kept := func(name string, r io.Reader) error {
		record, err := s.Hub.AddFile(ctx, c.who, hub.NewFile{Name: path.Base(name), Purpose: outputs, Life: keptFor}, r)
		if err == nil {
			ids = append(ids, fileID(record.ID))
		}
		return err
	}
	failed := func(name string, err error) {
		notes = append(notes, fmt.Sprintf("[The file %.200q was not kept: %s]", name, sentence(problem.Of(err))))
	}
	for n, p := range pictures[:min(len(pictures), mostKept)] {
		name := fmt.Sprintf("figure_%d.%s", n+1, strings.TrimPrefix(p.MIME, "image/"))
		if err := kept(name, bytes.NewReader(p.Data)); err != nil {
			failed(name, err)
		}
	}
	room := mostKept - len(ids)
	for _, file := range x.files[:min(len(x.files), max(room, 0))] {
		if err := s.copyOut(ctx, c, session, file, kept); err != nil && !problem.Has(err, problem.FileNotFound) {
			failed(file, err)
		}
	}
	if left := len(x.files) + len(pictures) + x.screen.LeftOut - mostKept; left > 0 {
		notes = append(notes, fmt.Sprintf("[%d further files were not kept: an execution may leave %d. Put them into one archive.]", left, mostKept))
	}
	return ids, notes
}

// copyOut gives a file of the workspace to kept while it is being read.
func (s *server) copyOut(ctx context.Context, c *call, session, file string, kept func(string, io.Reader) error) error {
	return s.Hub.Tree(ctx, c.who, session, false, func(ctx context.Context, t hub.Tree) error {
		info, err := t.Stat(ctx, file)
		if err != nil || info.Folder {
			return err
		}
		if info.Size > s.MaxFile {
			return tooLarge(s.MaxFile)
		}
		r, w := io.Pipe()
		read := make(chan error, 1)
		go func() {
			_, err := t.Read(ctx, file, 0, info.Size, w)
			_ = w.CloseWithError(err)
			read <- err
		}()
		err = kept(file, r)
		_ = r.CloseWithError(io.ErrClosedPipe)
		if broken := <-read; broken != nil && !errors.Is(broken, io.ErrClosedPipe) {
			return broken
		}
		return err
	})
}
