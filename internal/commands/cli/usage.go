package cli

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"

	"cove/internal/core/problem"
)

// wrongValue finds, in what the parser says, the flag or argument whose value is missing, and the flag that stands in the place of that.
var wrongValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\S+): (?:expected \S+ value but got "EOL" .*|missing value, expecting .*|expected \S+ value but got "(-[^"]*)" .*)$`)
})

// usageProblem says what is wrong with a command line, and what to do.
func usageProblem(args []string, err error) error {
	if errors.Is(err, syscall.EPIPE) { // of the help
		return err
	}
	text, hint := strings.Replace(err.Error(), `,"" but got`, " but got", 1), "see `cove --help`" // "" is what a flag is that is not given
	var chosen *kong.Node
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		chosen = wrong.Context.Selected()
	}
	if chosen != nil {
		hint = "see `" + chosen.FullPath() + " --help`"
		if args[0] == "run" && strings.Contains(text, "un") {
			hint += "; what is meant for the program comes after --, as in `cove run analysis.py -- --year 2025`"
		}
	}
	if found := wrongValue().FindStringSubmatch(text); found != nil {
		text = found[1] + " has no value"
		if f := flagOf(chosen, found[1]); f != nil {
			hint = "give it one: " + f.Summary() + "; see `" + chosen.FullPath() + " --help`"
		}
		if found[2] != "" {
			hint = "a value that begins with - is given with =, as in " + found[1] + "=" + found[2]
		}
	}
	return problem.New(problem.Usage, text).WithHint(hint)
}

// flagOf is the flag of a command with that name, as --name; nil: there is none.
func flagOf(chosen *kong.Node, name string) *kong.Flag {
	if chosen == nil {
		return nil
	}
	return flagNamed(chosen, name)
}
