package cli

import (
	"context"
	"fmt"
	"time"

	"cove/internal/server/auth"
)

type userInvite struct {
	adminFlags
	Project string        `placeholder:"PROJECT" help:"Id or name of the project (default: local; on a server, the project of the key)."`
	Role    string        `default:"member" enum:"owner,admin,member,viewer,auditor" placeholder:"ROLE" help:"What the new member is there: owner, admin, member, viewer or auditor (default: member)."`
	Name    string        `placeholder:"NAME" help:"Whom it is for, as the list of invitations shows it."`
	User    string        `placeholder:"USER" help:"Id or name of a user who is to set a new password, instead of a new member."`
	Life    time.Duration `placeholder:"DURATION" help:"How long it can be used, such as 48h (default: 7 days)."`
	JSON    bool          `name:"json" help:"Print it as one JSON object."`
}

// Help is the long help.
func (userInvite) Help() string {
	return `The address has a code that works once: who opens it chooses a name and a password. Send it to nobody else.
Without --server the code comes from the database of this machine, as keys do; the server has to run on this machine, too.

Examples:

    cove user invite --project lab --role viewer --name Ada
    cove user invite --user ada@example.com
    cove user invite --server https://cove.example.com`
}

func (c *userInvite) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		n := auth.NewInvitation{Project: c.Project, Role: auth.Role(c.Role), Name: c.Name, User: c.User, Life: c.Life}
		if c.User != "" {
			n.Role = ""
		}
		i, page, err := a.Invite(ctx, n)
		if err != nil {
			return err
		}
		if c.JSON {
			return p.printJSON(map[string]any{"id": i.ID, "page": page, "expires": i.Expires})
		}
		_, err = fmt.Fprintln(p.Out, page)
		return err
	})
}

// InvitationAddress is the page's address with the code of an invitation. Browsers do not send to servers what is after the #.
func InvitationAddress(server, code string) string {
	return server + "/#invitation=" + code
}
