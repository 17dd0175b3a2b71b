package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// longestInput bounds a line that somebody gives to code, in bytes.
const longestInput = 64 << 10

// InputReply is what somebody says to code that asks for a line.
type InputReply struct {
	Text string // the line, without its end
	End  bool   // there is none: the code gets EOFError
}

// inputPatience is how long an execution still waits for people.
type inputPatience struct {
	mu      sync.Mutex
	spent   time.Duration
	expired bool // nobody answered a request in time
}

// errUnattended is why a request does not wait at all.
var errUnattended = errors.New("nobody is there to answer")

// left is how long one request may wait.
func (p *inputPatience) left(most time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expired {
		return 0
	}
	return min(most, kernel.InputPatience-p.spent)
}

// subtract takes the time that a request waited off the patience. err is how the wait ended.
func (p *inputPatience) subtract(waited time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += waited
	p.expired = p.expired || errors.Is(err, errSaidLate)
}

// waitForInput has an execution's requests for input wait for AnswerInput. After one that nobody answered in time, none waits any more.
func (m *Manager) waitForInput(e record.Execution) *kernel.Inputs {
	a, p := m.inputs.newWaits(e), &inputPatience{}
	return &kernel.Inputs{
		Asking: a.add,
		Answer: func(ctx context.Context, number int) (string, error) {
			patience := p.left(m.o.Limits.Approval)
			if patience <= 0 {
				if _, mine := a.claim(number); mine {
					a.remove(number)
					return "", errUnattended
				}
				patience = m.o.Limits.Approval // somebody has just answered
			}
			began := time.Now()
			text, err := a.await(ctx, number, patience)
			p.subtract(time.Since(began), err)
			return text, err
		},
	}
}

// errInputEnded is what code hears as the end of its input because somebody wants it to.
var errInputEnded = errors.New("somebody ended the input")

// AnswerInput gives code the line that it waits for, or the end of its input. Needs auth.SessionsExecute. Problems: execution_not_found, input_not_waiting, execution_elsewhere, invalid_request.
func (m *Manager) AnswerInput(ctx context.Context, who auth.Principal, execution string, number int, r InputReply) (record.Execution, error) {
	e, err := m.answerInput(ctx, who, execution, number, r)
	detail := fmt.Sprintf("request %d answered", number)
	if r.End {
		detail = fmt.Sprintf("request %d ended", number)
	}
	m.work.WriteAudit(ctx, who, "execution.input", execution, detail, err)
	return e, err
}

func (m *Manager) answerInput(ctx context.Context, who auth.Principal, execution string, number int, r InputReply) (record.Execution, error) {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return record.Execution{}, err
	}
	if err := r.check(); err != nil {
		return record.Execution{}, err
	}
	s := saidTo[string]{word: r.Text}
	if r.End {
		s.none = errInputEnded
	}
	late := problem.New(problem.InputNotWaiting, fmt.Sprintf("request %d of the execution for input waits for no answer", number)).
		WithHint("it was answered before, or the code has ended: look at the execution's events")
	return m.inputs.say(ctx, who, execution, number, s, late)
}

func (r InputReply) check() error {
	switch {
	case r.End && r.Text != "":
		return problem.New(problem.InvalidRequest, "the end of the input takes no text").WithHint("leave text out, or end")
	case len(r.Text) > longestInput:
		return problem.New(problem.InvalidRequest, "the answer has more than 64 KiB").WithHint("put much data into a file of the session, and have the code read that")
	case strings.ContainsAny(r.Text, "\r\n"):
		return problem.New(problem.InvalidRequest, "the answer has a line break, and input() reads one line").WithHint("answer each request with its own line")
	case !utf8.ValidString(r.Text):
		return problem.New(problem.InvalidRequest, "the answer is not UTF-8")
	}
	return nil
}
