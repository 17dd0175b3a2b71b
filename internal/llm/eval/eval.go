// Package eval measures how good a model's answers are: it asks tasks whose right answers are known through the same loop that questions go through, judges
// what comes back by the tasks' checks, keeps a record of each task in a folder, and computes figures from the records. A run that was ended goes on where it was.
//
// It knows neither how sessions are opened nor how models are reached: a Platform does that.
package eval

import (
	"context"
	"io"
	"iter"
	"time"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// Task is one thing that a model is asked, with what its answer is judged by.
type Task struct {
	ID     string `json:"id"`               // unique in a set
	Series string `json:"series,omitempty"` // tasks with the same one share a session and a conversation, in their order; "": the task has its own
	Prompt string `json:"prompt"`
	Files  []File `json:"files,omitempty"` // put into the workspace first; those of a series belong to its first task
	// Before is code that runs in the session before the model is asked, which the model is not told of: what the question takes as given.
	Before    string  `json:"before,omitempty"`
	Checks    []Check `json:"checks"`              // all must be passed
	Reference string  `json:"reference,omitempty"` // a program that is right; "": there is none
}

// File is a file of the user's that a task needs.
type File struct {
	Host string `json:"-"`    // where it is read
	Path string `json:"path"` // where it goes, relative to the workspace, slash-separated
	Sum  string `json:"sum"`  // SHA-256 of its content, hexadecimal
}

// CheckKind says what a check looks at.
type CheckKind string

// The kinds of checks.
const (
	CheckTests    CheckKind = "tests"    // Python that runs in the session after the model's code
	CheckCompare  CheckKind = "compare"  // values in the session are those that the reference has
	CheckCode     CheckKind = "code"     // Python that has the answer as the variable answer
	CheckEquals   CheckKind = "equals"   // the answer is a text
	CheckNumber   CheckKind = "number"   // the answer has a number
	CheckContains CheckKind = "contains" // the answer has texts
	CheckRegex    CheckKind = "regex"    // a regular expression finds something in the answer
	CheckValues   CheckKind = "values"   // the answer has @NAME[VALUE] for each value
	CheckFile     CheckKind = "file"     // a file is in the workspace
)

// Generates says whether a check judges code or values that the model made in the session, rather than its answer.
func (k CheckKind) Generates() bool { return k == CheckTests || k == CheckCompare }

// Check is one condition that a right answer meets.
type Check struct {
	Kind      CheckKind         `json:"kind"`
	Text      string            `json:"text,omitempty"`      // code, or the text to be equal to, or the regular expression, or what the file has
	Texts     []string          `json:"texts,omitempty"`     // of contains
	Number    float64           `json:"number,omitempty"`    // of number
	Tolerance float64           `json:"tolerance,omitempty"` // of number and values, in the number's unit
	Values    map[string]string `json:"values,omitempty"`    // of values
	Path      string            `json:"path,omitempty"`      // of file
	Exact     bool              `json:"exact,omitempty"`     // of file: its content is Text, or has the hash Sum
	Sum       string            `json:"sum,omitempty"`       // of file: SHA-256, hexadecimal
	Entry     string            `json:"entry,omitempty"`     // of tests: the function that they are called with, as check(ENTRY)
	Prelude   string            `json:"prelude,omitempty"`   // of tests: code whose names are there unless the session has its own
	Unittest  bool              `json:"unittest,omitempty"`  // of tests: they are classes of the module unittest
	Names     []string          `json:"names,omitempty"`     // of compare: the variables
	Result    bool              `json:"result,omitempty"`    // of compare: also the value of the last expression
}

// Set is the tasks of a run.
type Set struct {
	Name    string
	Tasks   []Task
	Sources []Source
	Notices []string // what a person should know of how the files were read
}

// Source is a file that tasks were read from.
type Source struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Sum    string `json:"sha256"`
}

// Platform opens sessions.
type Platform interface {
	// Prepare makes what all sessions need and is made once, so that no task's time has it in it, and shows that sessions can be opened.
	Prepare(ctx context.Context) error
	// Open starts a session with these files in its workspace. It is called by several goroutines.
	Open(ctx context.Context, files []File) (Session, error)
}

// Session is a session of a task or a series. It is used by one goroutine.
type Session interface {
	// Ask runs a turn, the first in a new conversation, the next ones in the same. hear gets each event, the answer last, one after the other.
	Ask(ctx context.Context, prompt string, hear func(loop.Event) error) (Asked, error)
	// Execute runs code as an execution that is recorded. hear gets each event, a kernel.Done last.
	Execute(ctx context.Context, code string, hear func(kernel.Event) error) error
	// Unrecorded runs code as Live.Execute does, for what neither the model nor the history hears of.
	Unrecorded(ctx context.Context, code string) iter.Seq2[kernel.Event, error]
	// Fetch copies a workspace file to w. Problems: file_not_found and others.
	Fetch(ctx context.Context, path string, w io.Writer) error
	// Python returns the version of the session's Python and the versions of its packages.
	Python() (version string, packages map[string]string)
	Close()
}

// Asked is what a turn took.
type Asked struct {
	Conversation string // its id
	Usage        model.Usage
	Cost         model.Cost
	Model        time.Duration // spent in requests to the model, waiting for another attempt included
}
