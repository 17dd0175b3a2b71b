package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pack writes what is at the paths below root into an archive, in the order of their names, with the folders that lead there. What was made just now gets the commit's date.
func (m maker) pack(to, root string, paths []string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := tar.NewWriter(f)
	p := packer{maker: m, w: w, root: root, had: map[uint64]string{}, dirs: map[string]bool{}}
	for _, path := range paths {
		if err := p.parents(path); err != nil {
			return err
		}
		if err := filepath.WalkDir(filepath.Join(root, path), p.add); err != nil {
			return err
		}
	}
	return w.Close()
}

type packer struct {
	maker
	w    *tar.Writer
	root string
	had  map[uint64]string // name of the first of several names that one file has, by inode
	dirs map[string]bool   // folders that are in the archive
}

// parents adds the folders above path.
func (p packer) parents(path string) error {
	var above string
	for _, name := range strings.Split(filepath.Dir(filepath.Clean(path)), "/") {
		if above = filepath.Join(above, name); above == "." || p.dirs[above] {
			continue
		}
		p.dirs[above] = true
		full := filepath.Join(p.root, above)
		info, err := os.Lstat(full)
		if err == nil {
			err = p.add(full, fs.FileInfoToDirEntry(info), nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p packer) add(path string, e fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, err := filepath.Rel(p.root, path)
	if err != nil || name == "." {
		return err
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	var target string
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname = name, "", ""
	if info.IsDir() {
		h.Name += "/"
	}
	if h.ModTime = h.ModTime.Truncate(1e9); h.ModTime.After(p.Date) {
		h.ModTime = p.Date
	}
	h.AccessTime, h.ChangeTime, h.Format = time.Time{}, time.Time{}, tar.FormatPAX
	st, _ := info.Sys().(*syscall.Stat_t)
	if h.Typeflag == tar.TypeReg && st.Nlink > 1 {
		if first, again := p.had[st.Ino]; again {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		}
		p.had[st.Ino] = name
	}
	if err := p.w.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(p.w, f)
	return errors.Join(err, f.Close())
}
