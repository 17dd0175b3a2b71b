package advice

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	mostProfiled = 1000 // lines of a profile
	mostBytes    = 1 << 50

	// What the profiler may take beside the program's own time. Each takes about a second where a processor is free.
	profilerBegins = time.Minute
	profilerWrites = time.Minute
)

// LineProfile is what a run of the program took. Everything in it is as the sandbox says.
type LineProfile struct {
	Seconds float64        `json:"seconds" doc:"Wall clock of the run"`
	Peak    int64          `json:"peak_bytes" doc:"That were in use at most"`
	Exit    *int           `json:"exit_code,omitempty" doc:"Left out where the program was stopped, or its exit code is not known"`
	Output  string         `json:"output,omitempty" doc:"The end of what the program printed, when it failed"`
	Lines   []ProfiledLine `json:"lines" doc:"The slowest first"`
}

// ProfiledLine is what one line took.
type ProfiledLine struct {
	File   string  `json:"file,omitempty" doc:"Another file of the workspace; left out for the program itself"`
	Cell   int     `json:"cell,omitempty" doc:"As in a finding"`
	Line   int     `json:"line" doc:"As in a finding"`
	Code   string  `json:"code"`
	Python float64 `json:"python" doc:"Seconds in Python code"`
	Native float64 `json:"native" doc:"Seconds in compiled code of libraries"`
	System float64 `json:"system" doc:"Seconds in the system: files, memory, waiting"`
	Peak   int64   `json:"peak_bytes" doc:"That the line had allocated at most"`
}

// Seconds is all of a line's time.
func (l ProfiledLine) Seconds() float64 { return l.Python + l.Native + l.System }

// profile runs the program under a profiler.
func (c *Checker) profile(ctx context.Context, src Source, s seen, args []string, r *Report) (*LineProfile, error) {
	if args == nil {
		args = []string{}
	}
	p := &LineProfile{Lines: []ProfiledLine{}}
	ended := false
	values := parameters{"args": args, "begins": profilerBegins.Seconds(), "writes": profilerWrites.Seconds()}
	err := c.run(ctx, scriptRun{script: "profile", src: src, tools: []string{"scalene"}, wanted: &s, values: values, beside: profilerBegins + profilerWrites}, func(one reply) error {
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
	slices.SortStableFunc(p.Lines, func(a, b ProfiledLine) int {
		return cmp.Or(cmp.Compare(b.Seconds(), a.Seconds()), cmp.Compare(b.Peak, a.Peak))
	})
	if err != nil || !ended {
		return nil, r.tolerate(err)
	}
	return p, nil
}

func (r reply) profileLine(src Source) ProfiledLine {
	l := ProfiledLine{File: sentence(r.File), Line: r.Line, Code: sentence(r.Text), Python: r.Python, Native: r.Native, System: r.System, Peak: r.Peak}
	if r.File == "" {
		l.Code = clipped(src.line(r.Line), 200)
		l.Cell, l.Line = src.place(r.Line)
	}
	return l
}

// accepts says whether a line of a profile can be believed and kept.
func (p *LineProfile) accepts(one reply) bool {
	return len(p.Lines) < mostProfiled && one.Line > 0 && one.Python >= 0 && one.Native >= 0 && one.System >= 0 && one.Peak >= 0 && one.Peak < mostBytes
}
