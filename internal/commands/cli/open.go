package cli

import (
	"context"
	"fmt"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

type openCmd struct {
	configFlag
	Project string `placeholder:"PROJECT" help:"Id or name of the project (default: local)."`
	User    string `placeholder:"USER" help:"Id or name of the user, a member of the project (default: local)."`
	JSON    bool   `name:"json" help:"Print it as one JSON object."`
}

// Help is the long help.
func (openCmd) Help() string {
	return `The address has a code that signs one browser in, once, within 15 minutes. It is as good as a key of that user until then: send it to nobody else.
The code comes from the database of this machine, as keys do; the server has to run on this machine, too.

Examples:

    cove open
    cove open --project lab --user ada@example.com`
}

func (c *openCmd) run(ctx context.Context, p *Program) (int, error) {
	address, err := p.pageServer(c.configFlag)
	if err != nil {
		return 0, err
	}
	return 0, p.onRecords(ctx, c.configFlag, func(r *Records) error {
		code, err := r.Accounts.NewCode(ctx, auth.Local(), c.Project, c.User)
		if err != nil {
			return err
		}
		if c.JSON {
			return p.printJSON(map[string]any{"page": PageAddress(address, code)})
		}
		_, err = fmt.Fprintln(p.Out, PageAddress(address, code))
		return err
	})
}

// pageServer is the address of the server that runs on this machine, as a browser reaches it.
func (p *Program) pageServer(c configFlag) (string, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return "", err
	}
	address := p.Served(cfg)
	switch {
	case address == "":
		return "", problem.New(problem.ServerUnreachable, "no server of this data folder runs on this machine").WithHint("start it: cove serve")
	case strings.HasPrefix(address, "unix:"):
		return "", problem.New(problem.ServerUnreachable, "the server listens on a socket alone, which browsers cannot open").
			WithHint("have it listen on an address, too: cove serve --listen 127.0.0.1:8700")
	}
	return address, nil
}

// PageAddress is the page's address with a code. Browsers do not send to servers what is after the #.
func PageAddress(server, code string) string {
	return server + "/#setup=" + code
}
