package guestlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/machine/wire"
	"cove/internal/machine/workspace"
)

// checkPath refuses what would reach the guest as another path: JSON has no other bytes than text.
func checkPath(path string) error {
	if utf8.ValidString(path) && !strings.ContainsRune(path, 0) {
		return nil
	}
	return problem.New(problem.InvalidPath, fmt.Sprintf("%.300q is not text, so it cannot be a path", path))
}

// WriteFile puts r's bytes into the workspace's file path (relative, slash-separated), with its folders: all of them, or when it fails, none. It
// returns the stamp under which ListFiles lists the file until it changes.
func (l *Link) WriteFile(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (stamp string, err error) {
	written, err := l.Write(ctx, path, r, mode)
	return written.Stamp, err
}

// Write is WriteFile that describes the file.
func (l *Link) Write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (workspace.Entry, error) {
	info, err := l.write(ctx, path, r, mode)
	if err != nil {
		return workspace.Entry{}, fmt.Errorf("write %.300s: %w", path, err)
	}
	return info, nil
}

func (l *Link) write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (workspace.Entry, error) {
	info := workspace.Entry{Path: path}
	if err := checkPath(path); err != nil {
		return info, err
	}
	resp, _, err := l.send(ctx, wire.Request{Op: wire.OpFileWrite, Path: path, Mode: uint32(mode.Perm())}, r)
	info.Size, info.Stamp, info.Modified = resp.Size, resp.Stamp, moment(resp.Modified)
	return info, err
}

// send does an operation that takes r's bytes.
func (l *Link) send(ctx context.Context, req wire.Request, r io.Reader) (resp wire.Response, body []byte, err error) {
	if ctx.Err() != nil {
		return resp, nil, ctx.Err()
	}
	ch, err := l.conn.Open(ctx)
	if err != nil {
		return resp, nil, err
	}
	// Reset, not closed: the guest would take what it has got for all of it.
	abort := func() { _ = ch.Reset("given up") }
	defer abort()
	defer context.AfterFunc(ctx, abort)()
	if err := wire.WriteMessage(ch, req, nil); err != nil {
		return resp, nil, err
	}
	a := l.attend(abort)
	defer a.end()
	source := &problem.Source{From: r}
	_, sendErr := io.Copy(writerOnly{ch}, source)
	if source.Failed != nil {
		return resp, nil, source.Failed
	}
	if sendErr == nil && ctx.Err() == nil {
		sendErr = ch.CloseWrite()
	}
	// A guest that cannot write answers before all bytes are sent; its answer says more than the failed send.
	resp, body, err = l.respond(ctx, ch)
	if err == nil {
		err = sendErr
	}
	return resp, body, a.orSilent(err)
}

type writerOnly struct{ io.Writer }

// Content is a file that is being read.
type Content struct {
	Size    int64 // of the whole file, when it was opened
	left    int64
	ch      *wire.Channel
	release func()
}

// OpenFile opens a workspace's file for reading limit bytes (0: all) from offset on. ctx bounds the reading too.
func (l *Link) OpenFile(ctx context.Context, path string, offset, limit int64) (*Content, error) {
	if err := checkPath(path); err != nil {
		return nil, fmt.Errorf("read %.300q: %w", path, err)
	}
	c, err := l.content(ctx, wire.Request{Op: wire.OpFileRead, Path: path, Offset: offset, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("read %.300s: %w", path, err)
	}
	return c, nil
}

// content begins to read a file.
func (l *Link) content(ctx context.Context, req wire.Request) (*Content, error) {
	ch, release, err := l.open(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	resp, _, err := l.respond(ctx, ch)
	if err != nil {
		release()
		return nil, shortened(err)
	}
	c := &Content{Size: resp.Size, left: max(0, resp.Size-req.Offset), ch: ch, release: release}
	if req.Limit > 0 {
		c.left = min(c.left, req.Limit)
	}
	return c, nil
}

// Read yields exactly the bytes that were asked for, as far as the file had them when it was opened; when code has shortened it since, problem.FileChanging.
func (c *Content) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.ch.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = wire.ErrReset
	}
	return n, shortened(err)
}

// shortened says what a guest means that gives up sending a file. Its reset may come before its answer was read, and takes that away.
func shortened(err error) error {
	if errors.Is(err, wire.ErrReset) {
		return problem.New(problem.FileChanging, "the file became shorter while it was read").WithHint("try again").WithCause(io.ErrUnexpectedEOF)
	}
	return err
}

// Whole is the size of the file, when it was opened.
func (c *Content) Whole() int64 { return c.Size }

// Len is the number of bytes that are still to be read.
func (c *Content) Len() int64 { return c.left }

// Close ends the reading.
func (c *Content) Close() error {
	c.release()
	return nil
}

// ReadFile copies at most limit bytes (0: all) of the workspace's file path to w and returns the file's size.
func (l *Link) ReadFile(ctx context.Context, path string, limit int64, w io.Writer) (int64, error) {
	return l.ReadRange(ctx, path, 0, limit, w)
}

// ReadRange is ReadFile from offset on.
func (l *Link) ReadRange(ctx context.Context, path string, offset, limit int64, w io.Writer) (int64, error) {
	c, err := l.OpenFile(ctx, path, offset, limit)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	if _, err := io.Copy(w, c); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return c.Size, fmt.Errorf("read %.300s: %w", path, err)
	}
	return c.Size, nil
}

