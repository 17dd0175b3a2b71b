package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
)

type sessionCp struct {
	Paths []string `arg:"" name:"path" help:"What to copy, and last where to. NAME:PATH is in the session NAME; - is standard input or output."`
	JSON  bool     `name:"json" help:"Print what was copied as JSON, an object per line."`
	serverFlags
}

// Help is the long help.
func (sessionCp) Help() string {
	return `Copies files and folders into a session, or out of one. In a session, a relative path begins at the workspace, and an absolute one is anywhere in
the sandbox. A session that is copied into is made when there is none. What is there is replaced, each file when its copy is whole; folders
are filled up. Links in folders are left out, and said.

Examples:

    cove session cp data.csv notes/ lab:
    cove session cp lab:charts/ .
    cove session cp lab:/tmp/log.txt - | tail
    gunzip -c dump.gz | cove session cp - lab:dump.sql`
}

// place is one side of a copy.
type cpPlace struct {
	session string // "": here
	path    string
}

// placeOf reads NAME:PATH. What has a slash before its first colon is a path here, as ./a:b.
func placeOf(text string) cpPlace {
	name, rest, ok := strings.Cut(text, ":")
	if !ok || name == "" || strings.ContainsAny(name, "/\\") {
		return cpPlace{path: text}
	}
	return cpPlace{name, rest}
}

