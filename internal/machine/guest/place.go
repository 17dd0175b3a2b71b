package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cove/internal/machine/wire"
)

// A place is where an operation on the file system is to happen. Everything there is done with the rights of sandboxed code; see asUser.
type place struct {
	asked string // as the host said it
	full  string // absolute
}

// base is the last name of a place.
func (p place) base() string { return path.Base(p.full) }

// folder is the folder that a place is in.
func (p place) folder() string { return path.Dir(p.full) }

// find returns the place of a path. With link the last name is not followed where it is a symlink's. The caller is the sandboxed user.
//
// A relative path stays in the workspace, whatever symlinks code has made there; a program that changes one in the moment after this look gains nothing by it, because
// everything is done with its own rights. Where the guest itself has no other rights, on a machine that is not the sandbox's own, that holds for absolute paths too.
func (g *guest) find(asked string, link bool) (place, error) {
	p := place{asked: asked, full: path.Clean(asked)}
	bad := fault{wire.FaultPath, fmt.Sprintf("%.300q is no path", asked)}
	if len(asked) > longestPath || strings.ContainsRune(asked, 0) {
		return p, bad
	}
	confined := g.user == 0
	if !path.IsAbs(asked) {
		if p.full = path.Join(g.workspace, asked); !filepath.IsLocal(path.Join(".", asked)) {
			return p, fault{wire.FaultPath, fmt.Sprintf("%.300q is not a path inside the workspace", asked)}
		}
		confined = true
	}
	if strings.Count(p.full, "/") > deepestPath || slices.ContainsFunc(strings.Split(p.full, "/"), func(name string) bool { return len(name) > longestName }) {
		return p, bad
	}
	if confined {
		return p, g.confine(&p, link)
	}
	return p, nil
}

// confine replaces a place's path by the one without symlinks, which has to be in the workspace.
func (g *guest) confine(p *place, link bool) error {
	top, err := filepath.EvalSymlinks(g.workspace)
	if err != nil {
		return err
	}
	full, rest := p.full, ""
	if full == g.workspace || full == top {
		p.full = top
		return nil
	}
	if link {
		full, rest = path.Dir(full), path.Base(full)
	}
	for {
		there, err := filepath.EvalSymlinks(full)
		if err == nil {
			if p.full = path.Join(there, rest); p.full != top && !strings.HasPrefix(p.full, top+"/") {
				return fault{wire.FaultDenied, fmt.Sprintf("%.300q leads out of the workspace", p.asked)}
			}
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) || full == "/" {
			return err
		}
		if fi, err := os.Lstat(full); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return fault{wire.FaultDenied, fmt.Sprintf("%.300q is a symlink that leads to nothing", full)}
		}
		full, rest = path.Dir(full), path.Join(path.Base(full), rest)
	}
}

// asAsked has an error name a path of the workspace as the host names it.
func (g *guest) asAsked(err error) {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		p.Path = spell(strings.TrimPrefix(p.Path, g.workspace+"/"))
	}
}

// through is where writing to a place writes: where it leads, if it is a symlink's.
func (p place) through() (place, error) {
	fi, err := os.Lstat(p.full)
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return p, nil
	}
	if p.full, err = filepath.EvalSymlinks(p.full); errors.Is(err, fs.ErrNotExist) {
		err = fault{wire.FaultPath, fmt.Sprintf("%.300q is a symlink that leads to nothing", p.asked)}
	}
	return p, err
}

// makeWay makes the folders that lead to a place.
func (p place) makeWay() error {
	err := os.MkdirAll(p.folder(), 0o755)
	if errors.Is(err, syscall.ENOTDIR) {
		return fault{wire.FaultPath, fmt.Sprintf("there is a file on the way to %.300q", p.asked)}
	}
	return err
}

// rename gives what is at from the name to. Without replace it never replaces anything.
func rename(from, to string, replace bool) error {
	if replace {
		return os.Rename(from, to)
	}
	err := renameat2(atWorkingFolder, from, atWorkingFolder, to, renameNoReplace)
	if errors.Is(err, syscall.EEXIST) {
		return fault{wire.FaultExists, fmt.Sprintf("there is something at %.300q already", to)}
	}
	return err
}
