package advice

import (
	"cmp"
	"context"
	"slices"
)

const (
	mostProfiled = 1000 // lines of a profile
	mostBytes    = 1 << 50
)

// Profile is what a run of the program took. Everything in it is as the sandbox says.
type Profile struct {
	Seconds float64       `json:"seconds"`          // wall clock of the run
	Peak    int64         `json:"peak"`             // bytes that were in use at most
	Exit    *int          `json:"exit"`             // exit code; nil: the program was stopped
	Output  string        `json:"output,omitempty"` // the end of what the program printed, when it failed
	Lines   []ProfileLine `json:"lines"`            // the slowest first
}

// ProfileLine is what one line took.
type ProfileLine struct {
	File   string  `json:"file,omitempty"` // another file of the workspace, "" for the program itself
	Cell   int     `json:"cell,omitempty"` // as in Finding
	Line   int     `json:"line"`           // as in Finding
	Code   string  `json:"code"`           // the line
	Python float64 `json:"python"`         // seconds in Python code
	Native float64 `json:"native"`         // seconds in libraries' compiled code
	System float64 `json:"system"`         // seconds in the system: files, memory, waiting
	Peak   int64   `json:"peak"`           // bytes that the line had allocated at most
}

// Seconds is all of a line's time.
func (l ProfileLine) Seconds() float64 { return l.Python + l.Native + l.System }

// profile runs the program under a profiler.
func (c *Checker) profile(ctx context.Context, src Source, s seen, args []string, r *Report) (*Profile, error) {
	if args == nil {
		args = []string{}
	}
	p := &Profile{Lines: []ProfileLine{}}
	ended := false
	err := c.run(ctx, scriptRun{script: "profile", src: src, tools: []string{"scalene"}, wanted: &s, values: parameters{"args": args}}, func(one reply) error {
		switch one.Kind {
		case "line":
			if p.accepts(one) {
				p.Lines = append(p.Lines, one.profileLine(src))
			}
		case "profile":
			ended = true
			p.Seconds, p.Peak, p.Exit = max(0, one.Seconds), min(max(0, one.Peak), mostBytes), one.Exit
			if one.Exit == nil || *one.Exit != 0 {
				p.Output = clipped(one.Output, longestError)
			}
			if !one.Measured {
				r.note("the profiler measured nothing: the program fails at its start, or runs for too short a time")
			}
		default:
			return r.add(one)
		}
		return nil
	})
	slices.SortStableFunc(p.Lines, func(a, b ProfileLine) int {
		return cmp.Or(cmp.Compare(b.Seconds(), a.Seconds()), cmp.Compare(b.Peak, a.Peak))
	})
	if err != nil || !ended {
		return nil, r.tolerate(err)
	}
	return p, nil
}

func (r reply) profileLine(src Source) ProfileLine {
	l := ProfileLine{File: sentence(r.File), Line: r.Line, Code: sentence(r.Text), Python: r.Python, Native: r.Native, System: r.System, Peak: r.Peak}
	if r.File == "" {
		l.Code = clipped(src.line(r.Line), 200)
		l.Cell, l.Line = src.place(r.Line)
	}
	return l
}

// accepts says whether a line of a profile can be believed and kept.
func (p *Profile) accepts(one reply) bool {
	return len(p.Lines) < mostProfiled && one.Line > 0 && one.Python >= 0 && one.Native >= 0 && one.System >= 0 && one.Peak >= 0 && one.Peak < mostBytes
}
