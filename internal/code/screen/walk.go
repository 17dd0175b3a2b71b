package screen

import (
	"strings"
)

// look is what is known of a program on the way through it.
type look struct {
	tokens []token
	names  map[string]string // what a name stands for: sp is subprocess, run is subprocess.run
	from   map[string]string // where the value of a variable comes from: RunsDownload, RunsHidden
	found  []Finding
	spans  int          // that were looked at
	quiet  map[int]bool // strings that are only shown, by their place
	// downloaded says that something was got from another computer before.
	downloaded bool
}

func (l *look) at(i int) token {
	if i >= 0 && i < len(l.tokens) {
		return l.tokens[i]
	}
	return token{kind: end}
}

func (l *look) is(i int, k kind, s string) bool { t := l.at(i); return t.kind == k && t.text == s }

func (l *look) walk() {
	for i := 0; i < len(l.tokens); {
		switch t := l.tokens[i]; t.kind {
		case text:
			if l.onlyNamed(i) {
				break
			}
			l.string(t)
			if stop := l.divided(i); stop > i {
				l.paths(i, stop+1, t.line)
			}
		case shell:
			l.find(StartsPrograms, t.line, t.text)
			l.command(t)
		case name:
			i = l.word(i)
			continue
		}
		i++
	}
}

// word looks at what begins with a name, and returns where to go on.
func (l *look) word(i int) int {
	begins := i == 0 || l.at(i-1).kind == end || l.is(i-1, sign, ";") || l.is(i-1, sign, ":")
	switch {
	case begins && l.is(i, name, "import"):
		return l.imports(i + 1)
	case begins && l.is(i, name, "from"):
		return l.importsFrom(i + 1)
	case l.is(i-1, sign, "."):
		if l.is(i, name, "joinpath") && l.is(i+1, sign, "(") {
			l.paths(i+2, l.closing(i+1), l.at(i).line)
		}
		return i + 1 // an attribute of something that has no name
	}
	full, next := l.dotted(i)
	if l.is(next, sign, "(") {
		l.call(full, l.at(i).line, next)
		return next // what stands in the brackets is looked at as well
	}
	if l.is(next, sign, "=") && !l.is(next+1, sign, "=") && next == i+1 && begins {
		l.assign(l.at(i).text, next+1)
	}
	return next
}

// imports reads what follows the word import.
func (l *look) imports(i int) int {
	for {
		module, next := l.plain(i)
		if module == "" {
			return max(next, i)
		}
		root, _, _ := strings.Cut(module, ".")
		l.names[root] = root
		if l.is(next, name, "as") {
			l.names[l.at(next+1).text] = module
			next += 2
		}
		if !l.is(next, sign, ",") {
			return next
		}
		i = next + 1
	}
}

func (l *look) importsFrom(i int) int {
	module, next := l.plain(i)
	if module == "" || !l.is(next, name, "import") {
		return max(next, i)
	}
	if next++; l.is(next, sign, "(") {
		next++
	}
	for l.at(next).kind == name {
		one := l.at(next).text
		bound := one
		if next++; l.is(next, name, "as") {
			bound = l.at(next + 1).text
			next += 2
		}
		l.names[bound] = module + "." + one
		if !l.is(next, sign, ",") {
			break
		}
		next++
	}
	return next
}

// plain reads a dotted name as it is written.
func (l *look) plain(i int) (string, int) {
	if l.at(i).kind != name {
		return "", i
	}
	all := l.at(i).text
	const longest = 10 // parts
	parts := 1
	for i++; l.is(i, sign, ".") && l.at(i+1).kind == name; i += 2 {
		if parts++; parts <= longest {
			all += "." + l.at(i+1).text
		}
	}
	return all, i
}

// dotted reads a dotted name and what it stands for. Modules that are got by a call count as well: __import__("os").system, importlib.import_module("os").system, getattr(os, "system").
func (l *look) dotted(i int) (full string, next int) { return l.dottedWithin(i, 3) }

// dottedWithin is dotted for getattr in getattr, so many times.
func (l *look) dottedWithin(i, deep int) (full string, next int) {
	all, next := l.plain(i)
	root, rest, more := strings.Cut(all, ".")
	if known, ok := l.names[root]; ok {
		root = known
	}
	if full = root; more {
		full += "." + rest
	}
	full = strings.TrimPrefix(strings.TrimPrefix(full, "builtins."), "__builtins__.")
	const deepest = 4
	for range deepest {
		got := ""
		switch {
		case (full == "__import__" || full == "importlib.import_module" || full == "importlib.__import__") && l.is(next, sign, "(") && l.at(next+1).kind == text && l.is(next+2, sign, ")"):
			got, next = l.at(next+1).text, next+3
		case full == "getattr" && l.is(next, sign, "(") && deep > 0:
			of, after := l.dottedWithin(next+1, deep-1)
			if of == "" || !l.is(after, sign, ",") || l.at(after+1).kind != text || !l.is(after+2, sign, ")") {
				return full, next
			}
			got, next = strings.TrimPrefix(of+"."+l.at(after+1).text, "builtins."), after+3
			got = strings.TrimPrefix(got, "__builtins__.")
		default:
			return full, next
		}
		full = got
		for l.is(next, sign, ".") && l.at(next+1).kind == name {
			full, next = full+"."+l.at(next+1).text, next+2
		}
	}
	return full, next
}

// longestSpan is how many tokens of a call or of a statement are looked at, and mostSpans how often, so that the time does not grow with the square of the program.
const (
	longestSpan = 1000
	mostSpans   = 1000
)

// closing returns where the bracket at i is closed, or where no more is looked at.
func (l *look) closing(i int) int {
	depth := 0
	most := i + longestSpan
	if l.spans++; l.spans > mostSpans {
		most = i + 1
	}
	for ; i < len(l.tokens) && i < most; i++ {
		if l.tokens[i].kind != sign {
			continue
		}
		switch l.tokens[i].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}

// assign notes what a variable is given: another name for a function, or something that comes out of a download or a decoder.
func (l *look) assign(variable string, i int) {
	delete(l.from, variable)
	if full, next := l.dotted(i); full != "" && l.at(next).kind == end {
		if root, _, _ := strings.Cut(full, "."); l.names[root] != "" || notable(full) {
			l.names[variable] = full
		}
		if origin := l.from[l.at(i).text]; origin != "" {
			l.from[variable] = origin
		}
		return
	}
	stop := i
	if l.spans++; l.spans > mostSpans {
		return
	}
	for depth := 0; stop < len(l.tokens) && stop < i+longestSpan; stop++ {
		t := l.tokens[stop]
		if t.kind == end && depth == 0 || t.kind == sign && t.text == ";" {
			break
		}
		if t.kind == sign {
			depth += strings.Count("([{", t.text) - strings.Count(")]}", t.text)
		}
	}
	if origin := l.origin(i, stop); origin != "" {
		l.from[variable] = origin
	}
}

// origin says where what stands between two tokens comes from.
func (l *look) origin(i, stop int) string {
	origin := ""
	for i < stop {
		if l.at(i).kind != name || l.is(i-1, sign, ".") {
			i++
			continue
		}
		full, next := l.dotted(i)
		switch {
		case downloads(full):
			return RunsDownload
		case decodes(full):
			origin = RunsHidden
		case l.from[l.at(i).text] == RunsDownload:
			return RunsDownload
		case l.from[l.at(i).text] != "" && origin == "":
			origin = l.from[l.at(i).text]
		}
		i = max(next, i+1)
	}
	return origin
}
