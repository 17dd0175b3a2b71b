package cli

import (
	"context"
	"encoding/json"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// remoteAdmin administers a server with the rights of a key.
type remoteAdmin struct {
	client *client.Client
	me     *api.Caller // nil: not asked yet
}

var _ administration = (*remoteAdmin)(nil)

func (r *remoteAdmin) close() error { r.client.Close(); return nil }

// self is whom the key stands for.
func (r *remoteAdmin) self(ctx context.Context) (api.Caller, error) {
	if r.me == nil {
		me, err := r.client.Me(ctx)
		if err != nil {
			return me, err
		}
		r.me = &me
	}
	return *r.me, nil
}

// in is a project by id or name, the key's when none is named.
func (r *remoteAdmin) in(ctx context.Context, project string) (string, error) {
	if project != "" {
		return project, nil
	}
	me, err := r.self(ctx)
	return me.Project, err
}

func (r *remoteAdmin) CreateKey(ctx context.Context, n auth.NewKey) (auth.Key, string, error) {
	if err := localFlags(map[string]bool{"--holder": n.Holder != nil}); err != nil {
		return auth.Key{}, "", err
	}
	made, err := r.client.CreateKey(ctx, api.NewKey{Name: n.Name, Project: n.Project, User: n.User, Scopes: n.Scopes, Life: wholeSeconds(n.Life)})
	return keyFrom(made.Key), made.Text, err
}

// wholeSeconds rounds up, so that what is not nothing stays something.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func keyFrom(k api.Key) auth.Key {
	return auth.Key{ID: k.ID, Project: k.Project, User: k.User, Name: k.Name, Last4: k.Last4, Scopes: k.Scopes, Subject: k.Holder, Created: k.Created,
		Expires: moment(k.Expires), Used: moment(k.Used), Revoked: moment(k.Revoked)}
}

func (r *remoteAdmin) Keys(ctx context.Context, project string, all bool) ([]auth.Key, error) {
	id := ""
	if project != "" {
		found, err := r.client.Project(ctx, project)
		if err != nil {
			return nil, err
		}
		me, err := r.self(ctx)
		if err != nil {
			return nil, err
		}
		if id = found.ID; id != me.Project {
			all = true
		}
	}
	keys, err := r.client.Keys(ctx, all)
	var out []auth.Key
	for _, k := range keys {
		if id == "" || k.Project == id {
			out = append(out, keyFrom(k))
		}
	}
	return out, err
}

func (r *remoteAdmin) RevokeKey(ctx context.Context, id string) (auth.Key, error) {
	k, err := r.client.RevokeKey(ctx, id)
	return keyFrom(k), err
}

func (r *remoteAdmin) Manages(ctx context.Context) (bool, error) {
	me, err := r.self(ctx)
	return auth.Principal{Role: me.Role, Admin: me.Admin, Scopes: me.Scopes}.May(auth.ServerManage), err
}

func (r *remoteAdmin) CreateUser(ctx context.Context, name string, admin bool) (auth.User, error) {
	u, err := r.client.CreateUser(ctx, name, admin)
	return auth.User(u), err
}

func (r *remoteAdmin) Users(ctx context.Context) ([]auth.User, error) {
	users, err := r.client.Users(ctx)
	out := make([]auth.User, 0, len(users))
	for _, u := range users {
		out = append(out, auth.User(u))
	}
	return out, err
}

func (r *remoteAdmin) DeleteUser(ctx context.Context, user string) error {
	return r.client.DeleteUser(ctx, user)
}

func (r *remoteAdmin) Invite(ctx context.Context, n auth.NewInvitation) (auth.Invitation, string, error) {
	i, err := r.client.Invite(ctx, client.NewInvitation{Role: n.Role, Name: n.Name, Seconds: wholeSeconds(n.Life), Project: n.Project, User: n.User})
	return auth.Invitation{ID: i.ID, Project: i.Project, Role: i.Role, Name: i.Name, User: i.User, Maker: i.Maker, Created: i.Created, Expires: i.Expires},
		InvitationAddress(r.client.Base(), i.Code), err
}

