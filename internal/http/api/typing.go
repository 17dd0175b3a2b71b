package api

import (
	"context"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// Completions are what may stand in the place of what somebody types.
type Completions struct {
	Matches []string `json:"matches" doc:"At most 1000, the likeliest first" example:"[\"describe\"]"`
	Start   int      `json:"start" doc:"Where what they replace begins in the code, in characters"`
	End     int      `json:"end" doc:"Where it ends"`
}

// Description is what is known of a name.
type Description struct {
	Text string `json:"text" doc:"Its signature, type and documentation; empty where nothing is known"`
}

// Completeness says whether code is a whole input.
type Completeness struct {
	Status string `json:"status" enum:"complete,incomplete,invalid,unknown" doc:"incomplete: more has to be typed; invalid: no more would make it Python"`
}

type (
	typedCode struct {
		Code   string `json:"code" maxLength:"100000" doc:"The whole input"`
		Cursor int    `json:"cursor" minimum:"0" maximum:"100000" doc:"Where the cursor is, in characters from the beginning"`
	}
	typedAt struct {
		KernelPath
		Body typedCode
	}
	typedInput struct {
		KernelPath
		Body struct {
			Code string `json:"code" maxLength:"100000"`
		}
	}
)

// addTyping adds what editors ask while somebody types code.
func (s *server) addTyping() {
	const tag, kernelAt = "kernels", "/sessions/{session}/kernels/{kernel}"
	errors := []problem.Code{problem.SessionNotFound, problem.KernelNotFound, problem.SessionBusy}
	add(s, operation{id: "code.complete", method: http.MethodPost, path: kernelAt + "/complete", tag: tag, action: auth.SessionsExecute, summary: "Complete a name that is typed",
		about: "By what the kernel holds: variables, their attributes, modules. The code does not run, but a module may be imported to see what is in it, and an object may say itself what it has.", errors: errors,
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels/main/complete -d '{"code":"import mat","cursor":10}'`},
		func(ctx context.Context, who auth.Principal, in *typedAt) (Completions, error) {
			matches, start, end, err := s.o.Hub.Complete(ctx, who, in.Session, in.Kernel, in.Body.Code, in.Body.Cursor)
			if matches == nil {
				matches = []string{}
			}
			return Completions{Matches: matches, Start: start, End: end}, err
		})
	add(s, operation{id: "code.describe", method: http.MethodPost, path: kernelAt + "/describe", tag: tag, action: auth.SessionsExecute, summary: "Describe a name that is typed",
		about: "What an interactive Python shows for `name?`. The code does not run, but a property may.", errors: errors,
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels/main/describe -d '{"code":"print(1)","cursor":3}'`},
		func(ctx context.Context, who auth.Principal, in *typedAt) (Description, error) {
			text, err := s.o.Hub.Describe(ctx, who, in.Session, in.Kernel, in.Body.Code, in.Body.Cursor)
			return Description{Text: text}, err
		})
	add(s, operation{id: "code.is_complete", method: http.MethodPost, path: kernelAt + "/is-complete", tag: tag, action: auth.SessionsRead, summary: "Say whether an input is complete",
		about: "For line editors: whether Enter ends an input, or begins its next line. The code does not run.", errors: errors,
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels/main/is-complete -d '{"code":"for i in range(3):"}'`},
		func(ctx context.Context, who auth.Principal, in *typedInput) (Completeness, error) {
			status, err := s.o.Hub.IsComplete(ctx, who, in.Session, in.Kernel, in.Body.Code)
			return Completeness{Status: status}, err
		})
}
