package cli

import (
	"context"
	"encoding/json"
	"io"

	"cove/internal/core/problem"
	"cove/internal/machine/snapshot"
	"cove/internal/sessions/ondisk"
)

// Salvage is what a later cove asks of the one that saved a session and was kept: the files of a snapshot, as tar on standard output. Later coves rely on
// this form and on SalvageArgs, so they only ever get more.
type Salvage struct {
	Image string       `json:"image"` // the folder of the checkpoint
	Base  ondisk.Base  `json:"base"`
	Key   snapshot.Key `json:"key"`
	// Variables asks for those as well, as far as they can be had; see session.Salvage.
	Variables bool `json:"variables,omitempty"`
}

// SalvageArgs is the command line by which that is asked. The question is JSON on standard input.
func SalvageArgs() []string { return []string{"session", "salvage"} }

// longestQuestion bounds a Salvage, in bytes.
const longestQuestion = 1 << 20

type sessionSalvage struct{}

func (c *sessionSalvage) run(ctx context.Context, p *Program) (int, error) {
	var what Salvage
	if err := json.NewDecoder(io.LimitReader(p.In, longestQuestion)).Decode(&what); err != nil {
		return 0, problem.New(problem.Usage, "only cove itself uses this command").WithCause(err)
	}
	return 0, p.Salvage(ctx, p.Config, what, p.Out)
}
