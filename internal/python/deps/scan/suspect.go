package scan

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Suspect tells at once whether code may need something that is not provided: true asks for a Scan. It errs on the side of true. provided says
// whether a root module is part of the standard library or of what is installed.
func Suspect(code string, provided func(root string) bool) bool {
	if statesNeeds(code) {
		return true
	}
	code = strings.TrimLeft(code, byteOrderMark)
	return !words(code, func(word string, start, end int) bool {
		switch {
		case word == "import":
			return modules(code, start, end, func(root string) bool { return root != "" && !namespaces[root] && provided(root) })
		case dynamic[word]:
			return false
		case !ascii(word):
			return !hidden(word)
		}
		return allProvided(triggers[word], provided)
	})
}

// statesNeeds says whether code may state what it needs in other ways than by imports, or has the prompts of an interpreter, after which anything may be.
func statesNeeds(code string) bool {
	return strings.Contains(code, "# ///") || strings.Contains(code, "requirements:") || strings.Contains(code, "%sql") || strings.HasPrefix(strings.TrimSpace(code), ">>>") || installs(code)
}

const byteOrderMark = "\ufeff"

// namespaces are roots that many distributions share, so that one being there says nothing about what else is.
var namespaces = map[string]bool{
	"google": true, "azure": true, "aws": true, "ruamel": true, "zope": true, "jaraco": true, "backports": true, "opentelemetry": true,
	"sphinxcontrib": true, "airflow": true, "databricks": true, "snowflake": true,
}

// Roots returns the root modules that code seems to import, quickly and roughly, for work that can begin before the Scan is done.
func Roots(code string) []string {
	var roots []string
	code = strings.TrimLeft(code, byteOrderMark)
	words(code, func(word string, start, end int) bool {
		return word != "import" || modules(code, start, end, func(root string) bool {
			if root != "" && len(root) <= longestName && !slices.Contains(roots, root) {
				roots = append(roots, root)
			}
			return len(roots) < mostImports
		})
	})
	return roots
}

func rootOf(module string) string {
	root, _, _ := strings.Cut(module, ".")
	return root
}

// installs is what calls.py asks of a code before it looks for commands in it.
func installs(code string) bool {
	return strings.Contains(code, "install") && (strings.Contains(code, "pip") || strings.Contains(code, "conda") || strings.Contains(code, "mamba"))
}