// ListFiles lists the workspace's regular files. more says that there are more than a listing holds.
func (l *Link) ListFiles(ctx context.Context) (files []workspace.Entry, more bool, err error) {
	return l.list(ctx, wire.Request{Op: wire.OpFileList})
}

// ListFolder lists the files and folders of one folder ("" is the workspace), by name, and after them the symlinks that lead to no file of the workspace. more says that there are more than a listing holds.
func (l *Link) ListFolder(ctx context.Context, dir string) (entries []workspace.Entry, more bool, err error) {
	entries, more, err = l.list(ctx, wire.Request{Op: wire.OpFileFolder, Path: dir})
	return slices.DeleteFunc(entries, func(e workspace.Entry) bool { return path.Join(dir, path.Base(e.Path)) != e.Path }), more, err
}

// list asks for a listing. Code may have manipulated the answer: a path outside the workspace is not passed on.
func (l *Link) list(ctx context.Context, req wire.Request) (files []workspace.Entry, more bool, err error) {
	var said listing
	resp, err := l.ask(ctx, req, &said)
	if err != nil {
		return nil, false, fmt.Errorf("list files: %w", err)
	}
	for _, f := range said {
		if fs.ValidPath(f.Path) && f.Path != "." && f.Size >= 0 {
			files = append(files, entryOf(f))
		}
	}
	return files, resp.More, nil
}

func entryOf(f wire.FileInfo) workspace.Entry {
	return workspace.Entry{Path: f.Path, Size: f.Size, Stamp: f.Stamp, Folder: f.Folder, Link: f.Link, Modified: moment(f.Modified)}
}

// moment is a time of the guest's: microseconds since 1970, which code can set to any; 0 where nobody looked.
func moment(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// listing is decoded only as far as an honest guest's goes: decoded, two bytes of JSON can take fifty.
type listing []wire.FileInfo

func (l *listing) UnmarshalJSON(text []byte) error {
	files, err := bounded[wire.FileInfo](text, wire.ListLimit)
	*l = files
	return err
}

// Stat describes a file or a folder.
func (l *Link) Stat(ctx context.Context, path string) (workspace.Entry, error) {
	var info wire.FileInfo
	if _, err := l.ask(ctx, wire.Request{Op: wire.OpFileStat, Path: path}, &info); err != nil {
		return workspace.Entry{}, fmt.Errorf("look at %.300s: %w", path, err)
	}
	info.Path = path
	return entryOf(info), nil
}

// Move gives a file or folder another name and never replaces anything. It returns the stamp that the file is listed under then.
func (l *Link) Move(ctx context.Context, from, to string) (stamp string, err error) {
	if err = checkPath(to); err != nil {
		return "", err
	}
	resp, err := l.ask(ctx, wire.Request{Op: wire.OpFileMove, Path: from, To: to}, nil)
	if err != nil {
		return "", fmt.Errorf("move %.300s: %w", from, err)
	}
	return resp.Stamp, nil
}

// Remove removes a file or an empty folder, with all a folder with what is in it.
func (l *Link) Remove(ctx context.Context, path string, all bool) error {
	if _, err := l.ask(ctx, wire.Request{Op: wire.OpFileRemove, Path: path, All: all}, nil); err != nil {
		return fmt.Errorf("remove %.300s: %w", path, err)
	}
	return nil
}

// MakeFolder makes a folder and those on the way to it. One that is there already is fine.
func (l *Link) MakeFolder(ctx context.Context, path string) error {
	if _, err := l.ask(ctx, wire.Request{Op: wire.OpFileFolderMake, Path: path}, nil); err != nil {
		return fmt.Errorf("make folder %.300s: %w", path, err)
	}
	return nil
}

// ask does an operation that is one request and one answer, whose body is JSON when into is not nil.
func (l *Link) ask(ctx context.Context, req wire.Request, into any) (wire.Response, error) {
	if err := checkPath(req.Path); err != nil {
		return wire.Response{}, err
	}
	ch, release, err := l.open(ctx, req, nil)
	if err != nil {
		return wire.Response{}, err
	}
	defer release()
	resp, body, err := l.respond(ctx, ch)
	if err == nil && into != nil {
		err = json.Unmarshal(body, into)
	}
	return resp, err
}
