package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/python/kernel"
)

// TestMistakesHaveANextStep wants what is wrong with a command line to be said with what to do, in words of the command line.
func TestMistakesHaveANextStep(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		want   string
		step   string
		absent string
	}{
		{[]string{"run", "-c"}, "--code has no value", "give it one: --code=CODE", "EOL"},
		{[]string{"run", "x.py", "-f"}, "--file has no value", "give it one: --file=PATH", "<arg>"},
		{[]string{"run", "-c", "1", "--cpus"}, "--cpus has no value", "give it one: --cpus=", "EOL"},
		{[]string{"run", "-c", "-1"}, "--code has no value", "--code=-1", "short flag"},
		{[]string{"export", "--format", "pdf"}, `must be one of "ipynb","md","py" but got "pdf"`, "see `cove export --help`", `""`},
		{[]string{"ask", "--tries", "0", "--model", "replay:x", "why?"}, "--tries must be 2 to 10", "leave it out", ""},
		{[]string{"chat", "--tries=-1", "--model", "replay:x"}, "--tries must be 2 to 10", "leave it out", ""},
		{[]string{"serve", "--listen", "foo"}, `serve.listen must be an address with a port, not "foo"`, "127.0.0.1:8700 for this machine alone", "debug_listen"},
		{[]string{"serve", "--listen", "foo:bar"}, `not "foo:bar"`, ":8700 for all its addresses", "lookup"},
	} {
		r := run(t, &scripted{}, nil, test.args...)
		said, step, _ := strings.Cut(r.err, "\n")
		if r.code != 125 || !strings.Contains(said, test.want) || !strings.Contains(step, test.step) || test.absent != "" && strings.Contains(r.err, test.absent) {
			t.Errorf("%q: exit code %d, %s", test.args, r.code, r.err)
		}
	}
}

// TestNotebooksAreSavedAsWhatTheyAre wants /save and %notebook to refuse endings that no notebook has, and to add the usual one where there is none.
func TestNotebooksAreSavedAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"/save": {"chat", "--no-history", "--model", "replay:$DIR/r"}, "%notebook": {"repl"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			r := run(t, &scripted{events: []kernel.Event{ok()}}, func(dir string, p *cli.Program) {
				lay(t, dir, map[string]string{"r": `{"parts": [{"text": "one"}]}`})
				p.NewModel = func(choose.Choice) (model.Model, error) {
					return model.NewReplay("replay", strings.NewReader(`{"parts": [{"text": "one"}]}`), 0)
				}
				p.In = strings.NewReader(name + " " + dir + "/talk.txt\n" + name + " " + dir + "/talk\n" + name + " " + dir + "/TALK.MD\n")
			}, args...)
			if !strings.Contains(r.err, "cove writes notebooks (.ipynb), Markdown (.md) and programs (.py)") || !strings.Contains(r.err, "/talk.ipynb") {
				t.Errorf("%s", r.err)
			}
			for file, there := range map[string]bool{"talk.txt": false, "talk.txt.ipynb": false, "talk.ipynb": true, "TALK.MD": true} {
				if _, err := os.Stat(filepath.Join(r.dir, file)); (err == nil) != there {
					t.Errorf("%s is there: %v\n%s", file, err == nil, r.err)
				}
			}
		})
	}
}

// TestMissingFilesInTheREPL wants the hint of cove run about files that this machine has.
func TestMissingFilesInTheREPL(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	lay(t, dir, map[string]string{"sales.csv": "1"})
	s := &scripted{events: failing("FileNotFoundError", "[Errno 2] No such file or directory: 'sales.csv'")}
	if r := run(t, s, func(_ string, p *cli.Program) { p.In = strings.NewReader("x\n") }, "repl"); !strings.Contains(r.err, "add -f sales.csv") {
		t.Errorf("%s", r.err)
	}
}

// TestAProgramThatHidesWhatItImports is about files with the name of a module that they import: that is said where they failed for it.
func TestAProgramThatHidesWhatItImports(t *testing.T) {
	t.Parallel()
	const hint = "Hint: the file qrcode.py hides the module qrcode, which it imports: give the file another name"
	for text, hides := range map[string]bool{
		"AttributeError: partially initialized module 'qrcode' has no attribute 'make' (most likely due to a circular import)":             true,
		"AttributeError: module 'qrcode' has no attribute 'make'":                                                                          true,
		"ImportError: cannot import name 'make' from partially initialized module 'qrcode' (most likely due to a circular import) (/q.py)": true,
		"ImportError: cannot import name 'make' from 'qrcode' (/w/qrcode.py)":                                                              true,
		"ModuleNotFoundError: No module named 'qrcode.main'; 'qrcode' is not a package":                                                    true,
		"ModuleNotFoundError: No module named 'qrcode'":                                                                                    false,
		"ModuleNotFoundError: No module named 'qrcodegen'":                                                                                 false,
		"AttributeError: module 'qrcodegen' has no attribute 'make'":                                                                       false,
		"AttributeError: 'NoneType' object has no attribute 'qrcode'":                                                                      false,
		"ValueError: module 'qrcode' has no attribute 'make'":                                                                              false,
	} {
		name, value, _ := strings.Cut(text, ": ")
		lays := func(dir string, _ *cli.Program) {
			lay(t, dir, map[string]string{"qrcode.py": "import qrcode\n", "lib/qrcode/__init__.py": ""})
		}
		r := run(t, &scripted{events: failing(name, value)}, lays, "run", "$DIR/qrcode.py")
		if strings.Contains(r.err, hint) != hides || r.code == 0 {
			t.Errorf("%q: exit code %d, %s", text, r.code, r.err)
		}
		r = run(t, &scripted{events: failing(name, value)}, lays, "run", "$DIR/qrcode.py", "-f", "$DIR/lib/qrcode")
		if strings.Contains(r.err, "hides") {
			t.Errorf("a folder of that name goes before the program: %s", r.err)
		}
	}
	for _, text := range []string{"from worker import f\n", "'''\nimport worker\n'''\n", "try:\n    import worker\nexcept ImportError:\n    pass\n"} {
		r := run(t, &scripted{events: []kernel.Event{ok()}}, func(dir string, _ *cli.Program) { lay(t, dir, map[string]string{"worker.py": text}) }, "run", "$DIR/worker.py")
		if r.code != 0 || r.err != "" {
			t.Errorf("%q works: exit code %d, %s", text, r.code, r.err)
		}
	}
}
