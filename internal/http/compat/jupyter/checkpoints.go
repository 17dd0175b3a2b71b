package jupyter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
)

const (
	checkpointFolder = ".ipynb_checkpoints" // where other Jupyter servers have them
	checkpointID     = "checkpoint"         // a file has one
)

// parted takes what the Contents API has after a file's path off it: "checkpoints", "checkpoints/ID" or "trust".
func parted(said string) (d document, rest string, err error) {
	said = strings.Trim(said, "/")
	before, last := path.Split(said)
	switch {
	case last == "checkpoints" || last == "trust":
		said, rest = before, last
	case path.Base(before) == "checkpoints" && before != "":
		said, rest = path.Dir(strings.TrimSuffix(before, "/")), "checkpoints/"+last
	}
	d, err = documentOf(said)
	return d, rest, err
}

// checkpointOf is where the checkpoint of a file is.
func checkpointOf(d document) document {
	name, ext := d.name(), path.Ext(d.name())
	return d.folder().in(checkpointFolder).in(strings.TrimSuffix(name, ext) + "-" + checkpointID + ext)
}

type checkpointModel struct {
	ID       string `json:"id"`
	Modified string `json:"last_modified"`
}

func noCheckpoint(d document) error {
	return problem.New(problem.FileNotFound, "Checkpoint does not exist: "+string(d))
}

func (s *server) listCheckpoints(c *call, d document, rest string) error {
	if rest != "checkpoints" {
		return noCheckpoint(d)
	}
	list := []checkpointModel{}
	err := s.look(c, d, func(ctx context.Context, f guestlink.Files) error {
		e, err := f.StatPath(ctx, checkpointOf(d).at(), false)
		if err == nil {
			list = append(list, checkpointModel{checkpointID, moment(e.Modified)})
		}
		if problem.Has(err, problem.FileNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, list)
}

// postCheckpoint makes a checkpoint, goes back to it, or trusts a notebook, which is the business of a client's machine.
func (s *server) postCheckpoint(c *call, d document, rest string) error {
	d, err := visible(string(d), "save")
	if err != nil {
		return err
	}
	switch rest {
	case "trust":
		if _, err := s.read(c, d, wanted{}); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusCreated)
		return nil
	case "checkpoints":
		made := checkpointModel{ID: checkpointID}
		err := s.use(c, writesFile, []document{d}, func(ctx context.Context, f guestlink.Files) error {
			e, err := f.CopyPath(ctx, filesystem.Copy{From: d.at(), To: checkpointOf(d).at(), Replace: true})
			made.Modified = moment(e.Modified)
			return err
		})
		if err != nil {
			return err
		}
		c.w.Header().Set("Location", d.address()+"/checkpoints/"+checkpointID)
		return c.reply(http.StatusCreated, made)
	case "checkpoints/" + checkpointID:
		err := s.use(c, writesFile, []document{d}, func(ctx context.Context, f guestlink.Files) error {
			_, err := f.CopyPath(ctx, filesystem.Copy{From: checkpointOf(d).at(), To: d.at(), Replace: true})
			return err
		})
		if err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return noCheckpoint(d)
}

func (s *server) deleteCheckpoint(c *call, d document, rest string) error {
	if rest != "checkpoints/"+checkpointID {
		return noCheckpoint(d)
	}
	err := s.use(c, removesFile, []document{d}, func(ctx context.Context, f guestlink.Files) error {
		return f.RemovePath(ctx, checkpointOf(d).at(), false)
	})
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// A file that comes in chunks is kept in a hidden folder beside it, and put together when the last one is there: chunk 1 begins, and -1 is the last.
const (
	mostChunks = 100_000
	lastChunk  = -1
)

func chunksOf(d document) document { return d.folder().in("." + d.name() + ".cove-upload") }

func chunkName(n int) string { return fmt.Sprintf("%06d", n) }

// saveChunk keeps one chunk of a file.
func (in contentsRequest) saveChunk(ctx context.Context, f guestlink.Files, d document, text []byte) (m contentsModel, err error) {
	n, folder := *in.Chunk, chunksOf(d)
	if n != lastChunk && (n < 1 || n >= mostChunks) {
		return m, problem.New(problem.InvalidRequest, "a chunk has a number from 1 on, and the last one is -1")
	}
	if n == 1 {
		if err = f.RemovePath(ctx, folder.at(), true); err != nil && !problem.Has(err, problem.FileNotFound) {
			return m, err
		}
	}
	if n == lastChunk {
		return joinChunks(ctx, f, d, text)
	}
	e, err := f.WritePath(ctx, folder.in(chunkName(n)).at(), strings.NewReader(string(text)), filesystem.Set{}, false)
	m = bare(d, e)
	m.Type = typeFile
	return m, err
}

// joinChunks puts a file together from its chunks and the last one.
func joinChunks(ctx context.Context, f guestlink.Files, d document, last []byte) (m contentsModel, err error) {
	folder := chunksOf(d)
	all, more, _, err := f.ListPath(ctx, folder.at(), 1)
	if err == nil && more {
		err = problem.New(problem.FileTooLarge, "the file has too many chunks")
	}
	if err != nil {
		return m, err
	}
	whole := &chunks{ctx: ctx, f: f, folder: folder, count: len(all), last: last}
	e, err := f.WritePath(ctx, d.at(), whole, filesystem.Set{}, false)
	whole.close()
	if err != nil {
		return m, err
	}
	m = bare(d, e)
	m.Type = typeFile
	return m, f.RemovePath(ctx, folder.at(), true)
}

// chunks reads chunks one after the other.
type chunks struct {
	ctx    context.Context
	f      guestlink.Files
	folder document
	count  int // of those that are stored
	at     int // of which so many were opened
	now    io.ReadCloser
	last   []byte // read when now is nil and all were opened
}

func (c *chunks) Read(p []byte) (int, error) {
	for {
		if c.now == nil && c.at == c.count {
			n := copy(p, c.last)
			if c.last = c.last[n:]; n == 0 && len(p) > 0 {
				return 0, io.EOF
			}
			return n, nil
		}
		if c.now == nil {
			c.at++
			r, err := c.f.OpenPath(c.ctx, c.folder.in(chunkName(c.at)).at(), 0, 0)
			if err != nil {
				return 0, err
			}
			c.now = r
		}
		n, err := c.now.Read(p)
		if errors.Is(err, io.EOF) {
			c.close()
			err = nil
			if n == 0 {
				continue
			}
		}
		return n, err
	}
}

func (c *chunks) close() {
	if c.now != nil {
		_ = c.now.Close()
		c.now = nil
	}
}
