// Package terminal is what the program knows of the terminal that a person looks at: how wide characters are, a line that says what is awaited, Markdown
// as rows, pictures. What is written between belongs to others; nothing here leaves anything behind on the screen.
package terminal

import (
	"os"

	"golang.org/x/term"
)

// withFile is what has an open file behind it: an *os.File, and a File of this package.
type withFile interface{ Fd() uintptr }

var _ withFile = (*os.File)(nil)

// Descriptor returns the file descriptor of the terminal that rw is, if it is one.
func Descriptor(rw any) (fd int, ok bool) {
	if f, plain := rw.(*os.File); plain && f == nil {
		return 0, false
	}
	f, ok := rw.(withFile)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// OpenFile returns the file that rw is or writes to, or nil.
func OpenFile(rw any) *os.File {
	switch f := rw.(type) {
	case *os.File:
		return f
	case *File:
		return f.file
	case interface{ Underlying() *os.File }:
		return f.Underlying()
	}
	return nil
}

// Size returns the columns and rows of the terminal that w is; 0 where it is none, or does not say.
func Size(w any) (columns, rows int) {
	fd, ok := Descriptor(w)
	if !ok {
		return 0, 0
	}
	columns, rows, err := term.GetSize(fd)
	if err != nil {
		return 0, 0
	}
	return columns, rows
}
