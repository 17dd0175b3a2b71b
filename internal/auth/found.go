package auth

import (
	"context"

	"cove/internal/audit"
	"cove/internal/ident"
	"cove/internal/problem"
)

// Found makes the local project, its owner and, when the project has no key at all, a first one, whose text it returns ("" otherwise).
// first is a text of NewText's to use for it instead of a random one, as an operator may set. It can be called at every start.
func (a *Accounts) Found(ctx context.Context, first string) (text string, err error) {
	who := Local()
	if err := a.foundOwner(ctx, who); err != nil {
		return "", err
	}
	keys, err := a.Store.Keys(ctx, who.Project)
	if err != nil || len(keys) > 0 {
		return "", err
	}
	k, text := a.mint(who.Project, who.User, "first")
	if first != "" {
		id, hash, err := ParseText(first)
		if err != nil {
			return "", err
		}
		k.ID, k.Hash, k.Last4, text = id, hash[:], first[len(first)-4:], first
	}
	err = a.record(ctx, who, "key.create", k.ID, "the first key", a.Store.AddKey(ctx, k))
	if err != nil {
		return "", err
	}
	return text, nil
}

func (a *Accounts) foundOwner(ctx context.Context, who Principal) error {
	if _, err := a.Store.User(ctx, who.User); problem.Is(err, problem.NotFound) {
		err = a.Store.AddUser(ctx, User{ID: who.User, Name: "local", Admin: true, Created: a.now().UTC()})
		if err = a.record(ctx, who, "user.create", who.User, "local", err); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if _, err := a.Store.Project(ctx, who.Project); problem.Is(err, problem.NotFound) {
		err = a.Store.AddProject(ctx, Project{ID: who.Project, Name: "local", Created: a.now().UTC()})
		if err = a.record(ctx, who, "project.create", who.Project, "local", err); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	// A start that was cut short may have left the project without its owner.
	members, err := a.Store.Members(ctx, who.Project)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Role == Owner {
			return nil
		}
	}
	return a.Store.SetMember(ctx, Membership{Project: who.Project, User: who.User, Role: Owner})
}

// Rows returns audit rows, the newest first: of the project with AuditRead, or of all projects, which needs ServerManage besides.
func (a *Accounts) Rows(ctx context.Context, who Principal, all bool, before string, limit int) ([]audit.Row, error) {
	need, project := AuditRead, who.Project
	if err := who.Require(AuditRead); err != nil {
		return nil, err
	}
	if all {
		need, project = ServerManage, ""
	}
	if err := who.Require(need); err != nil {
		return nil, err
	}
	if before != "" && !ident.Valid(ident.Audit, before) {
		return nil, problem.New(problem.Invalid, "cursor_invalid", "this is not the id of an audit row")
	}
	return a.Audit.Rows(ctx, project, before, min(max(limit, 1), 1000))
}
