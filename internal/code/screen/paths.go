package screen

import (
	"regexp"
	"strings"
	"sync"
)

// joined returns the path that the tokens between two places put together of strings, with "~" for the user's home folder. whole says that there is nothing else in it, such as a variable.
func (l *look) joined(i, stop int) (path string, whole bool) {
	var parts []string
	whole = true
	for ; i < stop; i++ {
		switch t := l.at(i); t.kind {
		case text:
			if t.text == "HOME" || t.text == "USERPROFILE" {
				parts = append(parts, "~")
			} else {
				parts = append(parts, strings.TrimRight(t.text, "/")) // "" for the root
			}
		case name:
			switch full, next := l.dotted(i); full {
			case "pathlib.Path.home", "Path.home":
				parts, i = append(parts, "~"), next-1
			case "os.path.join", "os.path.expanduser", "os.path.abspath", "os.fspath", "os.environ", "os.environ.get", "os.getenv", "pathlib.Path", "Path", "str":
				i = next - 1
			default:
				if !l.is(i-1, sign, ".") || full != "joinpath" && full != "expanduser" && full != "resolve" && full != "as_posix" && full != "get" {
					whole = false
				}
			}
		case sign:
			if t.text == "," && l.at(i+1).kind == name && l.is(i+2, sign, "=") {
				return strings.Join(parts, "/"), whole // what follows are options
			}
		}
	}
	return strings.Join(parts, "/"), whole
}

// paths looks at a path that is put together by a call whose bracket opens at a token, or by the operator / from a token on.
func (l *look) paths(i, stop, line int) {
	if path, _ := l.joined(i, stop); strings.Contains(path, "/") {
		l.string(token{text, path, line})
	}
}

// joins says whether a function puts paths together.
func joins(full string) bool {
	switch full {
	case "os.path.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "joinpath":
		return true
	}
	return false
}

// divided returns where an expression ends that joins paths by the operator /, where a string is its first or second part; or i.
func (l *look) divided(i int) int {
	stop := i
	for l.is(stop+1, sign, "/") && l.at(stop+2).kind == text {
		stop += 2
	}
	return stop
}

// shown marks the strings that a call only shows, logs or raises: naming a file is no use of it.
func (l *look) shown(full string, at, stop int) {
	root, method, _ := strings.Cut(full, ".")
	switch {
	case full == "print", full == "warnings.warn", strings.HasSuffix(full, "Error"), strings.HasSuffix(full, "Exception"), root == "logging", root == "logger", root == "log", root == "argparse", method == "add_argument":
	default:
		return
	}
	depth := 0
	for i := at; i < stop; i++ {
		t := l.at(i)
		if t.kind == sign {
			depth += strings.Count("([{", t.text) - strings.Count(")]}", t.text)
		}
		if t.kind == text && depth == 1 {
			l.quiet[i] = true
		}
	}
}

// onlyNamed says whether a string is a statement of its own, as the text that documents a function is, or the key of a dictionary.
func (l *look) onlyNamed(i int) bool {
	before, after := l.at(i-1), l.at(i+1)
	alone := (i == 0 || before.kind == end || before.kind == sign && before.text == ":") && after.kind == end
	key := before.kind == sign && (before.text == "{" || before.text == ",") && after.kind == sign && after.text == ":"
	return alone || key || l.quiet[i]
}

// startup says whether a path is of a file that a shell or Python runs when it begins.
func startup(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	switch base {
	case ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", "sitecustomize.py", "usercustomize.py":
		return true
	}
	return false
}

// opens looks at the path and the mode of a file that is opened.
func (l *look) opens(at, stop, line int) {
	first := at + 1
	comma := first
	for depth := 0; comma < stop; comma++ {
		t := l.at(comma)
		if t.kind == sign {
			depth += strings.Count("([{", t.text) - strings.Count(")]}", t.text)
			if t.text == "," && depth == 0 {
				break
			}
		}
	}
	path, _ := l.joined(first, comma)
	if !startup(path) {
		return
	}
	for i := comma; i < stop; i++ {
		if t := l.at(i); t.kind == text && strings.ContainsAny(t.text, "wa+x") {
			l.find(Persists, line, path)
			return
		}
	}
}

var (
	// saves is a download that goes into a file; the file, or else the address whose last part is its name.
	saves = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:curl|wget)\b[^\n;&|]*?(?:\s-[a-z]*o\s*|\s--output(?:-document)?[ =]|>\s*)["']?([^\s"';&|]+)|\bwget\s(?:-[^\s]+\s+)*["']?[a-z]+://[^\s"';&|]*/([^\s"'/;&|?]+)`)
	})
	// runs is a program that is run: by an interpreter, or by its path.
	runs = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[;&|(]\s*|\b(?:sudo|nohup|exec|then|do)\s+)(?:(?:(?:[a-z]*/)*(?:ba|z|da|k)?sh|python[0-9.]*|perl|ruby|node|source|\.)\s+(?:-[a-z]+\s+)*["']?([^\s"';&|]+)|["']?(\.?/[^\s"';&|]+))`)
	})
	writesStartup = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:>\s*|\btee\s+(?:-a\s+)?)["']?\S*\.(?:bashrc|bash_profile|profile|zshrc|zprofile)\b`)
	})
)

// keepsAndRuns notes the files into which a line for a shell downloads, and finds those that it runs.
func (l *look) keepsAndRuns(low string, t token) {
	for _, m := range saves().FindAllStringSubmatch(low, 20) {
		for _, file := range m[1:] {
			if file != "" && file != "-" {
				l.from[strings.TrimPrefix(file, "./")] = RunsDownload
			}
		}
	}
	for _, m := range runs().FindAllStringSubmatch(low, 50) {
		for _, file := range m[1:] {
			if file != "" && l.from[strings.TrimPrefix(file, "./")] == RunsDownload {
				l.find(RunsDownload, t.line, t.text)
			}
		}
	}
	if writesStartup().MatchString(low) {
		l.find(Persists, t.line, t.text)
	}
}
