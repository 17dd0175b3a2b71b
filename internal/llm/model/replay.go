package model

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
)

// Replay is a model that says again what a recording holds. It compares what really became of each call with what
// became of it in the recording, and refuses to go on when the two differ in kind: a replayed answer must not tell of
// a success that did not happen. It serves one conversation.
type Replay struct {
	name  string
	delay time.Duration

	mu    sync.Mutex
	turns []recordedTurn
	next  int
	calls int
}

// OpenReplay reads the recording at path. Delay is waited between the small pieces of each answer, so that it can be
// watched; 0 waits not at all.
func OpenReplay(path string, delay time.Duration) (*Replay, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, problem.New(problem.ReplayNotFound, fmt.Sprintf("the recording %s cannot be read", path)).
			WithHint("give the path of a recording: --model replay:FILE").WithCause(err)
	}
	defer func() { _ = f.Close() }()
	return NewReplay("replay:"+path, f, delay)
}

// NewReplay reads a recording from r; name is what Name returns.
func NewReplay(name string, r io.Reader, delay time.Duration) (*Replay, error) {
	turns, err := readRecording(r)
	if err != nil {
		return nil, problem.New(problem.ReplayInvalid, fmt.Sprintf("%s is not a recording: %v", name, err)).
			WithHint("a recording is a sequence of JSON objects such as {\"parts\": [{\"text\": \"hello\"}]}")
	}
	return &Replay{name: name, delay: delay, turns: turns}, nil
}

// Name is "replay:" and the file.
func (r *Replay) Name() string { return r.name }

// Capabilities say that calls are recorded; pictures are of no use to a recording.
func (r *Replay) Capabilities() Capabilities { return Capabilities{Tools: true} }

// Finished returns a problem when turns of the recording have not been asked for.
func (r *Replay) Finished() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := len(r.turns) - r.next; left > 0 {
		return mismatch(fmt.Sprintf("%d of %d recorded turns were never asked for", left, len(r.turns)))
	}
	return nil
}

// Stream says the next turn.
func (r *Replay) Stream(ctx context.Context, req Request) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		if ctx.Err() != nil {
			yield(nil, given(ctx))
			return
		}
		turn, calls, err := r.take(req)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, part := range turn.pieces(calls) {
			if err := r.wait(ctx); err != nil {
				yield(nil, given(ctx))
				return
			}
			if !yield(part, nil) {
				return
			}
		}
		yield(turn.finish(calls), nil)
	}
}

func (r *Replay) wait(ctx context.Context) error {
	if r.delay <= 0 {
		return ctx.Err()
	}
	return sleep(ctx, r.delay)
}

// take moves on to the next turn and makes its calls.
func (r *Replay) take(req Request) (recordedTurn, []ToolCall, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next > 0 {
		if err := r.turns[r.next-1].compare(r.next, req); err != nil {
			return recordedTurn{}, nil, err
		}
	}
	if r.next >= len(r.turns) {
		return recordedTurn{}, nil, mismatch(fmt.Sprintf("the recording has %d turns, but another one was asked for", len(r.turns)))
	}
	turn := r.turns[r.next]
	r.next++
	var calls []ToolCall
	for _, p := range turn.Parts {
		if call, ok := p.toolCall(fmt.Sprintf("call_%d", r.calls+1)); ok {
			r.calls++
			calls = append(calls, call)
		}
	}
	return turn, calls, nil
}

// compare checks that turn n went on as it did when it was recorded.
func (t recordedTurn) compare(n int, req Request) error {
	result, ok := lastResult(req)
	switch {
	case t.calls() && !ok:
		return mismatch(fmt.Sprintf("turn %d called a tool, but no result followed", n))
	case !t.calls() && ok:
		return mismatch(fmt.Sprintf("turn %d called no tool, but a result followed", n))
	case ok && outcomeOf(result.IsError) != t.Outcome:
		return mismatch(fmt.Sprintf("the code of turn %d ended with %s, and with %s when it was recorded",
			n, spoken(outcomeOf(result.IsError)), spoken(t.Outcome)))
	}
	return nil
}

func spoken(outcome string) string {
	if outcome == outcomeError {
		return "an error"
	}
	return "success"
}

func mismatch(message string) *problem.Error {
	return problem.New(problem.ReplayMismatch, "the replay does not match what happened: "+message).
		WithHint("use a real model with --model, or record the conversation again")
}

// pieces cuts the turn into parts as small as those of a live model.
func (t recordedTurn) pieces(calls []ToolCall) []Part {
	var out []Part
	at := 0
	for _, p := range t.Parts {
		switch {
		case p.Text != nil:
			for _, word := range words(string(*p.Text)) {
				out = append(out, TextDelta{Text: word})
			}
		case p.Reasoning != nil:
			for _, word := range words(string(*p.Reasoning)) {
				out = append(out, ReasoningDelta{Text: word})
			}
		default:
			call := calls[at]
			out = append(out, CallDelta{Index: at, ID: call.ID, Name: call.Name})
			for _, piece := range cut(call.Arguments, 20) {
				out = append(out, CallDelta{Index: at, Arguments: piece})
			}
			at++
		}
	}
	return out
}

func (t recordedTurn) finish(calls []ToolCall) Finish {
	switch {
	case t.Finish != "":
		return Finish{Reason: t.Finish}
	case len(calls) > 0:
		return Finish{Reason: FinishCalls, Calls: calls}
	}
	return Finish{Reason: FinishStop}
}

// words cuts after each space and line break, and text that has none every few characters.
func words(text string) []string {
	var out []string
	for len(text) > 0 {
		end := strings.IndexAny(text, " \n") + 1
		if end == 0 {
			end = len(text)
		}
		out = append(out, cut(text[:end], 12)...)
		text = text[end:]
	}
	return out
}

func cut(text string, size int) []string {
	runes := []rune(text)
	var out []string
	for len(runes) > 0 {
		n := min(size, len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}
