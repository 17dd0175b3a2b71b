package cli

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"cove/internal/core/config"
)

// TestOneCommandIsLikeTheWhole: a parser of one command alone helps and complains like the parser of all.
func TestOneCommandIsLikeTheWhole(t *testing.T) {
	t.Parallel()
	commands := reflect.TypeFor[grammar]()
	for i := range commands.NumField() {
		name := strings.ToLower(commands.Field(i).Name)
		for _, more := range []string{"--help", "--no-such-flag", "no such word", ""} {
			one, onlyIt := answer(t, name, more, name)
			whole, _ := answer(t, "", more, name)
			if one != whole || one == "" {
				t.Errorf("cove %s %s\nby itself:\n%s\nof all:\n%s", name, more, one, whole)
			}
			if onlyIt != 1 {
				t.Errorf("the parser of %s has %d commands", name, onlyIt)
			}
		}
	}
	if _, all := answer(t, "no-such", "--help", "run"); all != commands.NumField() {
		t.Errorf("where no command is named, %d of %d are there", all, commands.NumField())
	}
}

// answer returns what a parser made for the named command says to arguments, and how many commands it knows.
func answer(t *testing.T, made, more string, args ...string) (said string, commands int) {
	t.Helper()
	var g grammar
	var out bytes.Buffer
	exited := false
	parser, err := g.parser(made, kong.Name("cove"), kong.Writers(&out, &out), kong.Vars(defaults(config.Default(func(string) string { return "" }))), kong.Exit(func(int) { exited = true }))
	if err != nil {
		t.Fatal(err)
	}
	if more != "" {
		args = append(args, more)
	}
	kctx, err := parser.Parse(args)
	switch {
	case exited:
	case err != nil:
		out.WriteString(err.Error())
	default:
		out.WriteString(kctx.Command())
	}
	return out.String(), len(parser.Model.Children)
}
