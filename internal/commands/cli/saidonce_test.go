package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

const satisfied = "Requirement already satisfied: cowsay in /x (6.1)\nRequirement already satisfied: numpy in /x (2.1)\n"

func stdout(text string) kernel.Event { return kernel.Stream{Name: "stdout", Data: []byte(text)} }
func stderr(text string) kernel.Event { return kernel.Stream{Name: "stderr", Data: []byte(text)} }

// TestInstallationsAreSaidOnce wants of code that is an installation what cove says: not what pip finds there besides, line by line.
func TestInstallationsAreSaidOnce(t *testing.T) {
	t.Parallel()
	both := []kernel.Event{installed(cowsay()), stdout(satisfied), ok()}
	no := cowsay()
	no.Installed, no.Refused = nil, append(no.Refused, installation.Refusal{Name: "cowsay", Code: "package_unknown", Reason: "there is none"})
	refused := installed(no)
	unknown := "ERROR: No matching distribution found for cowsay\n" + strings.Join(cli.PipAdvice, "\n") + "\n"
	for name, test := range map[string]struct {
		code      string
		events    []kernel.Event
		out, errs string
	}{
		"by %pip":            {"%pip install cowsay numpy", both, "Requirement already satisfied: numpy in /x (2.1)\n", "installed cowsay 6.1"},
		"by !pip":            {"!pip install cowsay numpy", both, "Requirement already satisfied: numpy in /x (2.1)\n", "installed cowsay 6.1"},
		"other code":         {"print('Requirement already satisfied')", both, satisfied, "installed cowsay 6.1"},
		"refused":            {"%pip install cowsay", []kernel.Event{refused, stderr(unknown), ok()}, "", "there is none"},
		"with more after it": {"!pip install cowsay; python y.py", []kernel.Event{refused, stderr(unknown + "Traceback of y.py\n"), stdout("made by y.py\n"), ok()}, "made by y.py\n", "Traceback of y.py\n"},
		"in one stream":      {"!pip install cowsay 2>&1; python y.py", []kernel.Event{refused, stdout(unknown + "made by y.py\n"), ok()}, "made by y.py\n", "there is none"},
		"in pieces":          {"%pip install cowsay numpy", []kernel.Event{installed(cowsay()), stdout(satisfied[:9]), stdout(satisfied[9:40]), stdout(satisfied[40:60]), stdout(satisfied[60:]), ok()}, "Requirement already satisfied: numpy in /x (2.1)\n", "installed"},
		"without a line end": {"%pip install cowsay", []kernel.Event{installed(cowsay()), stdout("Req"), ok()}, "Req", "installed"},
		"within a line":      {"!pip install cowsay; python y.py", []kernel.Event{installed(cowsay()), stdout("y says "), stdout("Requirement already satisfied: cowsay 1\n"), ok()}, "y says Requirement already satisfied: cowsay 1\n", "installed"},
	} {
		r := run(t, &scripted{events: test.events}, nil, "run", "-c", test.code)
		if r.out != test.out || !strings.Contains(r.err, test.errs) || strings.Contains(r.err, "No matching distribution") || strings.Contains(r.err, "Nothing can be installed") {
			t.Errorf("%s: %q, %q", name, r.out, r.err)
		}
	}
}

// TestInstallationsAreWholeForPrograms wants JSON and notebooks to have all that pip wrote.
func TestInstallationsAreWholeForPrograms(t *testing.T) {
	t.Parallel()
	events := []kernel.Event{installed(cowsay()), stdout(satisfied), ok()}
	if r := run(t, &scripted{events: events}, nil, "run", "--json", "-c", "%pip install cowsay numpy"); !strings.Contains(r.out, "Requirement already satisfied: cowsay") {
		t.Errorf("JSON lacks what pip wrote: %s", r.out)
	}
	r := run(t, &scripted{events: events}, func(dir string, p *cli.Program) {
		p.In = strings.NewReader("%pip install cowsay numpy\n%save " + dir + "/x.ipynb\n")
	}, "repl")
	if text, err := os.ReadFile(filepath.Join(r.dir, "x.ipynb")); err != nil || !strings.Contains(string(text), "Requirement already satisfied: cowsay") {
		t.Errorf("the notebook lacks what pip wrote: %v, %s", err, text)
	}
	if strings.Contains(r.out, "Requirement already satisfied: cowsay") {
		t.Errorf("it is shown, too: %s", r.out)
	}
}

// TestAdviceOfPip wants what is left out to be what the pip of the sandbox says.
func TestAdviceOfPip(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "python", "pyenv", "standin", "site-packages", "pip", "__init__.py"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "ADVICE = \"\"\"\\\n" + strings.Join(cli.PipAdvice, "\n") + "\"\"\""; !strings.Contains(string(text), want) {
		t.Errorf("pip does not say %s", want)
	}
}
