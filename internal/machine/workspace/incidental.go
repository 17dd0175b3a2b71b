package workspace

import (
	"path"
	"slices"
	"strings"
)

// Incidental says of a path in a workspace, which is the home folder of the code there, whether it is what libraries keep for themselves: files in hidden folders, such as
// .keras and .cache, compiled modules, and logs that they write unasked. It is a file like others, but no result of the code.
func Incidental(path string) bool {
	top, _, below := strings.Cut(path, "/")
	if !below {
		return slices.Contains(unasked, top)
	}
	if strings.HasPrefix(top, ".") && !slices.Contains(authored, top) || top == "catboost_info" {
		return true
	}
	folders := strings.Split(path, "/")
	return slices.Contains(folders[:len(folders)-1], "__pycache__") || slices.Contains(folders[:len(folders)-1], ".ipynb_checkpoints")
}

// Unfinished says whether an empty file is of a kind that is never empty when it is done, as a film or a table is: a program began it, and failed or is still at work.
func Unfinished(name string) bool {
	name = path.Base(name)
	return !strings.HasPrefix(name, ".") && !slices.Contains(emptied, strings.ToLower(path.Ext(name)))
}

// authored are hidden folders whose files people write.
var authored = []string{".circleci", ".devcontainer", ".github", ".gitlab", ".husky", ".streamlit", ".vscode", ".well-known"}

// unasked are files that programs leave in the home folder: PDFBox (by tabula), shells, wget, R.
var unasked = []string{".pdfbox.cache", ".bash_history", ".python_history", ".wget-hsts", ".Rhistory", ".RData"}

// emptied are the extensions of files that are left empty on purpose: modules, marks, notes and logs.
var emptied = []string{"", ".py", ".pyi", ".typed", ".txt", ".md", ".rst", ".log", ".lock", ".cfg", ".ini", ".toml", ".done"}
