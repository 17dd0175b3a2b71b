package workspace

import (
	"slices"
	"strings"
)

// Incidental says of a path in a workspace, which is the home folder of the code there, whether it is what libraries keep for themselves: files in hidden folders, such as
// .keras and .cache, and compiled modules. It is a file like others, but no result of the code.
func Incidental(path string) bool {
	top, _, below := strings.Cut(path, "/")
	if !below {
		return false
	}
	if strings.HasPrefix(top, ".") && !slices.Contains(authored, top) {
		return true
	}
	folders := strings.Split(path, "/")
	return slices.Contains(folders[:len(folders)-1], "__pycache__") || slices.Contains(folders[:len(folders)-1], ".ipynb_checkpoints")
}

// authored are hidden folders whose files people write.
var authored = []string{".circleci", ".devcontainer", ".github", ".gitlab", ".husky", ".streamlit", ".vscode", ".well-known"}
