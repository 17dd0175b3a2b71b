package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"cove/internal/llm/tool"
)

func TestRelay(t *testing.T) {
	t.Parallel()
	r, over := tool.NewRelay(), make(chan struct{})
	got := map[int]tool.Result{}
	answer := func(number int, result tool.Result) { got[number] = result }
	r.Call(t.Context(), []tool.Call{{Number: 1}, {Number: 2}}, answer)
	r.Call(t.Context(), []tool.Call{{Number: 3}}, answer)
	calls, err := r.Next(t.Context(), over)
	if err != nil || len(calls) != 3 {
		t.Fatalf("%v, %v", calls, err)
	}
	if !r.Answer(2, tool.Result{Value: json.RawMessage("7")}) || r.Answer(2, tool.Failed("late")) || r.Answer(9, tool.Result{}) || string(got[2].Value) != "7" {
		t.Errorf("answers: %v", got)
	}
	left, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := r.Next(left, over); !errors.Is(err, gone) {
		t.Errorf("a client that has left: %v", err)
	}
	close(over)
	if calls, err := r.Next(t.Context(), over); err != nil || len(calls) != 0 {
		t.Errorf("at the end: %v, %v", calls, err)
	}
}
