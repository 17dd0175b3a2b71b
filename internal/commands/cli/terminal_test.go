package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/commands/terminal/terminaltest"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/python/kernel"
)

const markdownRecording = `{"parts": [{"text": "Let me **see**."}, {"code": "6*7"}], "outcome": "ok"}
{"parts": [{"text": "## Sums\n\n| 地区 | Sum |\n|---|--:|\n| 华东 | 42 |\n\nIt is \u001b]0;owned\u0007 **42**, which is the answer to the question.\n"}]}`

// onTerminal asks on a terminal, and returns what is on it in the end.
func onTerminal(t *testing.T, columns int, s *scripted, setup func(dir string, p *cli.Program), args ...string) (*terminaltest.TTY, result) {
	t.Helper()
	y := terminaltest.New(t, columns, 24)
	r := run(t, s, func(dir string, p *cli.Program) {
		p.In, p.Out, p.Err = y.Device, y.Device, y.Device
		_ = os.WriteFile(filepath.Join(dir, "r"), nil, 0o600)
		p.NewModel = func(choose.Choice) (model.Model, error) {
			return model.NewReplay("replay", strings.NewReader(markdownRecording), 0)
		}
		if setup != nil {
			setup(dir, p)
		}
	}, args...)
	return y, r
}

func TestAnswersOnTerminals(t *testing.T) {
	t.Parallel()
	begins := []string{"Let me see.", "", "  6*7", "  │ 42", "", "Sums", "", "地区 │ Sum", "─────┼────", "华东 │  42", ""}
	for columns, ends := range map[int][]string{
		40:  {"It is  42, which is the answer to the", "question."},
		80:  {"It is  42, which is the answer to the question."},
		140: {"It is  42, which is the answer to the question."},
	} {
		s := &scripted{events: []kernel.Event{kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}, ok()}}
		y, r := onTerminal(t, columns, s, nil, "ask", "--model", "replay:$DIR/r", "what is it?")
		if r.code != 0 {
			t.Errorf("exit code %d", r.code)
		}
		want := strings.Join(append(begins[:len(begins):len(begins)], ends...), "\n") + "\n[TIME]\n|"
		took := regexp.MustCompile(`\n\[[^\]\n]* s\]\n`)
		y.Until(want, func() (string, bool) {
			got := took.ReplaceAllString(y.Face(), "\n[TIME]\n")
			return got, got == want
		})
	}
}

// TestAnswersWithoutColours: the signs of emphasis stay, and a dumb terminal gets the text.
func TestAnswersWithoutColours(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{"NO_COLOR=1": "## Sums\n\n地区 │ Sum\n", "TERM=dumb": "## Sums\n\n| 地区 | Sum |\n"} {
		s := &scripted{events: []kernel.Event{kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}, ok()}}
		y, _ := onTerminal(t, 80, s, func(_ string, p *cli.Program) {
			p.Getenv = func(name string) string {
				value, _ := strings.CutPrefix(variable, name+"=")
				return strings.TrimPrefix(value, variable)
			}
		}, "ask", "--model", "replay:$DIR/r", "what is it?")
		y.UntilShown(want)
		y.UntilShown("**42**")
	}
}

func TestWhatIsAwaited(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]string{40: "running  1 s", 80: "running  1 s", 140: "running  1 s"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			seen := make(chan struct{})
			s := &scripted{events: []kernel.Event{kernel.Stream{Name: "stdout", Data: []byte("a\n")}, kernel.Stream{Name: "stdout", Data: []byte("b\n")}, ok()}, pauses: map[int]chan struct{}{1: seen}}
			var y *terminaltest.TTY
			_, _ = onTerminal(t, columns, s, func(_ string, p *cli.Program) {
				y = terminaltest.New(t, columns, 24)
				p.In, p.Out, p.Err = y.Device, y.Device, y.Device
				go func() {
					y.UntilShown("a\n" + want)
					close(seen)
				}()
			}, "run", "-c", "x")
			y.Shows("a", "b", "|")
		})
	}
}

// TestCodeIsShownBeforeItRuns also wants Ctrl-C to stop the answer, and nothing to run before there is a word.
func TestCodeIsShownBeforeItRuns(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]struct{ code, ran int }{"what?\ry\r": {0, 1}, "\x03": {130, 0}} {
		s := &scripted{events: []kernel.Event{kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}, ok()}}
		var y *terminaltest.TTY
		_, r := onTerminal(t, 80, s, func(_ string, p *cli.Program) {
			y = terminaltest.New(t, 80, 24)
			p.In, p.Out, p.Err = y.Device, y.Device, y.Device
			go func() {
				y.UntilEnds("6*7\nRun this? [y]es, [n]o and why, [e]dit: |")
				y.Types(keys)
			}()
		}, "ask", "--ask", "--model", "replay:$DIR/r", "what is it?")
		if s.executed != want.ran || r.code != want.code && (want.code == 0 || r.code == 0) {
			t.Errorf("%q: exit code %d, %d executions", keys, r.code, s.executed)
		}
	}
	r := run(t, &scripted{}, nil, "ask", "--ask", "--model", "replay:$DIR/r", "what is it?")
	if r.code != 125 || !strings.Contains(r.err, "--ask needs a terminal") {
		t.Errorf("without a terminal: exit code %d, %s", r.code, r.err)
	}
}

func TestChatCommands(t *testing.T) {
	t.Parallel()
	s := &scripted{events: []kernel.Event{kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}, ok()}}
	var y *terminaltest.TTY
	_, r := onTerminal(t, 100, s, func(dir string, p *cli.Program) {
		y = terminaltest.New(t, 100, 60)
		p.In, p.Out, p.Err = y.Device, y.Device, y.Device
		p.NewModel = func(choose.Choice) (model.Model, error) {
			return model.NewReplay("replay", strings.NewReader("{\"parts\": [{\"text\": \"one\"}]}\n{\"parts\": [{\"text\": \"two\"}]}"), 0)
		}
		lay(t, dir, map[string]string{"a.csv": "1"})
		go func() {
			typed := false
			defer func() {
				if !typed { // the command ends with its terminal
					_ = y.Control.Close()
				}
			}()
			for _, step := range [][2]string{
				{"Ask replay something. /help says what else there is; Ctrl-D leaves.\n› |", "what is it?\r"}, {"one\n[", "/ret\t\r"}, {"two\n[", "/mode\t\t"}, {"/model    /models", "\x03"},
				{"^C\n› |", "/run 6*7\r"}, {"› /run 6*7\n42\n› |", "/file " + dir + "/a\t\r"}, {"1 file in the workspace", "/undo\r"}, {"cove: taken back: what is it?\n› |", "/undo\r"},
				{"cove: nothing was asked yet\n› |", "/nothing\r"}, {"there is no /nothing", "\x04"},
			} {
				y.UntilShown(step[0])
				y.Types(step[1])
			}
			typed = true
		}()
	}, "chat", "--model", "replay:$DIR/r")
	if r.code != 0 || s.executed != 1 || s.put["a.csv"] != "1" {
		t.Errorf("exit code %d, %d executions, %v", r.code, s.executed, s.put)
	}
}
