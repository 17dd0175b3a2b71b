package main

import (
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestCollect wants what passed to count with what it says that an engine gives, and what failed without.
func TestCollect(t *testing.T) {
	t.Parallel()
	const events = `{"Action":"run","Test":"TestContract/has_a_root"}
{"Action":"output","Test":"TestContract/has_a_root","Output":"    root.go:50: gives: a root of a session: yes\n"}
{"Action":"pass","Test":"TestContract/has_a_root"}
{"Action":"output","Test":"TestContract/has_volumes","Output":"    volume.go:50: gives: volumes: yes\n"}
{"Action":"fail","Test":"TestContract/has_volumes"}
{"Action":"skip","Test":"TestContract/outlives_a_full_disk"}
{"Action":"run","Test":"TestContract/keeps_files"}
{"Action":"fail","Test":"TestContract"}
not JSON
`
	count, gives, err := Collect(strings.NewReader(events), regexp.MustCompile(`^TestContract/(.*)$`), io.Discard)
	want := Count{Passed: 1, Failed: []string{"has volumes", "keeps files"}, LeftOut: 1}
	if err != nil || !reflect.DeepEqual(count, want) || !reflect.DeepEqual(gives, map[string]string{"a root of a session": "yes"}) {
		t.Errorf("got %+v, %v, %v", count, gives, err)
	}
	if got := count.String(); got != "1 of 3; not: has volumes, keeps files; 1 left out" {
		t.Errorf("it is told as %q", got)
	}
}

// TestThePageHasTheTable wants the table of docs/engines.md to be what was recorded, and not what somebody wrote.
func TestThePageHasTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../" + pagePath)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := recorded("../../../" + recordPath)
	if err != nil {
		t.Fatal(err)
	}
	made, err := Place(string(page), columns)
	if err != nil {
		t.Fatal(err)
	}
	if made != string(page) {
		t.Errorf("%s is not what %s has; `go run ./internal/packaging/enginetable` writes it anew", pagePath, recordPath)
	}
	if len(columns) < 7 {
		t.Errorf("%d columns are left of seven", len(columns))
	}
}
