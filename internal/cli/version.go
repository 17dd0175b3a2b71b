package cli

import (
	"context"
	"fmt"
	"runtime"
)

type versionCmd struct{}

func (versionCmd) run(_ context.Context, p *Program) (int, error) {
	_, err := fmt.Fprintf(p.Out, "cove %s %s/%s %s\n", p.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return 0, err
}

type configCmd struct{}

// Help is the long help.
func (configCmd) Help() string {
	return `What is printed can be used as the config file. Keys of model services are not shown.`
}

func (configCmd) run(_ context.Context, p *Program) (int, error) {
	if err := p.Config.Document(p.Out); err != nil {
		return 0, err
	}
	return 0, p.ConfigErr
}
