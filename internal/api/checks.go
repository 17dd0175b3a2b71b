package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"cove/internal/advice"
	"cove/internal/auth"
	"cove/internal/hub"
	"cove/internal/problem"
)

// NewCheck says what to check.
type NewCheck struct {
	Kind    string   `json:"kind,omitempty" enum:"findings,reference,openapi,benchmark" default:"findings" doc:"findings: mistakes and slow forms; reference: the documentation of a module's public names; openapi: the document of a FastAPI or Flask application; benchmark: how long the program takes"`
	Code    string   `json:"code,omitempty" maxLength:"4194304" doc:"Python, or the JSON of a notebook; instead of it, session and path"`
	Name    string   `json:"name,omitempty" maxLength:"200" example:"report.py" doc:"Of the code's file; one that ends in .ipynb is a notebook's"`
	Session string   `json:"session,omitempty" maxLength:"64" doc:"With path: a file of its workspace. Where the code runs, it runs in a fork of the session"`
	Path    string   `json:"path,omitempty" maxLength:"4096"`
	Measure bool     `json:"measure,omitempty" doc:"Run each slow form that is found beside the faster one, with data of the check's own"`
	Profile bool     `json:"profile,omitempty" doc:"Run the code, and say what its lines take"`
	Ignore  []string `json:"ignore,omitempty" maxItems:"100" doc:"Rules, or the beginnings of their names, that are left out"`
	Args    []string `json:"args,omitempty" maxItems:"100" doc:"Of the program, where it runs"`
	Against string   `json:"against,omitempty" maxLength:"1048576" doc:"For a benchmark: the code of another program to measure beside it"`
	Sizes   []int    `json:"sizes,omitempty" maxItems:"20" doc:"For a benchmark: each is the program's first argument, and N in its environment; the growth is told from them"`
	Runs    int      `json:"runs,omitempty" minimum:"0" maximum:"100" doc:"For a benchmark: how often each is run; 5 when left out"`
	Timeout float64  `json:"timeout_seconds,omitempty" minimum:"0" maximum:"86400" doc:"Of each run; the server's when left out"`
}

// Check is what was found out about code. The field of its kind is there.
type Check struct {
	Findings  *CheckReport    `json:"findings,omitempty"`
	Reference *CheckReference `json:"reference,omitempty"`
	OpenAPI   json.RawMessage `json:"openapi,omitempty" doc:"An OpenAPI document"`
	Benchmark *CheckBenchmark `json:"benchmark,omitempty"`
}

// CheckReport is what was found in code.
type CheckReport struct {
	File    string       `json:"file"`
	Items   []Finding    `json:"items" doc:"By place"`
	Notes   []string     `json:"notes" doc:"What could not be looked at, and why"`
	Profile *LineProfile `json:"profile,omitempty"`
}

// Finding is one thing that was found in code. Its texts are as tools in the sandbox say.
type Finding struct {
	Rule     string          `json:"rule" example:"slow-iterrows" doc:"A rule of Ruff, type- and a code of mypy, or slow- and a form"`
	Severity advice.Severity `json:"severity" enum:"note,warning,error" doc:"error: fails when it runs; warning: probably a mistake, or slow; note: a matter of taste"`
	Cell     int             `json:"cell,omitempty" doc:"Of a notebook: which of its cells with code, from 1"`
	Line     int             `json:"line" doc:"From 1; of a notebook, in the cell"`
	Column   int             `json:"column" doc:"From 1"`
	Message  string          `json:"message"`
	Better   string          `json:"better,omitempty" doc:"What to write instead"`
	Measured *Measured       `json:"measured,omitempty"`
}

// Measured is how long a slow form and the faster one took, on the same data.
type Measured struct {
	Rule string  `json:"rule"`
	Slow float64 `json:"slow" doc:"Seconds"`
	Fast float64 `json:"fast" doc:"Seconds"`
	Size int     `json:"size" doc:"Rows, elements or turns"`
}

// LineProfile is what a run of a program took.
type LineProfile struct {
	Seconds float64        `json:"seconds"`
	Peak    int64          `json:"peak_bytes" doc:"In use at most"`
	Exit    *int           `json:"exit_code,omitempty" doc:"Left out where the program was stopped"`
	Output  string         `json:"output,omitempty" doc:"The end of what it printed, when it failed"`
	Lines   []ProfiledLine `json:"lines" doc:"The slowest first"`
}

// ProfiledLine is what one line took.
type ProfiledLine struct {
	File   string  `json:"file,omitempty" doc:"Another file of the workspace; left out for the program itself"`
	Cell   int     `json:"cell,omitempty"`
	Line   int     `json:"line"`
	Code   string  `json:"code"`
	Python float64 `json:"python" doc:"Seconds in Python code"`
	Native float64 `json:"native" doc:"Seconds in compiled code of libraries"`
	System float64 `json:"system" doc:"Seconds in the system"`
	Peak   int64   `json:"peak_bytes" doc:"That the line had allocated at most"`
}