func (c *sessionCp) run(ctx context.Context, p *Program) (int, error) {
	if len(c.Paths) < 2 {
		return 0, problem.New(problem.Usage, "cp takes what to copy and where to").WithHint("for example `cove session cp data.csv lab:`")
	}
	var from []cpPlace
	for _, text := range c.Paths[:len(c.Paths)-1] {
		from = append(from, placeOf(text))
	}
	work := copying{p: p, json: c.JSON, to: placeOf(c.Paths[len(c.Paths)-1]), many: len(from) > 1}
	name := work.to.session
	for _, f := range from {
		switch {
		case (f.session == "") == (work.to.session == ""):
			return 0, problem.New(problem.Usage, "one side of a copy is in a session, and the other is here").WithHint("write NAME:PATH for a path in the session NAME")
		case name != "" && f.session != "" && f.session != name:
			return 0, problem.New(problem.Usage, "all that is copied at a time is in one session")
		case f.session != "":
			name = f.session
		}
	}
	work.live = p.live
	w := machineWork{machineFlags: machineFlags{Name: name, serverFlags: c.serverFlags}, command: "cove session cp", fresh: work.to.session != ""}
	w.do = func(ctx context.Context, m machine) (int, error) {
		defer work.live.Over()
		for _, f := range from {
			do := work.out
			if work.to.session != "" {
				do = work.in
			}
			if err := do(ctx, m, f.path); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
	return p.onMachine(ctx, w)
}

// copying is a copy into a session or out of one.
type copying struct {
	p    *Program
	json bool
	live *terminal.Live
	to   cpPlace
	many bool // several go into one folder
}

// in copies a file or folder of this machine's into the session.
func (c *copying) in(ctx context.Context, m machine, host string) error {
	target := c.to.path
	if host == "-" {
		if target == "" || strings.HasSuffix(target, "/") {
			return problem.New(problem.Usage, "standard input needs the name of a file").WithHint("for example `cove session cp - lab:dump.sql`")
		}
		return c.send(ctx, m, c.p.In, "-", target, nil)
	}
	found, skipped, err := collectOne(host)
	if err != nil {
		return err
	}
	c.tellLinks(skipped)
	base, err := baseName(host)
	if err != nil {
		return err
	}
	into := c.many || target == "" || strings.HasSuffix(target, "/")
	if !into {
		e, err := m.StatPath(ctx, target)
		if into = err == nil && e.Kind == filesystem.Folder; err != nil && !problem.Has(err, problem.FileNotFound) {
			return err
		}
	}
	for _, file := range found {
		name := path.Join(target, strings.TrimPrefix(strings.TrimPrefix(file.name, base), "/"))
		if into {
			name = path.Join(target, file.name)
		}
		if err := c.sendFile(ctx, m, file, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) sendFile(ctx context.Context, m machine, file input, name string) error {
	f, err := os.Open(file.host)
	if err != nil {
		return unreadable(file.host, err)
	}
	defer func() { _ = f.Close() }()
	mode := uint32(file.info.Mode().Perm()) | 0o600
	return c.send(ctx, m, f, file.host, name, &mode)
}

func (c *copying) send(ctx context.Context, m machine, r io.Reader, from, to string, mode *uint32) error {
	counted := &progress{live: c.live, text: oneLine(from) + " -> " + oneLine(c.to.session+":"+to)}
	if err := m.WritePath(ctx, to, io.TeeReader(r, counted), mode); err != nil {
		return err
	}
	return c.tell(from, c.to.session+":"+to, counted.bytes)
}

// out copies a file or folder of the session to this machine. Names come from the sandbox: none leads out of the folder that they are written into.
func (c *copying) out(ctx context.Context, m machine, from string) error {
	e, err := m.StatPath(ctx, from)
	if err != nil {
		return err
	}
	if c.to.path == "-" {
		if e.Kind == filesystem.Folder {
			return problem.New(problem.Usage, "a folder cannot be written to standard output").WithHint("name a file, or a folder to copy into")
		}
		return m.ReadPath(ctx, from, c.p.Out)
	}
	folder, name := filepath.Dir(c.to.path), filepath.Base(c.to.path)
	base := path.Base(e.Full)
	if fi, err := os.Stat(c.to.path); c.many || strings.HasSuffix(c.to.path, "/") || err == nil && fi.IsDir() {
		if folder, name = c.to.path, base; name == "/" || path.Clean(from) == "." {
			name = "." // the workspace, or all: what is in it
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return problem.New(problem.FileUnwritable, "cannot make the folder "+oneLine(folder)).WithCause(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return problem.New(problem.FileUnwritable, "cannot write into "+oneLine(folder)).WithCause(err)
	}
	defer func() { _ = root.Close() }()
	d := receiving{c, m, root, folder}
	if e.Kind != filesystem.Folder {
		return d.file(ctx, from, name, e.Mode)
	}
	return d.folderOf(ctx, from, name)
}

// receiving is a folder here that files of a session are written into.
type receiving struct {
	*copying
	m      machine
	root   *os.Root
	folder string
}

func (d receiving) folderOf(ctx context.Context, from, name string) error {
	entries, more, err := d.m.ListPath(ctx, from, filesystem.DeepestList)
	if err != nil {
		return err
	}
	var links []string
	if err := d.make(name); err != nil {
		return err
	}
	for _, e := range entries {
		below := strings.TrimPrefix(strings.TrimPrefix(e.Path, path.Clean(from)), "/")
		if path.Clean(from) == "." {
			below = e.Path
		}
		if !fs.ValidPath(below) {
			return problem.New(problem.GuestFault, fmt.Sprintf("the sandbox names a file %.100q, which is not one of the folder", e.Path))
		}
		target := path.Join(name, below)
		switch e.Kind {
		case filesystem.Folder:
			err = d.make(target)
		case filesystem.File:
			err = d.file(ctx, e.Path, target, e.Mode)
		default:
			links = append(links, e.Path)
		}
		if err != nil {
			return err
		}
	}
	d.tellLinks(links)
	if more {
		return problem.New(problem.FileTooLarge, fmt.Sprintf("the folder has more files than are copied at a time; the first %d are", len(entries))).WithHint("copy its folders one by one, or pack them in the session first")
	}
	return nil
}

func (d receiving) make(name string) error {
	if err := d.root.MkdirAll(name, 0o755); err != nil {
		return problem.New(problem.FileUnwritable, "cannot make the folder "+oneLine(filepath.Join(d.folder, name))).WithCause(err)
	}
	return nil
}

// file writes one file, which is there when it is whole.
func (d receiving) file(ctx context.Context, from, name string, mode uint32) error {
	full := filepath.Join(d.folder, name)
	unwritable := func(err error) error {
		return problem.New(problem.FileUnwritable, "cannot write "+oneLine(full)).WithCause(err)
	}
	if err := d.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return unwritable(err)
	}
	part := path.Join(path.Dir(name), ".cove-"+rand.Text()+".part")
	f, err := d.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(mode)&0o777|0o600)
	if err != nil {
		return unwritable(err)
	}
	counted := &progress{live: d.live, text: oneLine(from) + " -> " + oneLine(full)}
	err = d.m.ReadPath(ctx, from, io.MultiWriter(f, counted))
	if closed := f.Close(); err == nil && closed != nil {
		err = unwritable(closed)
	}
	if err == nil {
		if err = d.root.Rename(part, name); err != nil {
			err = unwritable(err)
		}
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(part))
	}
	return d.tell(from, full, counted.bytes)
}

func (c *copying) tell(from, to string, size int64) error {
	if c.json {
		c.live.Over()
		return c.p.printLine(map[string]any{"from": from, "to": to, "bytes": size})
	}
	return nil
}

func (c *copying) tellLinks(links []string) {
	if len(links) == 0 {
		return
	}
	c.live.Over()
	notef(c.p.Err, "left out %s, which %s: %s", count(len(links), "link"), lang.Text(map[bool]string{true: "is not copied", false: "are not copied"}[len(links) == 1]), oneLine(strings.Join(links[:min(len(links), 5)], ", ")))
}

// progress shows how much has been copied.
type progress struct {
	live  *terminal.Live
	text  string
	bytes int64
}

func (w *progress) Write(b []byte) (int, error) {
	w.bytes += int64(len(b))
	w.live.Progress(w.text + "  " + humanSize(w.bytes))
	return len(b), nil
}
