package loop

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

var missingModule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`No module named ['"]([A-Za-z0-9_.]+)['"]`) })

// networkMarks are words in the messages of exceptions that the missing network causes.
var networkMarks = []string{
	"Temporary failure in name resolution", "Name or service not known", "Network is unreachable",
	"nodename nor servname", "Failed to resolve", "Max retries exceeded", "Connection refused", "ENETUNREACH",
}

// networkNames are exceptions that the missing network causes, whatever their message.
var networkNames = map[string]bool{
	"gaierror": true, "URLError": true, "ConnectionError": true, "ConnectTimeout": true, "ConnectionRefusedError": true,
	"NewConnectionError": true, "MaxRetryError": true, "ProxyError": true, "NameResolutionError": true, "ConnectError": true,
}

// hint returns a line that helps to repair the exception of an execution, or "" when the exception's own message is enough.
func (t *turn) hint(ctx context.Context, r *record) string {
	name, value := r.failure.Name, r.failure.Value
	short := name[strings.LastIndexByte(name, '.')+1:]
	reach, _ := t.session.May()
	switch {
	case short == "ModuleNotFoundError" || (short == "ImportError" && missingModule().MatchString(value)):
		module := ""
		if m := missingModule().FindStringSubmatch(value); m != nil {
			module = m[1]
		}
		return t.moduleHint(module, r)
	case r.failure.Hint != "":
		return "Hint: " + r.failure.Hint
	case short == "FileNotFoundError":
		names := t.fileNames(ctx)
		if len(names) == 0 {
			return "Hint: the working directory holds no files."
		}
		return "Hint: the files in the working directory are: " + strings.Join(names, ", ") + "."
	case short == "UnicodeDecodeError":
		return t.encodingHint(ctx, r)
	case short == "EOFError" && strings.Contains(value, "reading a line"), short == "StdinNotImplementedError":
		return "Hint: nobody answers input() here; put the values into the code."
	case (networkNames[short] || mentionsNetwork(value)) && len(reach) > 0:
		return "Hint: code can connect to " + strings.Join(reach, ", ") + " and to nothing else."
	case networkNames[short] || mentionsNetwork(value):
		return "Hint: the sandbox has no network. Work with the files at hand, or say what is missing."
	}
	return ""
}

// looksForEncoding is how many files are looked at for a hint.
const looksForEncoding = 5

// encodingHint is EncodingHint for the model.
func (t *turn) encodingHint(ctx context.Context, r *record) string {
	if hint := EncodingHint(ctx, t.session, *r.failure); hint != "" {
		return "Hint: " + hint
	}
	return "Hint: the file is not UTF-8, or it is no text."
}

// Describer is a session that lists its files and describes them.
type Describer interface {
	Files(ctx context.Context) ([]kernel.File, error)
	Tell(ctx context.Context, paths []string) ([]workspace.Told, error)
}

// EncodingHint says how the files are encoded that a UnicodeDecodeError may be about: those that its traceback names, or else all. It says what the first look says; "" when none of them has another encoding.
func EncodingHint(ctx context.Context, s Describer, e kernel.Error) string {
	files, err := s.Files(ctx)
	if err != nil {
		return ""
	}
	files = visible(files)
	trace := strings.Join(e.Traceback, "\n")
	if named := slices.DeleteFunc(slices.Clone(files), func(f kernel.File) bool { return !strings.Contains(trace, path.Base(f.Path)) }); len(named) > 0 {
		files = named
	}
	var paths []string
	for _, f := range files[:min(len(files), looksForEncoding)] {
		paths = append(paths, f.Path)
	}
	told, err := s.Tell(ctx, paths)
	if err != nil {
		return ""
	}
	var said []string
	for n, one := range told {
		if _, how, other := strings.Cut(one.What, "not UTF-8: "); other {
			said = append(said, fileName(paths[n])+" is not UTF-8: "+how)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return strings.Join(said, "; ") + "."
}

// moduleHint is about a module that is not there; "" when its name is not known.
func (t *turn) moduleHint(module string, r *record) string {
	root, _, deep := strings.Cut(module, ".")
	switch {
	case refused(r.installs, module):
		return "" // a line at the top says why
	case module == "":
		return "Hint: that package is not installed. Use an installed alternative."
	case t.limits.NoInstall:
		return "Hint: " + module + " is not installed and cannot be installed here. Use an installed alternative."
	case deep:
		return "Hint: the version of " + root + " that is installed has no module " + module + "."
	}
	return "Hint: no package that provides " + module + " could be found. Use another one."
}

func mentionsNetwork(value string) bool {
	for _, mark := range networkMarks {
		if strings.Contains(value, mark) {
			return true
		}
	}
	return false
}
