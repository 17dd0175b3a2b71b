package cli

import (
	"io"
	"os"
)

// Pastes is a terminal's input with these parts, each of which comes at once, as it is edited.
func Pastes(parts io.ReadCloser) io.Reader { return &pastes{ReadCloser: parts} }

// Plainly is a line that may have been pasted as it was meant.
func Plainly(line string) string { return plainly(line) }

// WriteWhole puts a file in place.
func WriteWhole(name string, mode os.FileMode, fill func(io.Writer) error) (int64, error) {
	return writeWhole(name, mode, fill)
}
