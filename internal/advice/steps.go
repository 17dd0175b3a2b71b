package advice

import (
	"context"
	"time"

	"cove/internal/problem"
)

// passedOver are rules that say nothing of one program among several: names and imports may be those of the programs before it, or for those after it.
var passedOver = []string{"F401", "F811", "F821", "F841"}

// Steps looks at programs that one interpreter runs one after the other, as a model's in one turn. It is used by one goroutine at a time.
type Steps struct {
	// Open makes a session to look in, and returns what closes it. It is called when there is something to look at.
	Open    func(ctx context.Context) (Session, func(), error)
	Timeout time.Duration // as Checker's

	programs []string
	session  Session
	end      func()
}

// Look looks at the next program. What could not be done is a note of the report.
func (s *Steps) Look(ctx context.Context, program string) Report {
	s.programs = append(s.programs, program)
	src, err := Cells("steps", s.programs)
	for problem.Has(err, problem.CodeTooBig) && len(s.programs) > 1 {
		s.programs = s.programs[1:]
		src, err = Cells("steps", s.programs)
	}
	if err == nil && s.session == nil {
		s.session, s.end, err = s.Open(ctx)
	}
	var r Report
	if err == nil {
		c := Checker{Session: s.session, Timeout: s.Timeout}
		r, err = c.Check(ctx, src, Options{Ignore: passedOver, Cell: len(s.programs)})
	}
	for i := range r.Findings {
		r.Findings[i].Cell = 0 // of the program itself
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
