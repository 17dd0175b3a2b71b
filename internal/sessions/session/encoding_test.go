package session_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/testkit/testneeds"
)

// TestEncodings has texts in many languages and encodings looked at, and prints for how many the encoding is found. Where another answer is as likely, that is named, too.
func TestEncodings(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	var program strings.Builder
	for _, name := range []string{"preview.py", "encoding.py", "testdata/encodings/check.py"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		program.Write(text)
	}
	names, err := os.ReadFile("testdata/encodings/names.json")
	if err != nil {
		t.Fatal(err)
	}
	literals := make([]string, 2)
	for i, text := range []string{program.String(), string(names)} {
		literal, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		literals[i] = string(literal)
	}
	s := open(t, newGVisor(t), sandbox.Limits{})
	runCell(t, s, codeCheck("space = {}; exec("+literals[0]+", space); import json; space['show'](space['check'](json.loads("+literals[1]+")))", func(t *testing.T, r *run) {
		said := r.transcript()
		quoted, err := strconv.Unquote(strings.TrimPrefix(strings.SplitN(said, "\n", 2)[0], "stdout "))
		if err != nil {
			t.Fatalf("%v in %.2000s", err, said)
		}
		t.Log("\n" + quoted)
		seen := 0
		for line := range strings.Lines(quoted) {
			fields := strings.Fields(line)
			texts, _ := strconv.Atoi(fields[1])
			right, _ := strconv.ParseFloat(fields[3], 64)
			want := 97.0
			switch fields[0] {
			case "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp874", "cp850", "mac-roman":
				want = 90
			}
			if seen++; texts < 20 || right < want {
				t.Errorf("of %s, %.0f %% and 20 texts are wanted: %s", fields[0], want, line)
			}
		}
		if seen != 18 {
			t.Errorf("%d encodings were looked at", seen)
		}
	}))
}
