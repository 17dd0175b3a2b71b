package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cove/internal/http/api"
	"cove/internal/server/auth"
)

// Settings says what can be done on the server.
func (c *Client) Settings(ctx context.Context) (api.Settings, error) {
	return get[api.Settings](ctx, c, "/settings", nil)
}

// CreateKey makes a key; its text is in the answer and cannot be had again. It is made once at most: when the server does not answer, it may be in the list.
func (c *Client) CreateKey(ctx context.Context, n api.NewKey) (api.MadeKey, error) {
	return act[api.MadeKey](ctx, c, http.MethodPost, "/keys", n)
}

// Keys lists the project's keys, or with all those of every project, which takes server:manage.
func (c *Client) Keys(ctx context.Context, all bool) ([]api.Key, error) {
	return items[api.Key](ctx, c, "/keys", set(url.Values{}, "all", all))
}

// RevokeKey ends a key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) (api.Key, error) {
	return act[api.Key](ctx, c, http.MethodDelete, "/keys"+join(id), nil)
}

// CreateUser makes a user, who is no member of a project yet. Takes server:manage, as all about users does.
func (c *Client) CreateUser(ctx context.Context, name string, admin bool) (api.User, error) {
	return create[api.User](ctx, c, "/users", map[string]any{"name": name, "admin": admin})
}

// Users lists the users of the server.
func (c *Client) Users(ctx context.Context) ([]api.User, error) {
	return items[api.User](ctx, c, "/users", nil)
}

// User returns a user, by id or name.
func (c *Client) User(ctx context.Context, user string) (api.User, error) {
	return get[api.User](ctx, c, "/users"+join(user), nil)
}

// DeleteUser removes a user, by id or name, with keys and memberships.
func (c *Client) DeleteUser(ctx context.Context, user string) error {
	return c.delete(ctx, "/users"+join(user), nil)
}

// CreateProject makes a project, whose owner is the user of the key.
func (c *Client) CreateProject(ctx context.Context, name string) (api.Project, error) {
	return create[api.Project](ctx, c, "/projects", map[string]string{"name": name})
}

// Projects lists the project of the key; with server:manage all of them.
func (c *Client) Projects(ctx context.Context) ([]api.Project, error) {
	return items[api.Project](ctx, c, "/projects", nil)
}

// Project returns a project, by id or name.
func (c *Client) Project(ctx context.Context, project string) (api.Project, error) {
	return get[api.Project](ctx, c, "/projects"+join(project), nil)
}

// SetQuota bounds what a project may use: the JSON of an api.Quota. "{}" goes back to the server's default.
func (c *Client) SetQuota(ctx context.Context, project string, quota json.RawMessage) (api.Project, error) {
	return act[api.Project](ctx, c, http.MethodPut, "/projects"+join(project, "quota"), quota)
}

// Instructions returns what models are asked to do in all conversations of a project.
func (c *Client) Instructions(ctx context.Context, project string) (string, error) {
	out, err := get[api.Instructions](ctx, c, "/projects"+join(project, "instructions"), nil)
	return out.Text, err
}

// SetInstructions sets them; "" removes them.
func (c *Client) SetInstructions(ctx context.Context, project, text string) error {
	_, err := act[api.Instructions](ctx, c, http.MethodPut, "/projects"+join(project, "instructions"), api.Instructions{Text: text})
	return err
}

// Members lists the members of a project.
func (c *Client) Members(ctx context.Context, project string) ([]api.Member, error) {
	return items[api.Member](ctx, c, "/projects"+join(project, "members"), nil)
}

// SetMember gives a user, by id or name, a role in a project.
func (c *Client) SetMember(ctx context.Context, project, user string, role auth.Role) (api.Member, error) {
	return act[api.Member](ctx, c, http.MethodPut, "/projects"+join(project, "members", user), map[string]auth.Role{"role": role})
}

// RemoveMember takes a user out of a project.
func (c *Client) RemoveMember(ctx context.Context, project, user string) error {
	return c.delete(ctx, "/projects"+join(project, "members", user), nil)
}

// NewInvitation says whom to invite to what; see the API's document.
type NewInvitation struct {
	Role    auth.Role `json:"role,omitempty"`
	Name    string    `json:"name,omitempty"`
	Seconds int64     `json:"seconds,omitempty"`
	Project string    `json:"project,omitempty"`
	User    string    `json:"user,omitempty"`
}

// Invite makes an invitation; its code is in the answer and cannot be had again.
func (c *Client) Invite(ctx context.Context, n NewInvitation) (api.MadeInvitation, error) {
	return act[api.MadeInvitation](ctx, c, http.MethodPost, "/invitations", n)
}

// Usage returns what a project ("": the key's), or one of its keys, used on the days from first to last ("2026-11-21"; "" for the last week).
func (c *Client) Usage(ctx context.Context, project, key, first, last string) ([]api.Usage, error) {
	return items[api.Usage](ctx, c, "/usage", url.Values{"project": {project}, "key": {key}, "from": {first}, "to": {last}})
}

// Answers returns how the answers of models went in a project, by day and model, as Usage does.
func (c *Client) Answers(ctx context.Context, project, first, last string) ([]api.AnswerDay, error) {
	return items[api.AnswerDay](ctx, c, "/usage/models", url.Values{"project": {project}, "from": {first}, "to": {last}})
}

// AuditFilter narrows the rows of the audit log; empty fields do not.
type AuditFilter struct {
	Project                            string // by id or name; "": the key's
	All                                bool   // of all projects, which takes server:manage
	User, Key, Action, Target, Outcome string
	From, To                           time.Time
}

// Audit returns audit rows, the newest first: limit of them after the one with the id after ("" for the newest).
func (c *Client) Audit(ctx context.Context, f AuditFilter, after string, limit int) (api.List[api.AuditRow], error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}, "after": {after}, "project": {f.Project}, "user": {f.User}, "key": {f.Key}, "action": {f.Action}, "target": {f.Target},
		"outcome": {f.Outcome}, "from": {stamp(f.From)}, "to": {stamp(f.To)}}
	return get[api.List[api.AuditRow]](ctx, c, "/audit", given(set(q, "all", f.All)))
}

// stamp is a time as the interface takes it; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// items asks for a list that comes whole.
func items[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	out, err := get[api.List[T]](ctx, c, path, given(query))
	return out.Items, err
}

// set adds name=true when it is.
func set(q url.Values, name string, is bool) url.Values {
	if is {
		q.Set(name, "true")
	}
	return q
}

// given is a query without what is empty.
func given(q url.Values) url.Values {
	out := url.Values{}
	for name, values := range q {
		if len(values) > 0 && values[0] != "" {
			out[name] = values
		}
	}
	return out
}
