package cli

import (
	"context"
	"encoding/json"

	"cove/internal/core/config"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// localAdmin administers the database of this machine, as who may do everything.
type localAdmin struct {
	*Records
	cfg     config.Config
	address func() (string, error) // of the server that runs on this machine
}

var _ administration = localAdmin{}

// close implements administration; the records are closed by what opened them.
func (l localAdmin) close() error { return nil }

// in returns who this machine's operator is in a project.
func (l localAdmin) in(ctx context.Context, project string) (auth.Principal, error) {
	who := auth.Local()
	if project == "" {
		return who, nil
	}
	found, err := l.Accounts.Project(ctx, who, project)
	who.Project = found.ID
	return who, err
}

func (l localAdmin) CreateKey(ctx context.Context, n auth.NewKey) (auth.Key, string, error) {
	return l.Accounts.CreateKey(ctx, auth.Local(), n)
}

func (l localAdmin) Keys(ctx context.Context, project string, all bool) ([]auth.Key, error) {
	if all {
		return l.Accounts.AllKeys(ctx, auth.Local())
	}
	who, err := l.in(ctx, project)
	if err != nil {
		return nil, err
	}
	return l.Accounts.Keys(ctx, who)
}

func (l localAdmin) RevokeKey(ctx context.Context, id string) (auth.Key, error) {
	who := auth.Local()
	if k, err := l.Accounts.Store.Key(ctx, id); err == nil {
		who.Project = k.Project
	}
	return l.Accounts.RevokeKey(ctx, who, id)
}

func (l localAdmin) Manages(context.Context) (bool, error) { return true, nil }

func (l localAdmin) CreateUser(ctx context.Context, name string, admin bool) (auth.User, error) {
	return l.Accounts.CreateUser(ctx, auth.Local(), name, admin)
}

func (l localAdmin) Users(ctx context.Context) ([]auth.User, error) {
	return l.Accounts.Users(ctx, auth.Local())
}

func (l localAdmin) DeleteUser(ctx context.Context, user string) error {
	return l.Accounts.DeleteUser(ctx, auth.Local(), user)
}

func (l localAdmin) Invite(ctx context.Context, n auth.NewInvitation) (auth.Invitation, string, error) {
	address, err := l.address()
	if err != nil {
		return auth.Invitation{}, "", err
	}
	i, code, err := l.Accounts.Invite(ctx, auth.Local(), n)
	return i, InvitationAddress(address, code), err
}

func (l localAdmin) CreateProject(ctx context.Context, name string) (auth.Project, error) {
	return l.Accounts.CreateProject(ctx, auth.Local(), name)
}

func (l localAdmin) Projects(ctx context.Context) ([]auth.Project, error) {
	return l.Accounts.Projects(ctx, auth.Local())
}

func (l localAdmin) Project(ctx context.Context, project string) (auth.Project, error) {
	return l.Accounts.Project(ctx, auth.Local(), project)
}

func (l localAdmin) Members(ctx context.Context, project string) ([]auth.Membership, error) {
	return l.Accounts.Members(ctx, auth.Local(), project)
}

func (l localAdmin) SetMember(ctx context.Context, m auth.Membership) error {
	_, err := l.Accounts.SetMember(ctx, auth.Local(), m)
	return err
}

func (l localAdmin) DefaultQuota(context.Context) (hub.Quota, error) {
	return ProjectQuota(l.cfg), nil
}

func (l localAdmin) SetQuota(ctx context.Context, project string, q *hub.Quota) error {
	var text []byte
	if q != nil {
		var err error
		if text, err = json.Marshal(q); err != nil {
			return err
		}
	}
	_, err := l.Accounts.SetQuota(ctx, auth.Local(), project, text)
	return err
}

func (l localAdmin) Instructions(ctx context.Context, project string) (string, error) {
	return l.Accounts.Instructions(ctx, auth.Local(), project)
}

func (l localAdmin) SetInstructions(ctx context.Context, project, text string) error {
	_, err := l.Accounts.SetInstructions(ctx, auth.Local(), project, text)
	return err
}

func (l localAdmin) Usage(ctx context.Context, project, key, first, last string) ([]hub.Usage, error) {
	who, err := l.in(ctx, project)
	if err != nil {
		return nil, err
	}
	return l.Store.Usage(ctx, who.Project, key, first, last)
}

func (l localAdmin) Answers(ctx context.Context, project, first, last string) ([]hub.AnswerDay, error) {
	who, err := l.in(ctx, project)
	if err != nil {
		return nil, err
	}
	days, err := l.Store.Answers(ctx, who.Project, first, last)
	for n := range days {
		days[n] = days[n].Timed()
	}
	return days, err
}

func (l localAdmin) Rows(ctx context.Context, project string, q audit.Query) ([]audit.Row, error) {
	who, err := l.in(ctx, project)
	if err != nil {
		return nil, err
	}
	return l.Accounts.Rows(ctx, who, project == "", q)
}
