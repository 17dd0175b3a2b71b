package scan

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"cove/internal/python/deps/require"
)

// scriptBlock is the expression of PEP 723 for a block of metadata.
var scriptBlock = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$`)
})

// readMetadata reads what is written for people and programs rather than for Python: the block "script" of PEP 723, and comments. What
// cannot be read there is passed over: the code runs without, as it does elsewhere.
func readMetadata(code string, r *Report) {
	code = strings.ReplaceAll(code, "\r\n", "\n")
	if strings.Contains(code, "# ///") {
		readScriptBlock(code, r)
	}
	if strings.Contains(code, "requirements:") {
		readComments(code, r)
	}
}

func readScriptBlock(code string, r *Report) {
	var content string
	found := 0
	for _, m := range scriptBlock().FindAllStringSubmatch(code, -1) {
		if m[1] == "script" {
			content = m[2]
			found++
		}
	}
	if found != 1 {
		return // several are an error by the specification
	}
	var b strings.Builder
	for line := range strings.Lines(content) {
		line = strings.TrimPrefix(line, "#")
		b.WriteString(strings.TrimPrefix(line, " "))
	}
	var block struct {
		Dependencies   []string `toml:"dependencies"`
		RequiresPython string   `toml:"requires-python"`
	}
	if _, err := toml.Decode(b.String(), &block); err != nil {
		return
	}
	if len(block.RequiresPython) <= longestWord {
		r.RequiresPython = block.RequiresPython
	}
	for _, text := range block.Dependencies {
		r.ask(text, HowScript)
	}
}

// ask adds a requirement, or what is refused of it.
func (r *Report) ask(text, how string) {
	q, err := require.Parse(text)
	if err != nil {
		r.refuse(text)
		return
	}
	r.asked(q, how)
}

func (r *Report) asked(q require.Requirement, how string) {
	same := func(a Asked) bool { return a.How == how && a.String() == q.String() }
	if len(r.Asked) < mostAsked && !slices.ContainsFunc(r.Asked, same) {
		r.Asked = append(r.Asked, Asked{q, how})
	}
}

func (r *Report) refuse(text string) {
	text = strings.ToValidUTF8(text[:min(len(text), longestWord)], "")
	if len(r.Refused) < mostAsked && !slices.Contains(r.Refused, text) {
		r.Refused = append(r.Refused, text)
	}
}

// readComments reads "# requirements: a b==1", or the same with one requirement a line in the comments that follow, where a program begins.
// A comment there that is meant for people is told by not being a list of requirements, as a whole.
func readComments(code string, r *Report) {
	var words []string
	listing := false
	for line := range strings.SplitSeq(code, "\n") {
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "#")
		if line != "" && !isComment {
			break
		}
		comment = strings.TrimSpace(comment)
		list, begins := strings.CutPrefix(comment, "requirements:")
		switch {
		case begins:
			words, listing = append(words, requirementWords(list)...), strings.TrimSpace(list) == ""
		case comment == "":
			listing = false
		case listing:
			words = append(words, requirementWords(comment)...)
		}
	}
	var asked []require.Requirement
	for _, w := range words {
		q, err := require.Parse(w)
		if err != nil || slices.Contains(prose, strings.ToLower(w)) {
			return
		}
		asked = append(asked, q)
	}
	for _, q := range asked {
		r.asked(q, HowComment)
	}
}

// prose are words of comments for people, none of which is asked for like this.
var prose = []string{
	"the", "and", "or", "to", "of", "is", "are", "must", "should", "with", "for", "in", "on", "this", "that", "python", "none", "no", "an", "be",
	"install", "pip", "see", "use", "uses", "file", "code", "script", "only", "standard", "library", "stdlib", "nothing", "n/a", "data",
}

// requirementWords splits a list at commas and spaces, but not inside of one requirement: "a >=1, <2" is one, and so is "a[x, y]".
func requirementWords(list string) []string {
	const separators, operators = ", \t", "=<>!~"
	var words []string
	word := ""
	for list = strings.TrimLeft(list, separators); list != ""; {
		n := strings.IndexAny(list, separators)
		if n < 0 {
			n = len(list)
		}
		word += list[:n]
		rest := strings.TrimLeft(list[n:], separators)
		comma := strings.Contains(list[n:len(list)-len(rest)], ",")
		inside := strings.Count(word, "[") > strings.Count(word, "]")
		list = rest
		switch {
		case rest == "":
		case inside, strings.ContainsAny(rest[:1], operators+"["), strings.ContainsAny(word[len(word)-1:], operators):
			if comma {
				word += ","
			}
			continue
		}
		words = append(words, word)
		word = ""
	}
	return words
}
