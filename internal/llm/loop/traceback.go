package loop

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// How much of a traceback is kept.
const (
	ownFramesHead    = 3    // the outermost frames of the model's own code
	ownFramesTail    = 5    // the innermost ones
	exceptionLimit   = 2000 // bytes of one exception's message
	tracebackLimit   = 8000 // bytes of everything
	tracebackOpening = "Traceback (most recent call last):"
)

var (
	frameLine   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*File "([^"]*)", line \d+`) })
	libraryPath = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|/)(?:site-packages|dist-packages|lib/python\d[^/]*|lib64/python\d[^/]*)(?:/|$)|\.(?:pyx|pxi|pxd|so)$`)
	})
)

// frame is one call in a traceback with its source lines.
type frame struct {
	lines   []string
	library bool
}

// section is one exception of a chain.
type section struct {
	link      string // how it follows from the one before, e.g. "During handling of ..."
	opened    bool   // it has a "Traceback" line
	frames    []frame
	exception []string
}

// ReduceTraceback keeps what helps a repair: the frames of the model's own code, the innermost library frame, the
// exceptions. Frames that are left out are counted.
func ReduceTraceback(lines []string) string {
	sections := splitTraceback(lines)
	if len(sections) == 0 {
		return cutMiddle(strings.Join(lines, "\n"), tracebackLimit)
	}
	last := sections[len(sections)-1]
	var out []string
	for n, s := range sections {
		cause := n < len(sections)-1
		if cause && !s.hasOwn() && strings.Join(s.exception, "\n") == strings.Join(last.exception, "\n") {
			continue
		}
		if len(out) > 0 && s.link != "" {
			out = append(out, "", s.link, "")
		}
		out = append(out, s.reduced(cause && !s.hasOwn())...)
	}
	return cutMiddle(strings.Join(out, "\n"), tracebackLimit)
}

// splitTraceback reads the lines that Python prints. It returns nothing when they are of another shape, as for
// exception groups.
func splitTraceback(lines []string) []section {
	var sections []section
	var s section
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "+ Exception Group Traceback"), strings.HasPrefix(trimmed, "| "):
			return nil
		case line == tracebackOpening && len(s.exception) == 0:
			s.opened = true
		case isLink(line):
			for len(s.exception) > 0 && s.exception[len(s.exception)-1] == "" {
				s.exception = s.exception[:len(s.exception)-1]
			}
			sections = append(sections, s)
			s = section{link: line}
		case len(s.exception) == 0 && frameLine().MatchString(line):
			path := frameLine().FindStringSubmatch(line)[1]
			library := isLibrary(path)
			if library {
				line = strings.Replace(line, path, importPath(path), 1)
			}
			s.frames = append(s.frames, frame{[]string{line}, library})
		case len(s.exception) == 0 && strings.HasPrefix(line, " ") && len(s.frames) > 0:
			f := &s.frames[len(s.frames)-1]
			f.lines = append(f.lines, line)
		case len(s.exception) == 0 && trimmed == "":
		default:
			s.exception = append(s.exception, line)
		}
	}
	if len(s.exception) == 0 && len(s.frames) == 0 {
		return sections
	}
	return append(sections, s)
}

func isLink(line string) bool {
	return strings.HasPrefix(line, "During handling of the above exception") ||
		strings.HasPrefix(line, "The above exception was the direct cause")
}

// isLibrary says whether a file is not the model's own: installed, of the standard library, or frozen. Cells
// ("<cell 3>") and workspace files are its own.
func isLibrary(path string) bool {
	if strings.HasPrefix(path, "<") {
		return strings.HasPrefix(path, "<frozen") || strings.HasSuffix(path, "internals>")
	}
	return libraryPath().MatchString(path)
}

// importPath returns a library file's path relative to the folder that Python imports it from; the folder means nothing to a model.
func importPath(path string) string {
	if at := libraryPath().FindStringIndex(path); at != nil && at[1] < len(path) {
		path = path[at[1]:]
		for _, folder := range []string{"site-packages/", "dist-packages/"} {
			if n := strings.LastIndex(path, folder); n >= 0 {
				path = path[n+len(folder):]
			}
		}
	}
	return path
}

func (s section) hasOwn() bool {
	for _, f := range s.frames {
		if !f.library {
			return true
		}
	}
	return false
}

// reduced returns the section's lines; brief leaves its frames out.
func (s section) reduced(brief bool) []string {
	var out []string
	if !brief {
		if s.opened {
			out = append(out, tracebackOpening)
		}
		out = append(out, s.keptFrames()...)
	}
	exception := cutMiddle(strings.Join(s.exception, "\n"), exceptionLimit)
	return append(out, strings.Split(exception, "\n")...)
}

func (s section) keptFrames() []string {
	own := 0
	for _, f := range s.frames {
		if !f.library {
			own++
		}
	}
	var out []string
	left, nth := 0, 0
	for n, f := range s.frames {
		keep := n == len(s.frames)-1
		if !f.library {
			keep = keep || nth < ownFramesHead || nth >= own-ownFramesTail
			nth++
		}
		if !keep {
			left++
			continue
		}
		if left > 0 {
			out = append(out, leftOut(left))
			left = 0
		}
		out = append(out, f.lines...)
	}
	return out
}

func leftOut(n int) string {
	if n == 1 {
		return "  [... 1 frame left out ...]"
	}
	return fmt.Sprintf("  [... %d frames left out ...]", n)
}
