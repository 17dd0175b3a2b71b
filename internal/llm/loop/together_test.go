package loop_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// meeting is a session in which the code "meet" ends when two programs run it at the same time.
type meeting struct {
	*session
	mu    sync.Mutex
	met   chan struct{}
	alone bool // one waits
}

func (m *meeting) Execute(ctx context.Context, p loop.Program) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		m.mu.Lock()
		m.ran = append(m.ran, p)
		m.mu.Unlock()
		outcome := kernel.OutcomeOK
		if strings.HasPrefix(p.Code, "meet") {
			m.mu.Lock()
			if m.alone {
				close(m.met)
			}
			m.alone = !m.alone
			m.mu.Unlock()
			select {
			case <-m.met:
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-time.After(time.Minute):
				outcome = kernel.OutcomeTimeout
			}
		}
		if strings.HasSuffix(p.Code, "fail") {
			outcome = kernel.OutcomeError
		}
		if yield(kernel.Stream{Name: "stdout", Data: []byte(p.Kernel + " ran " + p.Code)}, nil) {
			yield(kernel.Done{Outcome: outcome}, nil)
		}
	}
}

func in(id, kernel, code string) model.ToolCall {
	return model.ToolCall{ID: id, Name: "python", Arguments: fmt.Sprintf(`{"code":%q,"kernel":%q}`, code, kernel)}
}

func TestCodeRunsTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls  []model.ToolCall
		want   string // what the model hears, in order
		told   string
		beside int
	}{
		"two kernels": {[]model.ToolCall{in("1", "", "meet"), in("2", "b", "meet")}, " ran meet | b ran meet", "Start1 Stream1 Done1 Start2 Stream2 Done2", 2},
		"a failure":   {[]model.ToolCall{in("1", "a", "meet fail"), in("2", "b", "meet"), in("3", "a", "more")}, "a ran meet fail | b ran meet | Not run because the previous one failed.", "Start1 Stream1 Done1 Start2 Stream2 Done2", 2},
		"one kernel":  {[]model.ToolCall{in("1", "a", "x"), in("2", "a", "y")}, "a ran x | a ran y", "Start1 Stream1 Done1 Start2 Stream2 Done2", 0},
		"then alone":  {[]model.ToolCall{in("1", "", "meet"), in("2", "a", "meet"), in("3", "main", "x")}, " ran meet | a ran meet |  ran x", "Start1 Stream1 Done1 Start2 Stream2 Done2 Start3 Stream3 Done3", 2},
		"a bad name":  {[]model.ToolCall{in("1", "", "x"), in("2", "../b", "y")}, " ran x | Nothing was run: the name of a kernel has letters, digits, - and _, at most 32.", "Start1 Stream1 Done1", 0},
		"too many":    {[]model.ToolCall{in("1", "a", "meet"), in("2", "b", "meet"), in("3", "c", "y")}, `a ran meet | b ran meet | Nothing was run: there are 2 kernels besides the main one already, which is the most; use one of these: ["a" "b"].`, "Start1 Stream1 Done1 Start2 Stream2 Done2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &meeting{session: &session{}, met: make(chan struct{})}
			m := &scripted{t: t, can: tools(), script: []says{rawCalls(c.calls...), text("Done.")}}
			h := run(t, t.Context(), m, s, within(loop.Limits{}), loop.Turn{Python: true, Kernels: 2, Input: user("go")})
			if h.err != nil {
				t.Fatal(h.err)
			}
			var heard, told []string
			for _, message := range m.requests[1].Messages {
				for _, c := range message.Content {
					if r, ok := c.(model.ToolResult); ok {
						heard = append(heard, strings.SplitN(r.Text, "\n", 2)[0])
					}
				}
			}
			for _, e := range h.events {
				switch e := e.(type) {
				case loop.Start:
					told = append(told, fmt.Sprint("Start", e.Step))
				case loop.Output:
					told = append(told, fmt.Sprint(strings.TrimPrefix(fmt.Sprintf("%T", e.Event), "kernel."), e.Step))
				}
			}
			if got := strings.Join(heard, " | "); got != c.want {
				t.Errorf("the model heard\n%s, want\n%s", got, c.want)
			}
			if got := strings.Join(told, " "); got != c.told {
				t.Errorf("told %s", got)
			}
			beside := 0
			for _, p := range s.ran {
				if p.Beside {
					beside++
				}
			}
			if beside != c.beside || !strings.Contains(string(m.requests[0].Tools[0].Schema), `"kernel"`) {
				t.Errorf("%d ran beside others; the tool is %s", beside, m.requests[0].Tools[0].Schema)
			}
		})
	}
}

// A turn that is stopped while several programs run ends all of them.
func TestWhatRunsTogetherEndsTogether(t *testing.T) {
	t.Parallel()
	s := &meeting{session: &session{}, met: make(chan struct{})} // to which nobody else comes
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := &scripted{t: t, can: tools(), script: []says{rawCalls(in("1", "", "x"), in("2", "b", "meet"))}}
	for event, err := range loop.Run(ctx, m, s, within(loop.Limits{}), loop.Turn{Python: true, Kernels: 1, Input: user("go")}) {
		if start, ok := event.(loop.Start); ok && start.Step == 2 {
			cancel()
		}
		if err != nil {
			return
		}
	}
	t.Error("the turn ended without an error")
}
