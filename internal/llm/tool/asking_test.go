package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
)

func TestCallsWaitForAWord(t *testing.T) {
	t.Parallel()
	all, err := tool.AskBefore([]string{"git.push", "db.*"}, []tool.Tool{{Name: "git.log"}, {Name: "git.push"}, {Name: "db.drop"}, {Name: "db.read"}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(all)
	if err != nil {
		t.Fatal(err)
	}
	if !set.AsksAny() || set.Asks("git.log") || !set.Asks("git.push") || !set.Asks("db.read") || set.Asks("nothing") {
		t.Error("others are asked about")
	}
	words := map[string]func() (tool.Word, error){
		"git.push": func() (tool.Word, error) { return tool.Word{Run: true}, nil },
		"db.drop":  func() (tool.Word, error) { return tool.Word{Note: "not this table"}, nil },
		"db.read":  func() (tool.Word, error) { return tool.Word{}, errors.New("nobody is there") },
	}
	var mu sync.Mutex
	made := map[string]bool{}
	calls := tool.Asking(set, func(_ context.Context, c tool.Call) (tool.Word, error) { return words[c.Name]() },
		tool.Each(func(_ context.Context, c tool.Call) tool.Result {
			mu.Lock()
			defer mu.Unlock()
			made[c.Name] = true
			return tool.Result{Value: json.RawMessage("1")}
		}))
	got := map[int]tool.Result{}
	calls(t.Context(), []tool.Call{{Number: 1, Name: "git.log"}, {Number: 2, Name: "git.push"}, {Number: 3, Name: "db.drop"}, {Number: 4, Name: "db.read"}}, func(n int, r tool.Result) {
		mu.Lock()
		defer mu.Unlock()
		got[n] = r
	})
	want := map[int]tool.Result{1: {Value: []byte("1")}, 2: {Value: []byte("1")},
		3: {Err: "it was not called: the user refused it, and says: not this table"}, 4: {Err: "it was not called: nobody is there"}}
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(made) != "map[git.log:true git.push:true]" {
		t.Errorf("answers %v, made %v", got, made)
	}
	if _, err := tool.AskBefore([]string{"git.pusch"}, all); !problem.Has(err, problem.ToolInvalid) {
		t.Errorf("a name that no tool has: %v", err)
	}
}
