package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/cli"
)

func TestWhatMayComeNext(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"se":                           "session search serve",
		"session p":                    "pause ps port",
		"run --en":                     "--engine --env",
		"completion ":                  "bash fish powershell zsh",
		"history --source ":            "api cli openai",
		"history --source=a":           "--source=api",
		"run --engine gvisor --engi":   "",
		"run --file a --fi":            "--file",
		"run x.py -- --en":             "",
		"run ":                         "",
		"session exec lab -- --no-suc": "",
		"nonsense ":                    "",
		"session show ":                "lab sales",
		"session fork lab ":            "",
		"session rm lab sa":            "sales",
		"session exec l":               "lab",
		"run --session ":               "lab sales",
		"ask --session=s":              "--session=sales",
		"session show ses_":            "ses_1",
		"session show --server x ":     "",
		"show ":                        "1 2",
		"rerun 2":                      "2",
		"history rm cnv_":              "cnv_00000000000000000000000001 cnv_00000000000000000000000002",
		"export --server x ":           "",
	} {
		r := run(t, &scripted{}, func(dir string, p *cli.Program) {
			for _, name := range []string{"lab", "sales", "ses_1", ".gone-x"} {
				if err := os.MkdirAll(filepath.Join(dir, "s", name), 0o700); err != nil {
					t.Error(err)
				}
			}
			p.Config.Folders.Sessions = filepath.Join(dir, "s")
			remembered(t, "one", "two")(dir, p)
		}, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		var got []string
		for one := range strings.Lines(r.out) {
			word, _, _ := strings.Cut(one, "\t")
			got = append(got, word)
		}
		if words := strings.Join(got, " "); line != "nonsense " && words != want || r.code != 0 {
			t.Errorf("%q: %q, want %q (%d)", line, words, want, r.code)
		}
	}
}

// TestShellsComplete has each shell that is there read its script and complete a word.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"cove"} { // that prints what it was asked
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nshift\nprintf 'alpha\\tof %s\\nbeta:x\\t\\n' \"$*\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for shell, program := range map[string]string{
		"bash": `source "$1"; COMP_WORDS=(cove session a); COMP_CWORD=2; _cove; echo "${COMPREPLY[@]}"`,
		"zsh":  `autoload -Uz compinit; compinit -u -D; source "$1"; _describe() { print -r -- ${(P)2} }; words=(cove session a); CURRENT=3; _cove`,
		"fish": `source $argv[1]; complete -C "cove session a"`,
	} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not here, so its script was not run", shell)
			continue
		}
		script := filepath.Join(dir, "completion."+shell)
		if err := os.WriteFile(script, []byte(run(t, &scripted{}, nil, "completion", shell).out), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"-c", program, shell, script}
		if shell == "fish" {
			args = []string{"-c", program, script}
		}
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "alpha") {
			t.Errorf("%s: %v %s", shell, err, out)
		}
	}
	if r := run(t, &scripted{}, nil, "completion", "tcsh"); r.code != 125 || !strings.Contains(r.err, `"bash","zsh","fish","powershell"`) {
		t.Errorf("%d %s", r.code, r.err)
	}
}

func TestWhatOthersCallIt(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--version"}, {"-V"}, {"version"}} {
		if r := run(t, &scripted{}, func(_ string, p *cli.Program) { p.Build.Version = "1.2.3" }, args...); r.code != 0 || !strings.HasPrefix(r.out, "cove 1.2.3 ") {
			t.Errorf("%v: %d %s%s", args, r.code, r.out, r.err)
		}
	}
	for _, args := range [][]string{{"help", "session", "fork"}, {"session", "fork", "--help"}} {
		if r := run(t, &scripted{}, nil, args...); r.code != 0 || !strings.Contains(r.out, "Usage: cove session fork") {
			t.Errorf("%v: %d %s%s", args, r.code, r.out, r.err)
		}
	}
	whole := run(t, &scripted{}, nil, "help")
	if whole.out != run(t, &scripted{}, nil).out || strings.Index(whole.out, "Run code and ask:") > strings.Index(whole.out, "\nThis machine:") || strings.Count(whole.out, "\n  ") < 30 {
		t.Errorf("%s", whole.out)
	}
}

func TestManualPages(t *testing.T) {
	t.Parallel()
	r := run(t, &scripted{}, nil, "man", "$DIR/man")
	pages, err := filepath.Glob(filepath.Join(r.dir, "man", "*.1"))
	if r.code != 0 || err != nil || len(pages) < 60 {
		t.Fatalf("%d pages: %d %s", len(pages), r.code, r.err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{".TH ", ".SH NAME", ".SH SYNOPSIS"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s", page, part)
			}
		}
		if man, err := exec.LookPath("groff"); err == nil {
			if out, err := exec.Command(man, "-Kutf8", "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v %s", page, err, out)
			}
		}
	}
}
