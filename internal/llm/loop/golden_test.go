package loop_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestTracebacks holds what the model is told of the tracebacks in testdata, which Python printed.
func TestTracebacks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/traceback/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("tracebacks %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
			name, value, _ := strings.Cut(lines[len(lines)-1], ": ")
			m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("Ok.")}}
			s := &session{outcomes: map[string][]kernel.Event{"a": {
				kernel.Error{Name: name, Value: value, Traceback: lines},
				kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1},
			}}}
			ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
			golden(t, strings.TrimSuffix(file, ".txt")+".golden", m.lastTexts(1))
		})
	}
}

// TestListing holds how a question about files of many kinds comes to the model.
func TestListing(t *testing.T) {
	t.Parallel()
	many := map[string][]byte{}
	for n := range 230 {
		many[fmt.Sprintf("f%03d.txt", n)] = []byte("line\n")
	}
	for name, c := range map[string]struct {
		files map[string][]byte
		told  map[string]workspace.Told
	}{
		"told": {
			files: map[string][]byte{
				"a.csv": make([]byte, 9000), "dir/sub.txt": []byte("below\n"), "unknown.bin": make([]byte, 5), ".hidden": []byte("no\n"), "dir/.git/x": []byte("no\n"), "evil\nname.md": []byte("x\n"),
				"picture.png": bytes.Repeat([]byte("x"), 1_234_567), "ticks.md": []byte("..."),
			},
			told: map[string]workspace.Told{
				"a.csv":       {What: "1,200 rows × 2 columns, not UTF-8: read it with encoding=\"gb18030\"", Lines: []string{"地区,销售额", "华东,10"}},
				"dir/sub.txt": {What: "text, 1 line", Lines: []string{"below"}},
				"picture.png": {What: "PNG image, 640 × 480 pixels"},
				"ticks.md":    {What: "Markdown, 3 lines", Lines: []string{"```", "code", "```", "- other.csv (3 bytes)"}},
			},
		},
		"many":  {files: many},
		"empty": {files: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: tools(), script: []says{text("Ok.")}}
			got := ask(t, newConversation(m, &session{files: c.files, told: c.told}, loop.DefaultLimits()), "Which region grew fastest?")
			if len(got.events) == 0 || len(got.started) != 0 {
				t.Errorf("the look into files is not silent: %v", got.events)
			}
			golden(t, "testdata/listing/"+name+".golden", m.lastTexts(0))
		})
	}
}

// TestTellingMayFail has a session not be able to look at files, or tell of more than there is room for.
func TestTellingMayFail(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: tools(), script: []says{text("Ok."), text("Ok.")}}
	s := &session{files: map[string][]byte{"a.xlsx": []byte("xx")}, untold: problem.New(problem.SessionLost, "the sandbox is gone")}
	ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
	if got := m.lastTexts(0); got != "q\n\nFiles in the working directory:\n\n- a.xlsx (2 bytes), not looked at: the sandbox is gone" {
		t.Errorf("the model is told %q", got)
	}
	s = &session{files: map[string][]byte{}, told: map[string]workspace.Told{}}
	for n := range 20 {
		name := fmt.Sprintf("f%02d.txt", n)
		s.files[name], s.told[name] = []byte("x"), workspace.Told{What: "text", Lines: []string{strings.Repeat("x", 4000)}}
	}
	ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
	if got := m.lastTexts(1); len(got) > 32<<10 || !strings.Contains(got, "- f19.txt (1 byte)") || !strings.Contains(got, "- f00.txt (1 byte), text:") {
		t.Errorf("of 20 long files the model is told %d bytes, which end in %q", len(got), got[len(got)-100:])
	}
}

var _ model.Model = (*scripted)(nil)
