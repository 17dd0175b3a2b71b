// Package replaced knows what replaces things that Python's libraries removed. Programs written for earlier versions, as language models write them,
// end in exceptions that do not always say what to use instead.
//
// Each row of the table (changes/) has a program that ends in its exception, and a test runs all of them in the standard environment. Since which version was found by
// running the programs under the releases of fifteen times, from pandas 0.24, NumPy 1.16 and scikit-learn 0.20 on; what was gone before them is as release notes say.
package replaced

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// What of an exception is looked at: it comes out of a sandbox.
const (
	longestName    = 200  // bytes of the exception's type
	longestMessage = 4000 // bytes
	mostFrames     = 64   // the innermost
	longestFrame   = 400  // bytes of a frame's line
)

//go:embed changes/*.toml
var tables embed.FS

// change is a row of the table.
type change struct {
	Errors  []string // exception types, without their modules
	Message string   // a pattern; it begins where the message begins
	Frame   string   // a pattern of which one frame's line ("File ..., line ..., in ...") has to have a part; "" for messages that nothing else has
	Says    string   // what to use instead
	Source  string   // the release notes that tell of it
	Program string   // ends in the exception

	message, frame *regexp.Regexp
}

// changes are the rows by exception type, in the table's order.
var changes = sync.OnceValue(func() map[string][]change {
	all, err := load()
	if err != nil {
		panic(err) // the table is part of the program, and a test reads it
	}
	byError := map[string][]change{}
	for _, c := range all {
		for _, name := range c.Errors {
			byError[name] = append(byError[name], c)
		}
	}
	return byError
})

// load reads the table. An error is a mistake in it.
func load() ([]change, error) {
	files, err := tables.ReadDir("changes")
	if err != nil {
		return nil, fmt.Errorf("list the changes of libraries: %w", err)
	}
	var all []change
	for _, f := range files {
		var table struct{ Change []change }
		if _, err := toml.DecodeFS(tables, "changes/"+f.Name(), &table); err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		for _, c := range table.Change {
			if c.message, err = regexp.Compile("^(?:" + c.Message + ")"); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f.Name(), c.Message, err)
			}
			if c.frame, err = regexp.Compile(c.Frame); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f.Name(), c.Frame, err)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// Hint returns one sentence that says what replaces what an exception misses, and since when, or "" when the exception is of no known change. name is the
// exception's type, with or without its module, message its text, and traceback the lines of one. What Hint says is the table's and never the sandbox's.
func Hint(name, message string, traceback []string) string {
	name = cut(name, longestName)
	rows := changes()[name[strings.LastIndexByte(name, '.')+1:]]
	if len(rows) == 0 {
		return ""
	}
	message = cut(message, longestMessage)
	var frames []string
	for _, c := range rows {
		if !c.message.MatchString(message) {
			continue
		}
		if frames == nil {
			frames = framesOf(traceback)
		}
		if c.Frame == "" || anyMatches(c.frame, frames) {
			return fmt.Sprintf("%s (%s)", c.Says, c.Source)
		}
	}
	return ""
}

// framesOf returns the lines of a traceback that name a file, the innermost first.
func framesOf(traceback []string) []string {
	frames := []string{}
	for n := len(traceback) - 1; n >= 0 && len(frames) < mostFrames; n-- {
		if line := strings.TrimSpace(cut(traceback[n], longestFrame)); strings.HasPrefix(line, `File "`) {
			frames = append(frames, line)
		}
	}
	return frames
}

func anyMatches(pattern *regexp.Regexp, lines []string) bool {
	for _, line := range lines {
		if pattern.MatchString(line) {
			return true
		}
	}
	return false
}

func cut(s string, most int) string { return s[:min(len(s), most)] }
