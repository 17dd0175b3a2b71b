package guest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// In the file system of an image, the host's Python finds neither its libraries nor the loader that it names: there are other ones, or none. So a copy of this program stands for it. That starts the
// host's loader, which is shown somewhere else, with the interpreter and with where the host's libraries are. Nothing of this is in the environment, so programs of the image that Python starts do not
// come upon it.
const pythonName = "python"

// pythonFile is beside the folder of the program, with a line each: the loader, the folders of libraries with colons between them, and the interpreter.
const pythonFile = "loader"

// python becomes the interpreter, and returns why it cannot.
func python(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(self)), pythonFile))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 3 {
		return errors.New("not three lines say which it is")
	}
	loader, libraries, interpreter := lines[0], lines[1], lines[2]
	return syscall.Exec(loader, append([]string{loader, "--library-path", libraries, "--argv0", self, interpreter}, args...), os.Environ())
}
