package interpreter_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/model"
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
			ask(t, newConversation(m, s, interpreter.DefaultLimits()), "q")
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
	described := func(tables ...any) []byte {
		var b bytes.Buffer
		for _, v := range tables {
			line, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(line, '\n'))
		}
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		files     map[string][]byte
		described []byte
	}{
		"text": {files: map[string][]byte{
			"a.csv":         []byte("month,amount\n2025-01,10\n2025-02,12\n2025-03,9\n2025-04,1\n2025-05,2\n2025-06,3\n2025-07,4\n"),
			"b.tsv":         []byte("x\ty\r\n1\t2\r\n"),
			"bom.csv":       []byte("\xEF\xBB\xBF地区,销售额\n华东,10\n"),
			"gbk.csv":       []byte("\xb5\xd8\xc7\xf8,\xcf\xfa\xca\xdb\n1,2\n"),
			"utf16.txt":     []byte("\xFF\xFEa\x00"),
			"latin.txt":     []byte("caf\xe9\n"),
			"binary.txt":    []byte("a\x00b"),
			"long.json":     []byte(`{"a":"` + strings.Repeat("中", 5000) + `"}`),
			"rows.jsonl":    []byte(strings.Repeat("{\"a\":1}\n", 2000)),
			"empty.csv":     nil,
			"ticks.md":      []byte("```\ncode\n```\n"),
			"picture.png":   bytes.Repeat([]byte("x"), 1_234_567),
			"dir/sub.txt":   []byte("below\n"),
			".hidden":       []byte("no\n"),
			"dir/.git/x":    []byte("no\n"),
			"evil\nname.md": []byte("x\n"),
		}},
		"many":  {files: many},
		"empty": {files: nil},
		"tables": {
			files: map[string][]byte{"book.xlsx": make([]byte, 9000), "t.parquet": make([]byte, 100), "bad.xls": make([]byte, 5), "gone.xlsx": make([]byte, 5)},
			described: described(
				map[string]any{"path": "book.xlsx", "sheets": []any{
					map[string]any{"name": "Sales", "rows": 12000, "columns": []any{"month", "金额"}, "types": []any{"datetime", "float"}, "head": [][]any{{"2025-01-01", "1.5"}, {"x\ny", "2"}}},
					map[string]any{"name": "Notes", "rows": -1, "columns": []any{}},
				}},
				map[string]any{"path": "t.parquet", "sheets": []any{map[string]any{"rows": 3, "columns": []any{"a"}, "types": []any{"int64"}, "head": [][]any{{"1"}}}}},
				map[string]any{"path": "bad.xls", "error": "XLRDError: not a\nworkbook"},
			),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: tools(), script: []says{text("Ok.")}}
			s := &describing{session: &session{files: c.files}, printed: c.described}
			got := ask(t, newConversation(m, s, interpreter.DefaultLimits()), "Which region grew fastest?")
			if len(got.events) == 0 || len(got.started) != 0 {
				t.Errorf("the look into tables is not silent: %v", got.events)
			}
			golden(t, "testdata/listing/"+name+".golden", m.lastTexts(0))
		})
	}
}

func TestDescribeMayFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []kernel.Event
		lost   string // what the user and the model are told
	}{
		"garbage":     {[]kernel.Event{stdout("{]\nnull\n7\n{\"sheets\":3}\n"), kernel.Done{}}, ""},
		"died":        {[]kernel.Event{kernel.Done{Outcome: kernel.OutcomeDied, Lost: kernel.LostKernel}}, "variables and imports are lost"},
		"died whole":  {[]kernel.Event{kernel.Done{Outcome: kernel.OutcomeSandboxDied, Lost: kernel.LostSession}}, "everything since the last save is lost"},
		"rolled back": {[]kernel.Event{kernel.Rollback{Reason: "why"}, kernel.Done{}}, "started anew (why)"},
		"no end":      {nil, ""},
		"flooding":    {[]kernel.Event{stdout(strings.Repeat("x", 1<<20)), stdout("y"), kernel.Done{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: tools(), script: []says{text("Ok.")}}
			s := &describing{session: &session{files: map[string][]byte{"a.xlsx": []byte("xx")}}, events: c.events}
			got := ask(t, newConversation(m, s, interpreter.DefaultLimits()), "q")
			if got.answer == nil || got.answer.Text != "Ok." {
				t.Errorf("error %v", got.err)
			}
			told, ok := strings.CutSuffix(m.lastTexts(0), "q\n\nFiles in the working directory:\n\n- a.xlsx (2 bytes)")
			if !ok || !strings.Contains(told, c.lost) || (told == "") != (c.lost == "") {
				t.Errorf("the model is told %q", m.lastTexts(0))
			}
			if said := fmt.Sprint(got.events); c.lost != "" && !strings.Contains(said, c.lost) {
				t.Errorf("the user is told %s, not %q", said, c.lost)
			}
		})
	}
}

var _ model.Model = (*scripted)(nil)
