package cli

import (
	"context"
	"errors"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/client"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// administration is what somebody administers a server with: the database of this machine, or the API of a server with the rights of a key. A project is named
// by its id or name; "" is the local one on this machine, and that of the key on a server.
type administration interface {
	keyring
	people
	projects
	ledgers
	close() error
}

// keyring has the keys.
type keyring interface {
	// CreateKey makes a key and returns its text.
	CreateKey(ctx context.Context, n auth.NewKey) (auth.Key, string, error)
	// Keys lists the keys of a project, or with all those of every project, for which see Manages.
	Keys(ctx context.Context, project string, all bool) ([]auth.Key, error)
	RevokeKey(ctx context.Context, id string) (auth.Key, error)
	// Manages says whether the caller sees all projects and users.
	Manages(ctx context.Context) (bool, error)
}

// people has the users.
type people interface {
	CreateUser(ctx context.Context, name string, admin bool) (auth.User, error)
	Users(ctx context.Context) ([]auth.User, error)
	DeleteUser(ctx context.Context, user string) error
	// Invite makes an invitation, and the address of the page for it.
	Invite(ctx context.Context, n auth.NewInvitation) (i auth.Invitation, page string, err error)
}

// projects has the projects with their members and quotas.
type projects interface {
	CreateProject(ctx context.Context, name string) (auth.Project, error)
	Projects(ctx context.Context) ([]auth.Project, error)
	Project(ctx context.Context, project string) (auth.Project, error)
	Members(ctx context.Context, project string) ([]auth.Membership, error)
	// SetMember gives a user, by id or name, a role in a project; "" is none.
	SetMember(ctx context.Context, m auth.Membership) error
	// DefaultQuota is what a project may use that has no quota of its own.
	DefaultQuota(ctx context.Context) (hub.Quota, error)
	// SetQuota sets what a project may use; nil: the default again.
	SetQuota(ctx context.Context, project string, q *hub.Quota) error
	// Instructions are what models are asked to do in all conversations of a project.
	Instructions(ctx context.Context, project string) (string, error)
	SetInstructions(ctx context.Context, project, text string) error
}

// ledgers have what was used and who did what. Days are in the form of the constant day.
type ledgers interface {
	Usage(ctx context.Context, project, key, first, last string) ([]hub.Usage, error)
	Answers(ctx context.Context, project, first, last string) ([]hub.AnswerDay, error)
	// Rows returns rows of the audit log, the newest first; of project "": all that the caller may see.
	Rows(ctx context.Context, project string, q audit.Query) ([]audit.Row, error)
}

// adminFlags are the flags of commands that administer a server.
type adminFlags struct {
	configFlag
	serverFlags
}

// administer has use work on the server that the flags name, or else on the database of this machine.
func (p *Program) administer(ctx context.Context, f adminFlags, use func(administration) error) (err error) {
	base, key, err := f.remote(p.Config)
	if problem.Has(err, problem.KeyMissing) {
		return problem.Of(err).WithHint(wantsKey + ";\nto work on the database of this machine: --server ''")
	}
	if err != nil {
		return err
	}
	if base == "" {
		return p.onRecords(ctx, f.configFlag, func(r *Records) error {
			cfg, err := f.settings(p)
			if err != nil {
				return err
			}
			return use(localAdmin{Records: r, cfg: cfg, address: func() (string, error) { return p.pageServer(f.configFlag) }})
		})
	}
	if err := localFlags(map[string]bool{"--config": f.Config != ""}); err != nil {
		return err
	}
	if p.ConfigErr != nil {
		return p.ConfigErr
	}
	a := &remoteAdmin{client: client.New(base, key)}
	defer func() { err = errors.Join(withList(err), a.close()) }()
	return use(a)
}

// localFlags refuses the flags that were given and that are for this machine alone.
func localFlags(given map[string]bool) error {
	for _, name := range sortedNames(given) {
		if given[name] {
			return problem.New(problem.Usage, name+" is for this machine only; a server uses its own settings").WithHint("leave it out, or work on this machine: --server ''")
		}
	}
	return nil
}

// userNames returns the names of the users by their ids; what cannot be read is not named.
func userNames(ctx context.Context, a people) map[string]string {
	names := map[string]string{}
	users, _ := a.Users(ctx)
	for _, u := range users {
		names[u.ID] = u.Name
	}
	return names
}

// moment is a time that may be missing.
func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
