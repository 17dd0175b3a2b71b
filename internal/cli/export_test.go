package cli

import (
	"io"
	"os"
)

// WriteWhole puts a file in place.
func WriteWhole(name string, mode os.FileMode, fill func(io.Writer) error) (int64, error) {
	return writeWhole(name, mode, fill)
}