func (r *remoteAdmin) CreateProject(ctx context.Context, name string) (auth.Project, error) {
	made, err := r.client.CreateProject(ctx, name)
	return projectFrom(made), err
}

func projectFrom(p api.Project) auth.Project {
	out := auth.Project{ID: p.ID, Name: p.Name, Created: p.Created}
	if p.Quota != nil {
		out.Quota, _ = json.Marshal(p.Quota) // it came as JSON
	}
	return out
}

func (r *remoteAdmin) Projects(ctx context.Context) ([]auth.Project, error) {
	all, err := r.client.Projects(ctx)
	out := make([]auth.Project, 0, len(all))
	for _, p := range all {
		out = append(out, projectFrom(p))
	}
	return out, err
}

func (r *remoteAdmin) Project(ctx context.Context, project string) (auth.Project, error) {
	project, err := r.in(ctx, project)
	if err != nil {
		return auth.Project{}, err
	}
	found, err := r.client.Project(ctx, project)
	return projectFrom(found), err
}

func (r *remoteAdmin) Members(ctx context.Context, project string) ([]auth.Membership, error) {
	project, err := r.in(ctx, project)
	if err != nil {
		return nil, err
	}
	members, err := r.client.Members(ctx, project)
	out := make([]auth.Membership, 0, len(members))
	for _, m := range members {
		out = append(out, auth.Membership{Project: project, User: m.User, Role: m.Role})
	}
	return out, err
}

func (r *remoteAdmin) SetMember(ctx context.Context, m auth.Membership) error {
	project, err := r.in(ctx, m.Project)
	if err != nil {
		return err
	}
	if m.Role == "" {
		return r.client.RemoveMember(ctx, project, m.User)
	}
	_, err = r.client.SetMember(ctx, project, m.User, m.Role)
	return err
}

func (r *remoteAdmin) DefaultQuota(ctx context.Context) (q hub.Quota, err error) {
	s, err := r.client.Settings(ctx)
	if err != nil {
		return q, err
	}
	if s.Quota == nil {
		return q, problem.New(problem.Forbidden, "this key may not set quotas: it takes server:manage").WithHint("use a key of an admin of the server")
	}
	return hub.Quota{Sessions: s.Quota.Sessions, Executions: s.Quota.Executions, CPUSeconds: s.Quota.CPUSeconds, Disk: s.Quota.Disk, Tokens: s.Quota.Tokens}, nil
}

func (r *remoteAdmin) SetQuota(ctx context.Context, project string, q *hub.Quota) error {
	text := []byte("{}")
	if q != nil {
		var err error
		if text, err = json.Marshal(q); err != nil {
			return err
		}
		if string(text) == "{}" {
			return problem.New(problem.Usage, "a server takes a quota without any limit for its default").WithHint("give at least one limit, such as --sessions 1000, or --default")
		}
	}
	_, err := r.client.SetQuota(ctx, project, text)
	return err
}

func (r *remoteAdmin) Usage(ctx context.Context, project, key, first, last string) ([]hub.Usage, error) {
	return r.client.Usage(ctx, project, key, first, last)
}

func (r *remoteAdmin) Answers(ctx context.Context, project, first, last string) ([]hub.AnswerDay, error) {
	return r.client.Answers(ctx, project, first, last)
}

func (r *remoteAdmin) Rows(ctx context.Context, project string, q audit.Query) ([]audit.Row, error) {
	all := false
	if project == "" {
		var err error
		if all, err = r.Manages(ctx); err != nil {
			return nil, err
		}
	}
	rows, err := r.client.Audit(ctx, client.AuditFilter{Project: project, All: all, User: q.User, Key: q.Key, Action: q.Action, Target: q.Target, Outcome: q.Outcome, From: q.From, To: q.To},
		q.Before, q.Limit)
	return rows.Items, err
}

func (r *remoteAdmin) Instructions(ctx context.Context, project string) (string, error) {
	project, err := r.in(ctx, project)
	if err != nil {
		return "", err
	}
	return r.client.Instructions(ctx, project)
}

func (r *remoteAdmin) SetInstructions(ctx context.Context, project, text string) error {
	project, err := r.in(ctx, project)
	if err != nil {
		return err
	}
	return r.client.SetInstructions(ctx, project, text)
}
