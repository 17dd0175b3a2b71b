package scan

import "strings"

// longestPlain is the size of the longest code, in bytes, that Plain reads.
const longestPlain = 64 << 10

// Plain reads code whose imports are all statements of their own at its left margin, which is how most code has them, and returns what a Scan would. It returns
// false where the code may have more to it. Plain takes code for Python that is in order: the caller has to make sure of that. provided is Suspect's.
func Plain(code string, provided func(root string) bool) (Report, bool) {
	if len(code) > longestPlain || statesNeeds(code) || !words(code, func(word string, _, _ int) bool {
		return !dynamic[word] && (ascii(word) || !hidden(word)) && allProvided(triggers[word], provided)
	}) {
		return Report{}, false
	}
	lines, ok := logicalLines(code)
	if !ok {
		return Report{}, false
	}
	var r Report
	for _, line := range lines {
		found, ok := line.imports()
		if !ok || len(r.Imports)+len(found) > mostImports {
			return Report{}, false
		}
		for _, i := range found {
			r.add(i)
		}
	}
	return r, true
}

// add adds an import, together with that of the same module if there is one.
func (r *Report) add(i Import) {
	for at := range r.Imports {
		if known := &r.Imports[at]; known.Module == i.Module {
			known.Names = only(append(known.Names, i.Names...), isIdentifier)
			return
		}
	}
	r.Imports = append(r.Imports, i)
}

func allProvided(modules []string, provided func(root string) bool) bool {
	for _, m := range modules {
		if !provided(rootOf(m)) {
			return false
		}
	}
	return true
}

// line is a logical line of Python: its words and its other characters, one by one, without comments. A string is `"`, and spaces before the line's begin are one " ".
type line []string

// logicalLines reads Python as far as strings, brackets, comments and continued lines go. It returns false where it may have misread something.
func logicalLines(code string) (lines []line, ok bool) {
	var now line
	depth := 0
	for i := 0; i < len(code); {
		switch c := code[i]; {
		case c == '\n':
			if depth == 0 {
				lines, now = append(lines, now), nil
			}
			i++
		case c == ' ' || c == '\t':
			if now == nil {
				now = append(now, " ")
			}
			i++
		case c == '#':
			for i < len(code) && code[i] != '\n' {
				i++
			}
		case c == '\\':
			if now == nil || !strings.HasPrefix(code[i:], "\\\n") {
				return nil, false
			}
			i += 2
		case c == '"' || c == '\'':
			end := stringEnd(code, i)
			if end < 0 || end < len(code) && isWord(code[end]) { // a word right after it: an f-string with a string inside
				return nil, false
			}
			now, i = append(now, `"`), end
		case isWord(c):
			word := leadingWord(code[i:])
			now, i = append(now, word), i+len(word)
		case c < ' ':
			return nil, false
		case now == nil && strings.IndexByte("%!?", c) >= 0: // a magic
			return nil, false
		default:
			depth += strings.Count("([{", string(c)) - strings.Count(")]}", string(c))
			if depth < 0 {
				return nil, false
			}
			now, i = append(now, string(c)), i+1
		}
	}
	return append(lines, now), depth == 0
}

// stringEnd returns where the string ends that begins at code[start], or -1 where it does not.
func stringEnd(code string, start int) int {
	quote := code[start : start+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(code[start:], triple) {
		quote = triple
	}
	for i := start + len(quote); i < len(code); i++ {
		switch {
		case code[i] == '\\':
			i++
		case strings.HasPrefix(code[i:], quote):
			return i + len(quote)
		case code[i] == '\n' && len(quote) == 1:
			return -1
		}
	}
	return -1
}

// imports returns what an import statement imports. It returns false where an import is something else than a statement alone in its line, at the left margin.
func (l line) imports() (found []Import, ok bool) {
	begins := len(l) > 0 && (l[0] == "import" || l[0] == "from")
	for _, token := range l[min(1, len(l)):] {
		if token == "import" && (!begins || l[0] != "from") || token == ";" && begins {
			return nil, false
		}
	}
	switch {
	case !begins:
		return nil, true
	case l[0] == "from":
		return l[1:].from()
	}
	for rest := l[1:]; ; rest = rest[1:] {
		var module string
		module, rest = rest.dotted()
		rest = rest.withoutAs()
		if !isDotted(module) || !ascii(module) || len(rest) > 0 && rest[0] != "," {
			return nil, false
		}
		found = append(found, Import{Module: module})
		if len(rest) == 0 {
			return found, true
		}
	}
}

// from reads what follows the word from.
func (l line) from() (found []Import, ok bool) {
	relative := len(l) > 0 && l[0] == "."
	for len(l) > 0 && l[0] == "." {
		l = l[1:]
	}
	module, rest := l.dotted()
	if len(rest) < 2 || rest[0] != "import" || !relative && !isDotted(module) || !ascii(module) {
		return nil, false
	}
	if relative {
		return nil, true
	}
	one := Import{Module: module}
	if rest = rest[1:]; rest[0] == "(" && rest[len(rest)-1] == ")" {
		rest = rest[1 : len(rest)-1]
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:].withoutAs()
		if name != "*" && (!isIdentifier(name) || !ascii(name)) || len(rest) > 0 && rest[0] != "," {
			return nil, false
		}
		if name != "*" {
			one.Names = append(one.Names, name)
		}
		rest = rest[min(1, len(rest)):]
	}
	one.Names = only(one.Names, isIdentifier)
	return []Import{one}, true
}

// dotted reads a dotted name from the line's begin.
func (l line) dotted() (name string, rest line) {
	at := 0
	for at < len(l) && l[at] != "import" && l[at] != "as" && (isWord(l[at][0]) || l[at] == ".") {
		at++
	}
	return strings.Join(l[:at], ""), l[at:]
}

// withoutAs drops "as name" from the line's begin.
func (l line) withoutAs() line {
	if len(l) > 1 && l[0] == "as" {
		return l[2:]
	}
	return l
}
