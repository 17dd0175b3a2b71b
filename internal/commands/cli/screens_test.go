package cli_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"cove/internal/commands/cli"
	"cove/internal/commands/terminal/terminaltest"
	"cove/internal/core/lang"
	"cove/internal/python/kernel"
)

// spokenVariable has this program speak another language than English: a process has one.
const spokenVariable = "COVE_TEST_SPOKEN"

var updateScreens = flag.Bool("update", false, "write testdata/screens")

func TestMain(m *testing.M) {
	flag.Parse()
	lang.Use(lang.Language(os.Getenv(spokenVariable)))
	os.Exit(m.Run())
}

// screens are what a person sees of some commands.
var screens = []struct {
	name string
	args []string
}{
	{"help", []string{"--help"}},
	{"ask", []string{"ask", "--help"}},
	{"session", []string{"session", "--help"}},
	{"error", []string{"history", "--limit", "0"}},
	{"usage", []string{"run", "--tiemout=1s"}},
	{"table", []string{"session", "ls"}},
	{"json", []string{"history", "--limit", "0", "--json"}},
}

// TestScreens compares what terminals of several widths show with testdata/screens (go test ./internal/commands/cli -run Screens -update writes that).
func TestScreens(t *testing.T) {
	t.Parallel()
	language := os.Getenv(spokenVariable)
	if language == "" {
		language = string(lang.English)
	}
	for _, columns := range []int{40, 80, 140} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.must(t, "run", "--session", "lab", "-c", "1")
			l.must(t, "run", "--session", "sales-2025", "-c", "1")
			var b strings.Builder
			for _, s := range screens {
				fmt.Fprintf(&b, "=== %s\n%s\n", s.name, screen(t, l, columns, s.args...))
			}
			fmt.Fprintf(&b, "=== chat\n%s\n=== doctor\n%s\n", greeting(t, columns), cli.DoctorScreen())
			golden(t, fmt.Sprintf("%s-%d.txt", language, columns), b.String())
		})
	}
}

// TestConfigFilesSpeak wants all comments of a config file in the language of the process.
func TestConfigFilesSpeak(t *testing.T) {
	t.Parallel()
	chinese, r := os.Getenv(spokenVariable) != "", run(t, &scripted{}, nil, "config")
	comments := 0
	for line := range strings.Lines(r.out) {
		text, comment := strings.CutPrefix(line, "# ")
		if !comment {
			continue
		}
		if comments++; strings.ContainsFunc(text, func(c rune) bool { return unicode.Is(unicode.Han, c) }) != chinese {
			t.Errorf("it says %q", text)
		}
	}
	if comments < 200 {
		t.Errorf("there are %d comments, exit code %d", comments, r.code)
	}
}

// TestScreensInChinese runs TestScreens and TestConfigFilesSpeak in Chinese.
func TestScreensInChinese(t *testing.T) {
	t.Parallel()
	if os.Getenv(spokenVariable) != "" {
		return // is it already
	}
	args := []string{"-test.run=^(TestScreens|TestConfigFilesSpeak)$", "-test.v"}
	if *updateScreens {
		args = append(args, "-update")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), spokenVariable+"="+string(lang.Chinese))
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestScreens")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// moments and sizes differ from run to run.
var (
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`)
	ids     = regexp.MustCompile(`ses_[a-z0-9]+`)
)

// screen is what a terminal shows when a command is over.
func screen(t *testing.T, l *lab, columns int, args ...string) string {
	t.Helper()
	const end = "<the end>"
	y := terminaltest.New(t, columns, 400)
	r := l.do(t, func(p *cli.Program) {
		p.Out, p.Err = y.Device, y.Device
		p.Config.Folders.Out = "/DIR/out" // help names it, and breaks its lines by its length
	}, args...)
	fmt.Fprint(y.Device, end)
	shown := ""
	y.Until(end, func() (string, bool) { shown = y.Face(); return shown, strings.Contains(shown, end) })
	shown, _, _ = strings.Cut(shown, end)
	shown = strings.ReplaceAll(strings.ReplaceAll(shown, r.dir, "DIR"), l.data, "DATA")
	return ids.ReplaceAllString(moments.ReplaceAllString(shown, "2026-01-02 03:04"), "ses_1")
}

// greeting is how a conversation begins, and what may be entered in it.
func greeting(t *testing.T, columns int) string {
	t.Helper()
	shown := ""
	onTerminal(t, columns, &scripted{events: []kernel.Event{ok()}}, func(_ string, p *cli.Program) {
		y := terminaltest.New(t, columns, 60)
		p.In, p.Out, p.Err = y.Device, y.Device, y.Device
		go func() {
			y.UntilEnds("› |")
			y.Types("/help\r")
			y.Until("the prompt again", func() (string, bool) {
				shown = y.Face()
				return shown, strings.HasSuffix(shown, "\n› |") && strings.Contains(shown, "/quit")
			})
			y.Types("\x04")
		}()
	}, "chat", "--model", "replay:$DIR/r")
	return shown
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "screens", name)
	if *updateScreens {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nand should be\n%s", file, got, want)
	}
}
