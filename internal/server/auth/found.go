package auth

import (
	"context"
	"slices"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/audit"
)

// Found makes the local project, its owner and, when the project has no key at all, a first one, whose text it returns ("" otherwise).
// first is a text of NewText's to use for it instead of a random one, as an operator may set. It can be called at every start, by several
// servers at once.
func (a *Accounts) Found(ctx context.Context, first string) (text string, err error) {
	who := Local()
	err = a.found(ctx, who, func(ctx context.Context, a *Accounts) ([]audit.Row, error) {
		k, made, err := a.firstKey(ctx, who, first)
		if text = made; text == "" || err != nil {
			return nil, err
		}
		return []audit.Row{{Action: "key.create", Target: k.ID, Detail: "the first key"}}, a.Store.AddKey(ctx, k)
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

// FoundLocal makes the local project and its owner where they are missing, and no key: nobody would see it. It costs one look when they are there.
func (a *Accounts) FoundLocal(ctx context.Context) error {
	who := Local()
	if role, err := a.Store.Role(ctx, who.Project, who.User); err != nil || role == Owner {
		return err
	}
	return a.found(ctx, who, func(context.Context, *Accounts) ([]audit.Row, error) { return nil, nil })
}

// found makes the local project and its owner, and more in the same moment, and writes the rows of all that.
func (a *Accounts) found(ctx context.Context, who Principal, more func(ctx context.Context, a *Accounts) ([]audit.Row, error)) error {
	var rows []audit.Row
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) (err error) {
		if rows, err = a.foundOwner(ctx, who); err != nil {
			return err
		}
		others, err := more(ctx, a)
		rows = append(rows, others...)
		return err
	})
	for _, r := range rows {
		if err == nil {
			err = a.record(ctx, who, r.Action, r.Target, r.Detail, nil)
		}
	}
	return err
}

// firstKey returns the key to add and its text, which is "" when the project has one.
func (a *Accounts) firstKey(ctx context.Context, who Principal, first string) (Key, string, error) {
	keys, err := a.Store.Keys(ctx, who.Project)
	if err != nil || len(keys) > 0 {
		return Key{}, "", err
	}
	k, text := a.mint(who.Project, who.User, "first")
	if first == "" {
		return k, text, nil
	}
	id, hash, err := ParseText(first)
	k.ID, k.Hash, k.Last4 = id, hash[:], first[max(0, len(first)-4):]
	return k, first, err
}

// foundOwner returns the rows of what it made.
func (a *Accounts) foundOwner(ctx context.Context, who Principal) (rows []audit.Row, err error) {
	if _, err := a.Store.User(ctx, who.User); problem.Is(err, problem.NotFound) {
		if err := a.Store.AddUser(ctx, User{ID: who.User, Name: "local", Admin: true, Created: a.now().UTC()}); err != nil {
			return nil, err
		}
		rows = append(rows, audit.Row{Action: "user.create", Target: who.User, Detail: "local"})
	} else if err != nil {
		return nil, err
	}
	if _, err := a.Store.Project(ctx, who.Project); problem.Is(err, problem.NotFound) {
		if err := a.Store.AddProject(ctx, Project{ID: who.Project, Name: "local", Created: a.now().UTC()}); err != nil {
			return nil, err
		}
		rows = append(rows, audit.Row{Action: "project.create", Target: who.Project, Detail: "local"})
	} else if err != nil {
		return nil, err
	}
	// A start that was cut short may have left the project without its owner.
	members, err := a.Store.Members(ctx, who.Project)
	if err != nil || slices.ContainsFunc(members, func(m Membership) bool { return m.Role == Owner }) {
		return rows, err
	}
	return rows, a.Store.SetMember(ctx, Membership{Project: who.Project, User: who.User, Role: Owner})
}

// Rows returns the audit rows that a query asks for, the newest first: of the caller's project with AuditRead, or of all projects, which needs ServerManage besides.
func (a *Accounts) Rows(ctx context.Context, who Principal, all bool, q audit.Query) ([]audit.Row, error) {
	need := AuditRead
	q.Project, q.Limit = who.Project, min(max(q.Limit, 1), 1000)
	if err := who.Require(AuditRead); err != nil {
		return nil, err
	}
	if all {
		need, q.Project = ServerManage, ""
	}
	if err := who.Require(need); err != nil {
		return nil, err
	}
	if q.Before != "" && !ident.Valid(ident.Audit, q.Before) {
		return nil, problem.New(problem.CursorInvalid, "this is not the id of an audit row")
	}
	return a.Audit.Rows(ctx, q)
}
