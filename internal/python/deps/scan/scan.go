// Package scan finds out what a piece of code will import. A quick look in Go (Suspect) rules most code out; what remains is parsed by
// the session's own Python, in a process of the sandbox that the user's code can neither see into nor signal, and what that says is
// bounded and validated here.
//
// The parser is the four .py files beside this one, joined: it finds imports anywhere in the code, knows which of them the code can do
// without, and sees calls that install packages or that need some at run time. What is only text (PEP 723, "# requirements:" comments, the words of
// a command line) is read here.
package scan

import (
	"slices"

	"cove/internal/python/deps/require"
)

// Report is what a piece of code needs.
type Report struct {
	Imports []Import
	// Asked are requirements that the code states: %pip, !pip, subprocess calls of pip, PEP 723, "# requirements:" comments.
	Asked []Asked
	// RequiresPython is PEP 723's requires-python, "" when there is none.
	RequiresPython string
	// Refused are parts of such statements that are not allowed (URLs, VCS, paths, other indexes), as written.
	Refused []string
	// Invalid says that the code has a syntax error; Imports is then what could be found nevertheless.
	Invalid bool
}

// Import is one module that the code imports.
type Import struct {
	Module string   // dotted, without the names of a from-import
	Names  []string // of a from-import, where each may be a submodule; no "*"
	// Optional says that the code goes on without it: a try with an except that works, for example.
	Optional bool
	// Unless are modules that the code would rather have: it imports this one only when they cannot be imported, as in
	// try: import ujson except ImportError: import simplejson.
	Unless []string
	// Need names the function that needs it at run time ("read_excel") where no import statement does. Distribution is then
	// the one to install, as require.Parse reads it (it may have extras), and Module its module.
	Need         string
	Distribution string
}

// Asked is one requirement that the code states, and how: "pip", "script" (PEP 723) or "comment".
type Asked struct {
	require.Requirement
	How string
}

// The values of Asked.How.
const (
	HowPip     = "pip"
	HowScript  = "script"
	HowComment = "comment"
)

// Code is what is to be looked at.
type Code struct {
	Text   string
	Script bool // a program; otherwise a notebook cell, which may have magics
}

// Needed returns the imports that the code cannot do without and that are not there. there says whether a module, with its dots, can be
// imported.
func (r Report) Needed(there func(module string) bool) []Import {
	var needed []Import
	for _, i := range r.Imports {
		if !i.Optional && !there(i.Module) && !slices.ContainsFunc(i.Unless, there) {
			needed = append(needed, i)
		}
	}
	return needed
}
