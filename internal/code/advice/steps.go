package advice

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cove/internal/core/problem"
)

// passedOver are rules that say nothing of one program among several: names and imports may be those of the programs before it, or for those after it.
var passedOver = []string{"F401", "F811", "F821", "F841"}

// mostOfStep bounds the findings of one program of a turn: each turn's events keep them.
const mostOfStep = 100

// CheckLast looks at the last of programs that one interpreter runs one after the other, such as the steps of a turn; names that those before it make count as there.
// Where all are too much, the first are left out. Errors are those of Check.
func (c *Checker) CheckLast(ctx context.Context, name string, programs []string, o Options) (Report, error) {
	programs = recent(programs)
	src, err := Cells(name, programs)
	if err != nil {
		return Report{File: name, Findings: []Finding{}}, err
	}
	o.Ignore, o.cell = slices.Concat(passedOver, o.Ignore), len(programs)
	r, err := c.Check(ctx, src, o)
	for i := range r.Findings {
		r.Findings[i].Cell = 0 // of the program itself
	}
	return r, err
}

// Steps looks at programs that one interpreter runs one after the other, as a model's in one turn. It is used by one goroutine at a time.
type Steps struct {
	// Open makes a session to look in, and returns what closes it. It is called when there is something to look at.
	Open    func(ctx context.Context) (Session, func(), error)
	Timeout time.Duration // as Checker's

	programs []string // the newest last
	session  Session
	end      func()
}

// Look looks at the next program. What could not be done is a note of the report.
func (s *Steps) Look(ctx context.Context, program string) Report {
	s.programs = recent(append(s.programs, program))
	var r Report
	var err error
	if s.session == nil {
		s.session, s.end, err = s.Open(ctx)
	}
	if err == nil {
		c := Checker{Session: s.session, Timeout: s.Timeout}
		r, err = c.CheckLast(ctx, "step", s.programs, Options{})
	}
	if more := len(r.Findings) - mostOfStep; more > 0 {
		r.Findings = r.Findings[:mostOfStep]
		r.note(fmt.Sprintf("%d more findings were left out", more))
	}
	if err != nil {
		public, _ := problem.Public(err)
		r.note("the code was not looked at: " + sentence(public.Message))
		s.Close() // the next program gets another session
	}
	return r
}

// Close closes the session, if there is one.
func (s *Steps) Close() {
	if s.session != nil {
		s.end()
	}
	s.session, s.end = nil, nil
}
