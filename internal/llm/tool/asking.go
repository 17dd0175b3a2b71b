package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cove/internal/core/problem"
)

// Word is what somebody says about a call that waits for it.
type Word struct {
	Run  bool
	Note string // for the code, when the call is not made
}

// MostAsked bounds the arguments of a call that waits for somebody's word, in bytes: who is asked has to be able to read them.
const MostAsked = 32 << 10

// Asks says whether calls of a tool wait for somebody's word.
func (s *Set) Asks(name string) bool {
	if s == nil {
		return false
	}
	n, ok := s.named[name]
	return ok && s.tools[n].Asks
}

// AsksAny says whether calls of any of the tools do.
func (s *Set) AsksAny() bool {
	return s != nil && slices.ContainsFunc(s.tools, func(t offered) bool { return t.Asks })
}

// Matches says whether a name is the one of a pattern, or begins as a pattern does that ends with a *.
func Matches(pattern, name string) bool {
	prefix, ok := strings.CutSuffix(pattern, "*")
	return pattern == name || ok && strings.HasPrefix(name, prefix)
}

// AskBefore returns the tools with calls of those that wait for somebody's word whose names one of the patterns matches. Problems: tool_invalid, where a pattern matches none: who wrote it relies on being asked.
func AskBefore(patterns []string, tools []Tool) ([]Tool, error) {
	out := slices.Clone(tools)
	for _, pattern := range patterns {
		found := false
		for n := range out {
			if Matches(pattern, out[n].Name) {
				out[n].Asks, found = true, true
			}
		}
		if !found {
			return nil, problem.New(problem.ToolInvalid, fmt.Sprintf("no tool of the tool servers is %.80q, before which somebody is to be asked", pattern)).
				WithHint("name a tool as SERVER.TOOL, or several as SERVER.*")
		}
	}
	return out, nil
}

// Refused is the result of a call that somebody did not want to be made.
func Refused(w Word) Result {
	if w.Note != "" {
		return Failed("it was not called: the user refused it, and says: " + w.Note)
	}
	return Failed("it was not called: the user refused it")
}

// Asking has the calls of those tools of a set that ask for it wait for somebody's word, each by itself. An error of ask is why there is none, in words for the code.
func Asking(set *Set, ask func(context.Context, Call) (Word, error), perform Calls) Calls {
	if !set.AsksAny() {
		return perform
	}
	return func(ctx context.Context, calls []Call, answer func(int, Result)) {
		var free []Call
		var all sync.WaitGroup
		for _, c := range calls {
			if !set.Asks(c.Name) {
				free = append(free, c)
				continue
			}
			all.Go(func() {
				if w, err := ask(ctx, c); err != nil {
					answer(c.Number, Failed("it was not called: "+err.Error()))
				} else if !w.Run {
					answer(c.Number, Refused(w))
				} else {
					perform(ctx, []Call{c}, answer)
				}
			})
		}
		if len(free) > 0 {
			perform(ctx, free, answer)
		}
		all.Wait()
	}
}