// words calls visit for each run of letters, digits and underscores, until it returns false; so does words then. Every byte of a
// character beyond ASCII counts as a letter.
func words(code string, visit func(word string, start, end int) bool) bool {
	for i := 0; i < len(code); {
		if !isWord(code[i]) {
			i++
			continue
		}
		start := i
		for i < len(code) && isWord(code[i]) {
			i++
		}
		if i-start > 2 && !visit(code[start:i], start, i) {
			return false
		}
	}
	return true
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// hidden says whether a word that is not all ASCII may be one that is, for Python: identifiers are normalized (NFKC), and characters
// beyond ASCII may be spaces around a word in what is no Python.
func hidden(word string) bool {
	return strings.Contains(word, "import") || strings.ContainsFunc(word, func(c rune) bool {
		for _, r := range likeASCII {
			if c >= r[0] && c <= r[1] {
				return true
			}
		}
		return false
	})
}

// likeASCII are the ranges in which characters that may be in an identifier are normalized to letters, digits or the underscore of ASCII. Source: the
// compatibility decompositions of the Unicode Character Database.
var likeASCII = [][2]rune{
	{0xAA, 0xAA}, {0xBA, 0xBA}, {0x132, 0x133}, {0x13F, 0x140}, {0x149, 0x149}, {0x17F, 0x17F}, {0x1C7, 0x1CC}, {0x1F1, 0x1F3}, {0x2B0, 0x2B8}, {0x2E0, 0x2E4},
	{0x1D2C, 0x1D6A}, {0x1D9C, 0x1DBB}, {0x1E9A, 0x1E9B}, {0x2071, 0x2071}, {0x207F, 0x207F}, {0x2090, 0x209C}, {0x2102, 0x2149}, {0x2160, 0x217F},
	{0x2C7C, 0x2C7D}, {0xA7F2, 0xA7F4}, {0xFB00, 0xFB06}, {0xFE33, 0xFE34}, {0xFE4D, 0xFE4F}, {0xFF10, 0xFF19}, {0xFF21, 0xFF3A}, {0xFF3F, 0xFF3F},
	{0xFF41, 0xFF5A}, {0x107A5, 0x107A5}, {0x1CCD6, 0x1CCF9}, {0x1D400, 0x1D7FF}, {0x1FBF0, 0x1FBF9},
}

// modules calls visit with the root of each module that the word import at code[start:end] may be about, "" where that is not
// plain, until it returns false; so does modules then.
func modules(code string, start, end int, visit func(root string) bool) bool {
	root, isFrom := fromModule(code[:start])
	if isFrom && root != "." && !visit(root) {
		return false
	}
	if (isFrom || !statement(code[:start])) && !unclear(code[:start]) {
		return true
	}
	for rest, more := code[end:], true; more; rest, more = afterComma(rest) {
		rest = skipSpace(rest)
		if name := leadingWord(rest); name != "" && !visit(plain(name)) {
			return false
		}
	}
	return true
}

// plain returns a name, or "" where it may be spelled in another way.
func plain(name string) string {
	if !ascii(name) {
		return ""
	}
	return name
}

// statement says whether a statement may begin where s ends.
func statement(s string) bool {
	s = trimSpace(s)
	return s == "" || strings.IndexByte("\n\r;:.>", s[len(s)-1]) >= 0
}

// unclear says whether the last line of s may be a magic with a statement behind its options, of which anything may look like Python, or
// follow a comment, which a backslash does not continue.
func unclear(s string) bool {
	above := false
	for i := len(s) - 1; i >= 0 && !newline(s, i); i-- {
		if s[i] == '%' || s[i] == '#' && above {
			return true
		}
		above = above || s[i] == '\n' || s[i] == '\r'
	}
	return false
}

// newline says whether a logical line may end with s[i].
func newline(s string, i int) bool {
	if s[i] == '\n' && i > 0 && s[i-1] == '\r' {
		i--
	}
	return (s[i] == '\n' || s[i] == '\r') && (i == 0 || s[i-1] != '\\')
}

// afterComma returns what follows the next comma in the first line of s.
func afterComma(s string) (rest string, ok bool) {
	for i := range len(s) {
		switch {
		case s[i] == ',':
			return s[i+1:], true
		case s[i] == ';', s[i] == '#', newline(s, i):
			return "", false
		}
	}
	return "", false
}

func leadingWord(s string) string {
	i := 0
	for i < len(s) && isWord(s[i]) {
		i++
	}
	return s[:i]
}

// What may stand between the words of one logical line.
const spaces = " \t\f\v"

func skipSpace(s string) string {
	for {
		s = strings.TrimLeft(s, spaces)
		rest, ok := strings.CutPrefix(s, "\\")
		if !ok || rest == "" || rest[0] != '\n' && rest[0] != '\r' {
			return s
		}
		s = strings.TrimPrefix(strings.TrimPrefix(rest, "\r"), "\n")
	}
}

func trimSpace(s string) string {
	for {
		s = strings.TrimRight(s, spaces)
		rest := strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
		if len(rest) == len(s) || !strings.HasSuffix(rest, "\\") {
			return s
		}
		s = rest[:len(rest)-1]
	}
}

// fromModule reads "from module" from the end of s and returns the module's root: "." when it is relative, "" when it is not plain.
func fromModule(s string) (root string, ok bool) {
	first := "" // the leftmost word or dot so far
	for {
		s = trimSpace(s)
		if s == "" {
			return "", false
		}
		i := len(s)
		for i > 0 && isWord(s[i-1]) {
			i--
		}
		word := s[i:]
		switch {
		case word == "from" && first != "":
			return plain(first), true
		case word == "" && s[len(s)-1] == '.':
			first, i = ".", i-1
		case word == "" || first != "" && first != ".":
			return "", false
		default:
			first = word
		}
		s = s[:i]
	}
}