// CheckReference is the documentation of a module.
type CheckReference struct {
	Markdown     string `json:"markdown"`
	Described    int    `json:"described" doc:"Public classes and functions"`
	Undocumented int    `json:"undocumented" doc:"Those of them without a docstring"`
}

// CheckBenchmark is how long programs took.
type CheckBenchmark struct {
	Start  float64         `json:"start" doc:"Seconds that Python itself takes to start and end; part of every time"`
	Timed  []TimedProgram  `json:"timed"`
	Growth []ProgramGrowth `json:"growth" doc:"Of each program, where that can be told"`
	Plot   []byte          `json:"plot,omitempty" doc:"A PNG of the growth, in base64"`
}

// TimedProgram is one program with one size.
type TimedProgram struct {
	Program string          `json:"program"`
	Size    int             `json:"size,omitempty"`
	Values  []float64       `json:"values" doc:"Seconds of each run"`
	Memory  int64           `json:"memory_bytes" doc:"That it had at most; 0: not known"`
	Time    float64         `json:"time" doc:"The median of the values"`
	Spread  float64         `json:"spread" doc:"How far values are from it, as a standard deviation"`
	Best    float64         `json:"best"`
	Against *advice.Against `json:"against,omitempty" doc:"Of the second program: beside the first"`
}

// ProgramGrowth is how a program's time grows: like the size to the power of the exponent.
type ProgramGrowth struct {
	Program  string  `json:"program"`
	Exponent float64 `json:"exponent"`
	Sizes    int     `json:"sizes" doc:"From which it is told"`
	Words    string  `json:"words"`
}

func findingOf(f advice.Finding) Finding {
	return Finding{Rule: f.Rule, Severity: f.Severity, Cell: f.Cell, Line: f.Line, Column: f.Column, Message: f.Message, Better: f.Better, Measured: (*Measured)(f.Measured)}
}

func lineProfileOf(p *advice.Profile) *LineProfile {
	if p == nil {
		return nil
	}
	return &LineProfile{Seconds: p.Seconds, Peak: p.Peak, Exit: p.Exit, Output: p.Output, Lines: each(p.Lines, func(l advice.ProfileLine) ProfiledLine { return ProfiledLine(l) })}
}

func benchmarkOf(b advice.Benchmark) *CheckBenchmark {
	return &CheckBenchmark{Start: b.Start, Timed: each(b.Timed, func(t advice.Timed) TimedProgram { return TimedProgram(t) }),
		Growth: each(b.Growth, func(g advice.Growth) ProgramGrowth { return ProgramGrowth(g) }), Plot: b.Plot}
}

func checkOf(c hub.Checked) Check {
	out := Check{OpenAPI: c.OpenAPI, Reference: (*CheckReference)(c.Reference)}
	if r := c.Report; r != nil {
		out.Findings = &CheckReport{File: r.File, Items: each(r.Findings, findingOf), Notes: each(r.Notes, func(n string) string { return n }), Profile: lineProfileOf(r.Profile)}
	}
	if c.Benchmark != nil {
		out.Benchmark = benchmarkOf(*c.Benchmark)
	}
	return out
}

func (n NewCheck) hub() hub.NewCheck {
	return hub.NewCheck{Kind: hub.CheckKind(n.Kind), Name: n.Name, Code: n.Code, Session: n.Session, Path: n.Path, Measure: n.Measure, Profile: n.Profile, Ignore: n.Ignore, Args: n.Args,
		Against: n.Against, Sizes: n.Sizes, Runs: n.Runs, Timeout: time.Duration(n.Timeout * float64(time.Second))}
}

type createCheck struct {
	Body NewCheck
}

func (s *server) addChecks() {
	add(s, operation{id: "check.run", method: http.MethodPost, path: "/checks", tag: "checks", action: auth.SessionsExecute, summary: "Check code",
		about:  "The answer comes when the check is done; leaving stops it. Nothing of the code runs, except for `profile` and the kinds `openapi` and `benchmark`. A file of a session's workspace takes the right `files:read` as well.",
		errors: []problem.Code{problem.CheckInvalid, problem.CheckFailed, problem.CheckToolMissing, problem.CodeInvalid, problem.CodeTooBig, problem.SessionNotFound, problem.FileNotFound, problem.ProgramFailed, problem.NoApplication},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/checks \
  -d '{"code":"def f(items=[]):\n    return items + [x]"}'`},
		func(ctx context.Context, who auth.Principal, in *createCheck) (Check, error) {
			out, err := s.o.Hub.Check(ctx, who, in.Body.hub())
			return checkOf(out), err
		})
}
