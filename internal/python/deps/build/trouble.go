package build

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
)

// How much of a failed build's words is kept.
const (
	longestTail = 16 << 10
	mostLines   = 30
	longestLine = 300
)

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func newTail() *tail { return &tail{} }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if len(t.text) > 2*longestTail {
		t.text = append(t.text[:0], t.text[len(t.text)-longestTail:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.text[max(0, len(t.text)-longestTail):]) }

var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)`)
})

// clean makes hostile text fit to print, and no longer than most bytes.
func clean(text string, most int) string {
	text = escapes().ReplaceAllString(strings.ToValidUTF8(text, ""), "")
	text = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// lines are the last lines of a program's words, without the ornaments that uv puts around them.
func lines(said string) []string {
	var out []string
	for line := range strings.Lines(said) {
		line = strings.TrimRight(clean(line, longestLine), " ")
		line = strings.TrimSpace(strings.TrimLeft(line, " ×├╰─▶│"))
		line = strings.TrimPrefix(line, "cause: ")
		if line != "" && !strings.HasPrefix(line, "hint: ") {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-mostLines):]
}

func plain(said string) string {
	text := strings.Join(lines(said), " ")
	if _, after, found := strings.Cut(text, "No solution found when resolving dependencies"); found {
		text = strings.TrimLeft(after, ": ")
	}
	return clean(text, 1000)
}

// failed is the problem of a build that went wrong, with the end of what it said.
func failed(what, said string) error {
	all := lines(said)
	p := problem.New(problem.BuildFailed, fmt.Sprintf("%s could not be built from source: %s", what, gist(all))).WithHint(hint(said))
	if len(all) > 1 {
		p = p.WithCause(errors.New(strings.Join(all, "\n")))
	}
	return p
}

// gist is the line that says most about a failure: where uv can only say that the build backend failed, the last line of the backend's own.
func gist(all []string) string {
	if len(all) == 0 {
		return "it said nothing"
	}
	last := all[len(all)-1]
	verdict := slices.IndexFunc(all, func(line string) bool { return strings.HasPrefix(line, "error: Failed to build") })
	if strings.HasPrefix(last, "Call to `") && verdict > 0 {
		return all[verdict-1]
	}
	return strings.TrimPrefix(last, "error: ")
}

// lack is a tool or a file that builds commonly miss, by what is said then.
type lack struct {
	said *regexp.Regexp
	hint string
}

var lacks = sync.OnceValue(func() []lack {
	return []lack{
		{regexp.MustCompile(`(?i)Python\.h: No such file`), "it needs Python's headers on this machine: install python3-dev or python3-devel"},
		{regexp.MustCompile(`(?i)fatal error: [\w./+-]+\.h(pp)?: No such file|pkg-config --\w+ .*returned non-zero`), "it needs the development files of a library on this machine; its output says which"},
		{regexp.MustCompile(`(?i)(cargo|rustc|maturin)\b.*(not found|no such file|is not installed)|can't find Rust compiler|Rust toolchain`), "it needs a Rust compiler on this machine, in /usr, where sandboxes see it"},
		{regexp.MustCompile(`(?i)(gfortran|fortran).*(not found|no such file)|no Fortran compiler`), "it needs a Fortran compiler on this machine: install gfortran"},
		{regexp.MustCompile(`(?i)no such file or directory: '([\w-]*cc|[\w-]*g\+\+|clang|c\+\+)'|(\bcc\b|\bgcc\b|g\+\+|clang|c\+\+)['":\]]*.*(not found|no such file)|unknown compiler|unable to execute '[\w-]*g(cc|\+\+)'|command '[^']*g(cc|\+\+)' failed: No such file`),
			"it needs a C compiler on this machine: install gcc (build-essential)"},
		{regexp.MustCompile(`(?i)(cmake|ninja|make|meson|pkg-config|swig)['":]*.*(not found|no such file|must be installed)`), "it needs a tool for building on this machine that is not there"},
		{regexp.MustCompile(`(?i)name resolution|name or service not known|network is unreachable|could not resolve host|connection refused`), "its build tries to download something, but a build can reach the package index only"},
		{regexp.MustCompile(`\(SIGKILL\)|signal: 9`), "it was killed, most likely because it needed more memory than its sandbox has"},
		{regexp.MustCompile(`\(SIGSEGV\)|signal: 11`), "it crashed, possibly because its sandbox ran out of memory"},
		{regexp.MustCompile(`(?i)No space left on device`), "it needs more disk space than its sandbox has"},
	}
})

func hint(said string) string {
	for _, l := range lacks() {
		if l.said.MatchString(said) {
			return l.hint
		}
	}
	return "use a package or version that has wheels; those need no building"
}

// indexFault returns the problem that the index has with a project which a failed program has named, nil when there is none.
func indexFault(g *gateway.Gateway, said string) error {
	failures := g.Failures()
	var found []string
	for name, err := range failures {
		if gateway.IndexFailed(err) && strings.Contains(said, gateway.IndexURL+name+"/") {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return failures[slices.Min(found)]
}
