package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"cove/internal/code/advice"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// NewCheck says what to check.
type NewCheck struct {
	Kind    string   `json:"kind,omitempty" enum:"findings,reference,openapi,benchmark" default:"findings" doc:"findings: mistakes and slow forms; reference: the documentation of a module's public names; openapi: the document of a FastAPI or Flask application; benchmark: how long the program takes"`
	Code    string   `json:"code,omitempty" maxLength:"4194304" doc:"Python, or the JSON of a notebook; instead of it, session and path"`
	Name    string   `json:"name,omitempty" maxLength:"200" example:"report.py" doc:"Of the code's file; one that ends in .ipynb is a notebook's"`
	Before  []string `json:"before,omitempty" maxItems:"1000" doc:"Programs that ran before in the same interpreter, the first one first: names that they make are there, and only what is found in code is told"`
	Session string   `json:"session,omitempty" maxLength:"64" doc:"With path: a file of its workspace. Where the code runs, it runs in a fork of the session"`
	Path    string   `json:"path,omitempty" maxLength:"4096"`
	Measure bool     `json:"measure,omitempty" doc:"Run each slow form that is found beside the faster one, with data of the check's own"`
	Profile bool     `json:"profile,omitempty" doc:"Run the code, and say what its lines take"`
	Ignore  []string `json:"ignore,omitempty" maxItems:"100" doc:"Rules, or the beginnings of their names, that are left out"`
	Args    []string `json:"args,omitempty" maxItems:"100" doc:"Of the program, where it runs"`
	Against string   `json:"against,omitempty" maxLength:"1048576" doc:"For a benchmark: the code of another program to measure beside it"`
	Sizes   []int    `json:"sizes,omitempty" maxItems:"20" doc:"For a benchmark: each is the program's first argument, and N in its environment; the growth is told from them"`
	Runs    int      `json:"runs,omitempty" minimum:"0" maximum:"100" doc:"For a benchmark: how often each is run; 5 when left out"`
	Timeout float64  `json:"timeout_seconds,omitempty" minimum:"0" maximum:"86400" doc:"Of each look and run, and of all runs of a benchmark; at most the server's for an execution, which it is when left out"`
}

// Check is what was found out about code. The field of its kind is there.
type Check struct {
	Report    *advice.Report    `json:"report,omitempty" doc:"Of the kind findings"`
	Reference *advice.Reference `json:"reference,omitempty"`
	OpenAPI   json.RawMessage   `json:"openapi,omitempty" doc:"An OpenAPI document"`
	Benchmark *advice.Benchmark `json:"benchmark,omitempty"`
}

func (n NewCheck) hub() hub.NewCheck {
	return hub.NewCheck{Kind: hub.CheckKind(n.Kind), Name: n.Name, Code: n.Code, Before: n.Before, Session: n.Session, Path: n.Path, Measure: n.Measure, Profile: n.Profile, Ignore: n.Ignore, Args: n.Args,
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
			return Check(out), err
		})
}
