package names_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cove/internal/python/deps/names"
)

func data(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 10 {
		t.Fatalf("%s has only %d lines", name, len(lines))
	}
	return lines
}

func written(t *testing.T, name string) [][]string {
	t.Helper()
	var out [][]string
	for _, line := range data(t, filepath.Join("data", name)) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.Split(line, "\t"))
		}
	}
	return out
}

// A search halves these texts, so one line out of place hides others.
func TestTheTablesAreSortedAndSmall(t *testing.T) {
	t.Parallel()
	total := 0
	for name, least := range map[string]int{"table.txt": 12000, "projects.txt": 15000, "stdlib.txt": 300} {
		lines := data(t, filepath.Join("data", name))
		if len(lines) < least {
			t.Errorf("%s has only %d lines", name, len(lines))
		}
		keys := make([]string, len(lines))
		for i, line := range lines {
			total += len(line) + 1
			key, rest, ok := strings.Cut(line, "\t")
			if keys[i] = key; !ok || key == "" || rest == "" {
				t.Errorf("%s, line %d: %q is no pair", name, i+1, line)
			}
		}
		if !slices.IsSorted(keys) {
			t.Errorf("%s is not sorted", name)
		}
		if compacted := slices.Compact(slices.Clone(keys)); name != "projects.txt" && len(compacted) != len(keys) {
			t.Errorf("%s has a key twice", name)
		}
	}
	if total > 1<<20 {
		t.Errorf("the tables have %d bytes, more than 1 MiB", total)
	}
}

func TestEveryProjectHasItsRank(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for _, fields := range written(t, "projects.txt") {
		name := fields[len(fields)-1]
		if len(fields) == 2 {
			name = fields[0]
		}
		rank := names.Rank(name)
		if fmt.Sprint(rank) != fields[1] || seen[rank] {
			t.Fatalf("%s has rank %d, and its line says %s", name, rank, fields[1])
		}
		seen[rank] = true
		if popular, ok := names.TypoOf(name); ok {
			t.Errorf("%s, a popular project, is taken for a slip of %s", name, popular)
		}
	}
}

func TestEveryRowOfTheTableIsFound(t *testing.T) {
	t.Parallel()
	normalized := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	refused := 0
	for _, fields := range written(t, "table.txt") {
		got := names.Resolve(fields[0], "3.13")
		switch got.Reason {
		case names.ByTable, names.ByOverride, names.ByStdlib:
		case names.ByNever:
			refused++
		case names.ByNothing:
			if got.Hint == "" {
				t.Errorf("%s is in the table, and there is neither an answer nor a hint", fields[0])
			}
		default:
			t.Errorf("%s is in the table, and the answer is %s by %s", fields[0], got.Status, got.Reason)
		}
		for _, c := range got.Candidates {
			if !normalized.MatchString(c.Distribution) || got.Reason == names.ByTable && c.Rank == 0 {
				t.Errorf("%s: the candidate %+v is no popular project", fields[0], c)
			}
		}
		if popular, ok := names.TypoOf(got.Distribution); got.Reason == names.ByTable && ok {
			t.Errorf("%s resolves to %s, which is taken for a slip of %s", fields[0], got.Distribution, popular)
		}
	}
	if refused > 300 {
		t.Errorf("%d rows of the table are never reached", refused)
	}
}

func TestWhatIsKeptByHandIsWellFormed(t *testing.T) {
	t.Parallel()
	dist := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*(\[[a-z0-9,-]+\])?(<[0-9.]+)?$`)
	module := regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
	seen := map[string]bool{}
	for _, fields := range written(t, "overrides.txt") {
		if len(fields) < 2 || len(fields) > 3 || !module.MatchString(fields[0]) || seen[fields[0]] {
			t.Fatalf("overrides.txt: %q is twice or no override", fields)
		}
		seen[fields[0]] = true
		for word := range strings.FieldsSeq(fields[1]) {
			if word == "-" && len(fields) == 3 {
				continue
			}
			if !dist.MatchString(word) {
				t.Errorf("overrides.txt: %s: %q is no normalized name, or nothing without a remark", fields[0], word)
			}
		}
	}
	if len(seen) < 200 {
		t.Errorf("only %d overrides", len(seen))
	}
	group := map[string]bool{}
	for _, fields := range written(t, "interchangeable.txt") {
		members := strings.Fields(fields[0])
		for _, m := range members {
			if !dist.MatchString(m) || group[m] || len(members) < 2 {
				t.Errorf("interchangeable.txt: %q of %q is in two groups or alone", m, fields[0])
			}
			group[m] = true
		}
	}
	for _, fields := range written(t, "families.txt") {
		if len(fields) < 2 || !module.MatchString(fields[0]) || !dist.MatchString(fields[1]) || len(fields) == 3 && fields[2] != "owned" {
			t.Errorf("families.txt: %q is no family", fields)
		}
	}
	for _, fields := range written(t, "never.txt") {
		if hint, ok := strings.CutPrefix(fields[0], "= "); ok && hint != "" {
			continue
		}
		for name := range strings.FieldsSeq(fields[0]) {
			if !module.MatchString(name) {
				t.Errorf("never.txt: %q is no module", name)
			}
		}
	}
}

// The sample was not used for the table. A table that is worse than this must not be committed.
func TestTheTableIsStillRight(t *testing.T) {
	t.Parallel()
	var total, right, wrong int
	var misses []string
	for _, line := range data(t, filepath.Join("testdata", "debian.tsv")) {
		dist, module, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		total++
		got := names.Resolve(module, "3.13")
		switch {
		case got.Status == names.Found && (got.Distribution == dist || slices.Contains(names.Interchangeable(dist), got.Distribution)):
			right++
			continue
		case got.Status == names.Found:
			wrong++
		}
		misses = append(misses, fmt.Sprintf("%s: import %s is %s %s", dist, module, got.Status, got.Distribution))
	}
	if total < 400 || right*1000 < total*985 || wrong*1000 > total*6 {
		t.Errorf("%d of %d right, %d wrong; want at least 98.5 %% and at most 0.6 %%\n%s", right, total, wrong, strings.Join(misses, "\n"))
	}
}
