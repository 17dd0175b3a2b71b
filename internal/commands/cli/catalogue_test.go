package cli_test

import (
	"strings"
	"testing"
	"unicode"

	"cove/internal/commands/cli"
	"cove/internal/core/lang"
	"cove/internal/python/libdata"
	"cove/internal/python/pyenv"
)

// TestHelpIsTranslated wants each text of the help to be in the catalogue, as the grammar has it.
func TestHelpIsTranslated(t *testing.T) {
	t.Parallel()
	texts, err := cli.HelpTexts()
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 300 {
		t.Fatalf("the commands have only %d texts", len(texts))
	}
	c := lang.Open(lang.Chinese)
	for _, text := range texts {
		if c.Help(text) == text && strings.Contains(text, " ") {
			t.Errorf("the catalogue does not have %q", text)
		}
	}
}

// TestDataHelp wants the help of cove data to name the libraries and the place that there are.
func TestDataHelp(t *testing.T) {
	t.Parallel()
	texts, err := cli.HelpTexts()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"The libraries are " + strings.Join(libdata.Libraries(), ", ") + ";", "read-only at " + pyenv.DataMountPoint + ","} {
		if !strings.Contains(all, want) {
			t.Errorf("the help does not say %q", want)
		}
	}
}

// TestUsageIsTranslated wants what the parser of the command line says to be in the catalogue.
func TestUsageIsTranslated(t *testing.T) {
	t.Parallel()
	c := lang.Open(lang.Chinese)
	for _, args := range [][]string{
		{"nosuch"}, {"run", "a.py", "b.py"}, {"run", "--tiemout", "1s"}, {"run", "--nothing-like-it"}, {"session", "fork", "a"}, {"session"}, {"run", "--cpus", "many", "-c", "1"},
		{"history", "--limit", "some"}, {"completion", "tcsh"},
	} {
		r := run(t, &scripted{}, nil, args...)
		line, _, _ := strings.Cut(strings.TrimPrefix(r.err, "cove: "), "\n")
		if got := c.Text(line); r.code != 125 || !strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%v: exit code %d, %q became %q", args, r.code, line, got)
		}
	}
}
