package scan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a report holds at most. Code that is not made up stays far below.
const (
	mostImports = 500
	mostNames   = 100 // of one from-import, and modules in one Unless
	mostAsked   = 200
	longestName = 200  // bytes of a module or name
	longestWord = 1000 // bytes of anything else that is passed on
)

// MaxCode is the size of the longest code that is scanned, in bytes.
const MaxCode = 1 << 20

// request is what the scanner reads: [script, code].
func request(c Code) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode([]any{c.Script, c.Text})
	return b.Bytes(), err
}

// reply is what the scanner answers. Nothing in it is to be believed.
type reply struct {
	Imports []struct {
		Module   string
		Names    []string
		Optional bool
		Unless   []string
	}
	Needs []struct {
		Module   string
		Function string
		Optional bool
	}
	Shell   []string
	Argv    [][]string
	Invalid bool
}

// decode turns a reply into a report and drops what is not as it must be.
func decode(body []byte) (Report, error) {
	var said reply
	if err := json.Unmarshal(body, &said); err != nil {
		return Report{}, err
	}
	r := Report{Invalid: said.Invalid}
	for _, i := range said.Imports[:min(len(said.Imports), mostImports)] {
		if !isDotted(i.Module) {
			continue
		}
		r.Imports = append(r.Imports, Import{
			Module: i.Module, Names: only(i.Names, isIdentifier), Optional: i.Optional, Unless: only(i.Unless, isDotted),
		})
	}
	for _, n := range said.Needs {
		distribution, known := distributions[n.Module]
		if _, function := triggers[n.Function]; !known || !function || len(r.Imports) >= mostImports {
			continue
		}
		r.Imports = append(r.Imports, Import{Module: n.Module, Optional: n.Optional, Need: n.Function, Distribution: distribution})
	}
	for _, text := range said.Shell[:min(len(said.Shell), mostAsked)] {
		readShell(text, &r)
	}
	for _, words := range said.Argv[:min(len(said.Argv), mostAsked)] {
		readCommand(words[:min(len(words), mostAsked)], &r)
	}
	return r, nil
}

func only(names []string, valid func(string) bool) []string {
	var out []string
	for _, n := range names {
		if len(out) < mostNames && valid(n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func isDotted(module string) bool {
	if len(module) > longestName {
		return false
	}
	for part := range strings.SplitSeq(module, ".") {
		if !isIdentifier(part) {
			return false
		}
	}
	return true
}

// isIdentifier says whether a name may be one of Python's. Python is the judge of what exactly is; what matters here is what is not.
func isIdentifier(name string) bool {
	if name == "" || len(name) > longestName || !utf8.ValidString(name) {
		return false
	}
	for i, c := range name {
		if c != '_' && !unicode.IsLetter(c) && !unicode.Is(unicode.Nl, c) && (i == 0 || !unicode.IsDigit(c) && !unicode.IsMark(c) && !unicode.Is(unicode.Pc, c)) {
			return false
		}
	}
	return true
}
