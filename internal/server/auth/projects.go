package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

// CreateProject makes a project, whose owner is the caller. Needs ServerManage. Problems: project_exists.
func (a *Accounts) CreateProject(ctx context.Context, who Principal, name string) (Project, error) {
	p := Project{ID: ident.New(ident.Project), Name: name, Created: a.now().UTC()}
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) error { return a.createProject(ctx, who, p) })
	if err = a.record(ctx, who, "project.create", p.ID, name, err); err != nil {
		return Project{}, err
	}
	return p, nil
}

func (a *Accounts) createProject(ctx context.Context, who Principal, p Project) error {
	if err := who.Require(ServerManage); err != nil {
		return err
	}
	if err := goodName(p.Name); err != nil {
		return err
	}
	if ident.Valid(ident.Project, p.Name) {
		return problem.New(problem.NameInvalid, "a name must not look like an id")
	}
	if _, err := a.Store.Project(ctx, p.Name); err == nil {
		return problem.New(problem.ProjectExists, "there is a project of that name")
	} else if problem.Of(err).Kind != problem.NotFound {
		return err
	}
	if err := a.Store.AddProject(ctx, p); err != nil {
		return err
	}
	return a.Store.SetMember(ctx, Membership{Project: p.ID, User: who.User, Role: Owner})
}

// Projects lists the projects that the caller sees: its own, or all of them with ServerManage.
func (a *Accounts) Projects(ctx context.Context, who Principal) ([]Project, error) {
	if who.May(ServerManage) {
		return a.Store.Projects(ctx)
	}
	p, err := a.Store.Project(ctx, who.Project)
	if err != nil {
		return nil, err
	}
	return []Project{p}, nil
}

// Project returns a project that the caller sees, by id or name; "" is its own.
func (a *Accounts) Project(ctx context.Context, who Principal, project string) (Project, error) {
	return a.projectFor(ctx, who, project)
}

// projectFor returns the project if it is the caller's, or the caller sees all of them.
func (a *Accounts) projectFor(ctx context.Context, who Principal, project string) (Project, error) {
	if project == "" {
		project = who.Project
	}
	p, err := a.Store.Project(ctx, project)
	if err != nil {
		return Project{}, err
	}
	if p.ID != who.Project && !who.May(ServerManage) {
		return Project{}, notFound(problem.ProjectNotFound)
	}
	return p, nil
}

// SetQuota bounds what a project may use: the JSON of hub.Quota, or nil for the server's default. Needs ServerManage: a project that set its
// own quota would have none.
func (a *Accounts) SetQuota(ctx context.Context, who Principal, project string, quota []byte) (Project, error) {
	p, err := a.setQuota(ctx, who, project, quota)
	return p, a.record(ctx, who, "project.quota", project, string(quota), err)
}

func (a *Accounts) setQuota(ctx context.Context, who Principal, project string, quota []byte) (Project, error) {
	if err := who.Require(ServerManage); err != nil {
		return Project{}, err
	}
	if err := goodQuota(quota); err != nil {
		return Project{}, err
	}
	p, err := a.projectFor(ctx, who, project)
	if err != nil {
		return Project{}, err
	}
	return a.Store.ChangeProject(ctx, p.ID, func(p *Project) error { p.Quota = slices.Clone(quota); return nil })
}

// longestQuota bounds the text of a quota, in bytes.
const longestQuota = 64 << 10

// goodQuota checks the form: an object of a few numbers, and of rules for the network, for code and for what is redacted. What they mean is the hub's to know.
func goodQuota(quota []byte) error {
	if quota == nil {
		return nil
	}
	wrong := problem.New(problem.QuotaInvalid, "a quota is a JSON object of numbers that are not negative, and of network, code and redact")
	if len(quota) > longestQuota || !bytes.HasPrefix(bytes.TrimSpace(quota), []byte("{")) {
		return wrong
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(quota, &parts); err != nil {
		return wrong.WithCause(err)
	}
	for name, part := range parts {
		var number float64
		var network struct{ Allow, Deny []string }
		var code struct {
			Policy string
			Rules  []string
		}
		var err error
		switch name {
		case "network":
			err = json.Unmarshal(part, &network)
		case "redact":
			err = json.Unmarshal(part, &struct{ Kinds []string }{})
		case "code":
			err = json.Unmarshal(part, &code)
		default:
			err = json.Unmarshal(part, &number)
		}
		if err != nil || number < 0 {
			return wrong.WithCause(err)
		}
	}
	return nil
}

// Quotas returns the JSON of what was set for a project and for a key ("" for none), nil where nothing was: for hub.Options.Quotas.
func (a *Accounts) Quotas(ctx context.Context, project, key string) (ofProject, ofKey []byte, err error) {
	p, err := a.Store.Project(ctx, project)
	if err != nil {
		return nil, nil, err
	}
	if key == "" {
		return p.Quota, nil, nil
	}
	k, err := a.Store.Key(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	return p.Quota, k.Quota, nil
}

// Members lists the members of a project that the caller sees; "" is its own. Needs UsersManage.
func (a *Accounts) Members(ctx context.Context, who Principal, project string) ([]Membership, error) {
	if err := who.Require(UsersManage); err != nil {
		return nil, err
	}
	p, err := a.projectFor(ctx, who, project)
	if err != nil {
		return nil, err
	}
	return a.Store.Members(ctx, p.ID)
}

// SetMember gives a user, by id or name, a role in a project ("" is the caller's), or takes the membership with the role "". Needs
// UsersManage. An admin neither makes owners nor changes them, and the last owner stays ("last_owner").
func (a *Accounts) SetMember(ctx context.Context, who Principal, m Membership) (Membership, error) {
	var done Membership
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) (err error) {
		done, err = a.setMember(ctx, who, m)
		return err
	})
	role := string(m.Role)
	if role == "" {
		role = "none"
	}
	if err == nil {
		who.Project = done.Project // whose members changed
	}
	return done, a.record(ctx, who, "member.set", m.User, role, err)
}

func (a *Accounts) setMember(ctx context.Context, who Principal, m Membership) (Membership, error) {
	if err := who.Require(UsersManage); err != nil {
		return Membership{}, err
	}
	if m.Role != "" && !slices.Contains(Roles(), m.Role) {
		return Membership{}, problem.New(problem.RoleUnknown, "there is no such role").
			WithHint("the roles are owner, admin, member, viewer and auditor")
	}
	p, err := a.projectFor(ctx, who, m.Project)
	if err != nil {
		return Membership{}, err
	}
	u, err := a.Store.User(ctx, m.User)
	if err != nil {
		return Membership{}, err
	}
	m.Project, m.User = p.ID, u.ID
	before, err := a.Store.Role(ctx, p.ID, u.ID)
	if err != nil {
		return Membership{}, err
	}
	if !mayTouch(who, p.ID, before) || !mayTouch(who, p.ID, m.Role) {
		return Membership{}, forbidden("only an owner makes owners and changes them")
	}
	if m.Role != Owner {
		if err := a.keepsOwner(ctx, p.ID, u.ID); err != nil {
			return Membership{}, err
		}
	}
	return m, a.Store.SetMember(ctx, m)
}
