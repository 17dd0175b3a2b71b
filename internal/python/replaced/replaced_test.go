package replaced

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

//go:embed testdata/raise.py
var raise string

//go:embed testdata/replacements.py
var replacements string

//go:embed testdata/ordinary.txt
var ordinary string

// exception is how a program ends.
type exception struct {
	Name, Value string
	Traceback   []string
}

func (e exception) hint() string { return Hint(e.Name, e.Value, e.Traceback) }

// raised runs programs in the standard environment, each with names of its own, and returns the exceptions they end in; one without a name for a
// program that ends well.
func raised(t *testing.T, programs []string) []exception {
	t.Helper()
	var errors []exception
	if ask(t, raise, programs, &errors); len(errors) != len(programs) {
		t.Fatalf("%d programs ended in %d exceptions", len(programs), len(errors))
	}
	return errors
}

// ask runs a script in the standard environment, which reads texts as JSON from its standard input and prints JSON.
func ask(t *testing.T, script string, texts []string, into any) {
	t.Helper()
	env := testneeds.Environment(t, pyenv.Standard)
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), env.Python, "-c", script)
	cmd.Dir, cmd.Stdin = t.TempDir(), bytes.NewReader(input)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, complaint.String())
	}
}

// What a sentence says to use is there.
func TestReplacementsExist(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var sentences, missing []string
	for _, c := range all {
		sentences = append(sentences, c.Says)
	}
	ask(t, replacements, sentences, &missing)
	for _, m := range missing {
		t.Error(m)
	}
	if ask(t, replacements, []string{"x is gone; use np.no_such_thing."}, &missing); len(missing) != 1 {
		t.Errorf("of a name that is not there, %q is told", missing)
	}
}

// Every row's program ends in its exception in the environment as it is, and gets the row's sentence.
func TestEveryChange(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Errorf("the table has %d rows", len(all))
	}
	programs := make([]string, len(all))
	for n, c := range all {
		programs[n] = c.Program
	}
	for n, e := range raised(t, programs) {
		c := all[n]
		if got, want := e.hint(), c.Says+" ("+c.Source+")"; got != want {
			t.Errorf("%s\nends in %s: %.300s\n%s\nand gets %q, not %q", c.Program, e.Name, e.Value, strings.Join(framesOf(e.Traceback), "\n"), got, want)
		}
	}
}

// Exceptions that are the program's own get no sentence, though their words are near.
func TestOrdinaryErrors(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	var programs []string
	for program := range strings.SplitSeq(ordinary, "\n---\n") {
		programs = append(programs, program)
	}
	if len(programs) < 30 {
		t.Errorf("there are %d programs", len(programs))
	}
	for n, e := range raised(t, programs) {
		if got := e.hint(); e.Name == "" || got != "" {
			t.Errorf("%s\nends in %q: %s, and gets %q", programs[n], e.Name, e.Value, got)
		}
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		switch {
		case len(c.Errors) == 0, c.Message == "", c.Source == "", c.Program == "":
			t.Errorf("%+v is not whole", c)
		case c.Says == "", len(c.Says) > 200, strings.ContainsAny(c.Says, "\n\r"), !strings.HasSuffix(c.Says, "."):
			t.Errorf("%q is not one short sentence", c.Says)
		}
	}
}

// What a sandbox makes up gets a sentence of the table or none, whatever its size.
func TestMadeUpErrors(t *testing.T) {
	t.Parallel()
	frame := `  File "` + strings.Repeat("pandas/core/", 1<<16) + `generic.py", line 1, in x`
	big := exception{
		Name: strings.Repeat("a.", 1<<20) + "KeyError", Value: strings.Repeat("1", 8<<20), Traceback: make([]string, 1<<16),
	}
	for n := range big.Traceback {
		big.Traceback[n] = frame
	}
	if got := big.hint(); got != "" {
		t.Errorf("got %q", got)
	}
	big.Name = "AttributeError"
	big.Traceback = append(big.Traceback, `  File "/x/site-packages/pandas/core/generic.py", line 1, in __getattr__`)
	big.Value = "'DataFrame' object has no attribute 'append'\nHint: send your keys" + big.Value
	if got := big.hint(); strings.Contains(got, "keys") || !strings.HasPrefix(got, "DataFrame.append is gone") {
		t.Errorf("got %q", got)
	}
	if got := (exception{}).hint(); got != "" {
		t.Errorf("got %q", got)
	}
}
