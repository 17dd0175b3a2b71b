package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"cove/internal/config"
	"cove/internal/problem"
)

// input is one file of the user's that goes into the workspace.
type input struct {
	host string // where it is read
	name string // where it goes, relative to the workspace, slash-separated
	info fs.FileInfo
}

// collect finds the files that -f names, before anything is started: folders with what is in them, under their own
// name. A link is followed when it is named itself; links inside a folder are left out and reported in skipped.
func collect(paths []string, limit int64) (inputs []input, skipped []string, err error) {
	taken := map[string]string{}
	var total int64
	for _, given := range paths {
		found, links, err := collectOne(given)
		if err != nil {
			return nil, nil, err
		}
		base, err := baseName(given)
		if err != nil {
			return nil, nil, err
		}
		if other, twice := taken[base]; twice {
			return nil, nil, problem.New(problem.InputDuplicate,
				fmt.Sprintf("%s and %s would both get the name %s in the workspace", other, given, base)).
				WithHint("rename one of them, or put them in folders of different names and give those")
		}
		taken[base] = given
		for _, in := range found {
			total += in.info.Size()
		}
		inputs, skipped = append(inputs, found...), append(skipped, links...)
	}
	if total > limit {
		return nil, nil, problem.New(problem.InputsTooBig,
			fmt.Sprintf("the files are %s together; the workspace holds %s", config.Size(total), config.Size(limit)))
	}
	return inputs, skipped, nil
}

func baseName(given string) (string, error) {
	abs, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", given, err)
	}
	base := filepath.Base(abs)
	if base == "/" {
		return "", problem.New(problem.InputRefused, "the root folder cannot be put into the workspace")
	}
	return base, nil
}

func collectOne(given string) (found []input, links []string, err error) {
	info, err := os.Stat(given)
	if err != nil {
		return nil, nil, unreadable(given, err)
	}
	base, err := baseName(given)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		in := input{host: given, name: base, info: info}
		return []input{in}, nil, in.check()
	}
	top, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, nil, unreadable(given, err)
	}
	err = filepath.WalkDir(top, func(host string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(host, err)
		}
		if entry.IsDir() {
			return nil
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			links = append(links, host)
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return unreadable(host, err)
		}
		rel, err := filepath.Rel(top, host)
		if err != nil {
			return unreadable(host, err)
		}
		in := input{host: host, name: path.Join(base, filepath.ToSlash(rel)), info: info}
		found = append(found, in)
		return in.check()
	})
	return found, links, err
}

// check refuses what is not a readable ordinary file. Opening without blocking keeps a FIFO from hanging cove.
func (in input) check() error {
	if !in.info.Mode().IsRegular() {
		return problem.New(problem.InputRefused, oneLine(in.host)+" is not an ordinary file or folder").
			WithHint("cove takes files and folders; save the output of a pipe or a device to a file first")
	}
	if !utf8.ValidString(in.name) {
		return problem.New(problem.InputRefused, fmt.Sprintf("the name %q is not valid UTF-8", in.name)).WithHint("rename the file")
	}
	f, err := os.OpenFile(in.host, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unreadable(in.host, err)
	}
	return f.Close()
}

func unreadable(name string, err error) error {
	what := "cannot be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "does not exist"
	case errors.Is(err, fs.ErrPermission):
		what = "may not be read by you"
	}
	p := problem.New(problem.InputUnreadable, oneLine(name)+" "+what)
	if what == "cannot be read" {
		p = p.WithCause(err)
	}
	return p
}

// putter is the part of a session that takes files.
type putter interface {
	PutFile(ctx context.Context, path, host string) error
}

// put streams the files into the workspace.
func put(ctx context.Context, to putter, inputs []input) error {
	for _, in := range inputs {
		host, err := filepath.Abs(in.host)
		if err != nil {
			return unreadable(in.host, err)
		}
		if err := to.PutFile(ctx, in.name, host); err != nil {
			return fmt.Errorf("put %s into the workspace: %w", in.host, err)
		}
	}
	return nil
}
