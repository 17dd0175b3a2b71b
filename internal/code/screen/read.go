package screen

import (
	"strconv"
	"strings"
)

// kind is that of a token.
type kind byte

const (
	name  kind = 'n'
	text  kind = 's' // a string, without its quotes and as it is written
	sign  kind = 'o' // one character of an operator or a bracket
	end   kind = 'l' // of a logical line
	shell kind = '!' // a line for a shell
)

type token struct {
	kind kind
	text string
	line int
}

func number(n int) string { return strconv.Itoa(n) }

// read splits Python into tokens, without comments. It never fails: what it cannot make sense of is signs.
func read(code string) []token {
	r := &reader{code: code, line: 1}
	if shellCell(code) {
		for i, one := range strings.Split(code, "\n")[1:] {
			r.tokens = append(r.tokens, token{shell, one, i + 2})
		}
		return r.tokens
	}
	r.run()
	return append(r.tokens, token{end, "", r.line})
}

// shellCell says whether a cell is a script for a shell.
func shellCell(code string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(code, " \n"), "\n")
	for _, magic := range []string{"%%bash", "%%sh", "%%script", "%%!", "%%system", "%%sx"} {
		if strings.HasPrefix(first, magic) {
			return true
		}
	}
	return false
}

type reader struct {
	code   string
	at     int
	line   int
	depth  int
	fresh  bool // only spaces since the line's begin
	tokens []token
}

func (r *reader) add(k kind, s string) { r.tokens = append(r.tokens, token{k, s, r.line}) }

func (r *reader) run() {
	r.fresh = true
	for r.at < len(r.code) {
		c := r.code[r.at]
		switch {
		case c == '\n':
			if r.depth == 0 {
				r.add(end, "")
			}
			r.line, r.fresh = r.line+1, true
			r.at++
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			r.at++
			continue
		case c == '#':
			r.rest()
			continue
		case c == '\\' && strings.HasPrefix(r.code[r.at:], "\\\n"):
			r.line++
			r.at += 2
			continue
		case c == '!' && !strings.HasPrefix(r.code[r.at:], "!=") && (r.fresh || r.afterEquals()):
			line := r.line
			r.tokens = append(r.tokens, token{shell, strings.TrimLeft(r.rest(), "!"), line})
			continue
		case c == '%' && r.fresh:
			r.magic()
			continue
		case isQuote(c):
			r.str("")
		case isLetter(c):
			word := r.word()
			if r.at < len(r.code) && isQuote(r.code[r.at]) && isPrefix(word) {
				r.str(strings.ToLower(word))
			} else {
				r.add(name, word)
			}
		case c >= '0' && c <= '9':
			r.word() // a number: nobody looks at it
			r.add(sign, "0")
		default:
			switch c {
			case '(', '[', '{':
				r.depth++
			case ')', ']', '}':
				r.depth = max(r.depth-1, 0)
			}
			r.add(sign, r.code[r.at:r.at+1])
			r.at++
		}
		r.fresh = false
	}
}

// rest takes the rest of the line.
func (r *reader) rest() string {
	stop := strings.IndexByte(r.code[r.at:], '\n')
	if stop < 0 {
		stop = len(r.code) - r.at
	}
	s := r.code[r.at : r.at+stop]
	r.at += stop
	return s
}

// magic takes a line that begins with a percent sign. What a magic such as %time runs is looked at, what others do is not.
func (r *reader) magic() {
	line := r.rest()
	word, rest, _ := strings.Cut(strings.TrimLeft(line, "%"), " ")
	switch word {
	case "sx", "system", "bash", "sh":
		r.add(shell, rest)
	case "time", "timeit", "capture", "prun", "memit":
		inner := &reader{code: rest, line: r.line}
		inner.run()
		r.tokens = append(r.tokens, inner.tokens...)
	}
}

func (r *reader) afterEquals() bool {
	n := len(r.tokens)
	return n > 0 && r.tokens[n-1].kind == sign && r.tokens[n-1].text == "="
}

func (r *reader) word() string {
	start := r.at
	for r.at < len(r.code) && (isLetter(r.code[r.at]) || r.code[r.at] >= '0' && r.code[r.at] <= '9') {
		r.at++
	}
	return r.code[start:r.at]
}

// str takes a string whose quote is next. Of an f-string, the expressions follow as tokens.
func (r *reader) str(prefix string) {
	quote := r.code[r.at : r.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(r.code[r.at:], triple) {
		quote = triple
	}
	start, line := r.at+len(quote), r.line
	for r.at = start; r.at < len(r.code); r.at++ {
		switch {
		case r.code[r.at] == '\\':
			if r.at++; r.at < len(r.code) && r.code[r.at] == '\n' {
				r.line++
			}
			continue
		case strings.HasPrefix(r.code[r.at:], quote):
		case r.code[r.at] == '\n' && len(quote) == 1: // it does not end
		default:
			if r.code[r.at] == '\n' {
				r.line++
			}
			continue
		}
		break
	}
	inside := r.code[min(start, len(r.code)):min(r.at, len(r.code))]
	r.tokens = append(r.tokens, token{text, inside, line})
	if strings.HasPrefix(r.code[min(r.at, len(r.code)):], quote) {
		r.at += len(quote)
	}
	if strings.ContainsRune(prefix, 'f') || strings.ContainsRune(prefix, 't') {
		r.fields(inside, line)
	}
}

// fields reads the expressions of an f-string.
func (r *reader) fields(inside string, line int) {
	const deepest = 4
	if r.depth > 100+deepest {
		return
	}
	for {
		_, rest, found := strings.Cut(inside, "{")
		if !found {
			return
		}
		if strings.HasPrefix(rest, "{") {
			inside = rest[1:]
			continue
		}
		expression, after, _ := strings.Cut(rest, "}")
		if strings.ContainsRune(expression, '(') {
			inner := &reader{code: strings.ReplaceAll(expression, `\`, ""), line: line, depth: r.depth + 101}
			inner.run()
			r.tokens = append(r.tokens, inner.tokens...)
		}
		inside = after
	}
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isPrefix(word string) bool {
	switch strings.ToLower(word) {
	case "r", "b", "u", "f", "t", "rb", "br", "rf", "fr", "tr", "rt":
		return true
	}
	return false
}
