package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
)

// Accounts is what the interface needs of the server's users, projects and keys; *auth.Accounts, which documents the methods.
type Accounts interface {
	Keys
	Browsers
	Invitations
	Users
	Projects
	// Rows returns audit rows, the newest first.
	Rows(ctx context.Context, who auth.Principal, all bool, q audit.Query) ([]audit.Row, error)
}

// Keys are the keys of a server.
type Keys interface {
	CreateKey(ctx context.Context, who auth.Principal, n auth.NewKey) (auth.Key, string, error)
	Keys(ctx context.Context, who auth.Principal) ([]auth.Key, error)
	AllKeys(ctx context.Context, who auth.Principal) ([]auth.Key, error)
	RevokeKey(ctx context.Context, who auth.Principal, id string) (auth.Key, error)
	SetKeyQuota(ctx context.Context, who auth.Principal, id string, quota []byte) (auth.Key, error)
}

// Key is a key without its secret.
type Key struct {
	ID      string        `json:"id" example:"key_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Name    string        `json:"name"`
	Project string        `json:"project"`
	User    string        `json:"user"`
	Last4   string        `json:"last4" doc:"The last characters of the key"`
	Scopes  []auth.Action `json:"scopes,omitempty" doc:"What it is limited to; missing: all that its user may"`
	Quota   *Quota        `json:"quota,omitempty"`
	Holder  string        `json:"holder,omitempty" doc:"Whose access tokens of an authorization server it stands for; such a key has no text"`
	Created time.Time     `json:"created_at"`
	Expires *time.Time    `json:"expires_at,omitempty"`
	Used    *time.Time    `json:"used_at,omitempty" doc:"To the minute"`
	Revoked *time.Time    `json:"revoked_at,omitempty"`
}

func keyOf(k auth.Key) Key {
	return Key{ID: k.ID, Name: k.Name, Project: k.Project, User: k.User, Last4: k.Last4, Scopes: k.Scopes, Quota: quotaOf(k.Quota), Holder: k.Subject, Created: k.Created.UTC(),
		Expires: moment(k.Expires), Used: moment(k.Used), Revoked: moment(k.Revoked)}
}

// MadeKey is a new key with its text.
type MadeKey struct {
	Text string `json:"text" doc:"The key itself. It is shown here and never again" example:"cove_..."`
	Key  Key    `json:"key"`
}

// NewKey says what key to make.
type NewKey struct {
	Name    string        `json:"name" minLength:"1" maxLength:"200"`
	Project string        `json:"project,omitempty" maxLength:"200" doc:"Id or name; your own when left out"`
	User    string        `json:"user,omitempty" maxLength:"200" doc:"Id or name; you when left out"`
	Scopes  []auth.Action `json:"scopes,omitempty" maxItems:"32" doc:"All that you may when left out" example:"[\"sessions:read\",\"sessions:execute\"]"`
	Life    int64         `json:"life_seconds,omitempty" minimum:"0" maximum:"3153600000" doc:"For ever when left out"`
}

type (
	createKey struct{ Body NewKey }
	listKeys  struct {
		All bool `query:"all" doc:"Of all projects, which needs server:manage"`
	}
	// KeyPath names a key in an address.
	KeyPath struct {
		Key string `path:"key" maxLength:"64" example:"key_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	keyQuota struct {
		KeyPath
		Body Quota
	}
)

func (s *server) addKeys() {
	const tag = "keys"
	add(s, operation{id: "key.create", method: http.MethodPost, path: "/keys", tag: tag, action: auth.KeysManage, status: http.StatusCreated, repeat: repeatNever, summary: "Create a key",
		about: "Its text is in the answer and is not shown again: for that reason this POST takes no Idempotency-Key. Members make keys for themselves; no user can make a key with more rights than their own.", errors: []problem.Code{problem.Forbidden, problem.ScopeUnknown, problem.TooManyKeys},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/keys \
  -d '{"name":"notebook","scopes":["sessions:read","sessions:execute"],"life_seconds":604800}'`},
		func(ctx context.Context, who auth.Principal, in *createKey) (MadeKey, error) {
			b := in.Body
			k, text, err := s.o.Accounts.CreateKey(ctx, who, auth.NewKey{Name: b.Name, Project: b.Project, User: b.User, Scopes: b.Scopes, Life: seconds(b.Life)})
			return MadeKey{Text: text, Key: keyOf(k)}, err
		})
	add(s, operation{id: "key.list", method: http.MethodGet, path: "/keys", tag: tag, action: auth.KeysManage, summary: "List keys", about: "The project's keys; a member sees their own.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/keys`},
		func(ctx context.Context, who auth.Principal, in *listKeys) (List[Key], error) {
			list := s.o.Accounts.Keys
			if in.All {
				list = s.o.Accounts.AllKeys
			}
			out, err := list(ctx, who)
			return List[Key]{Items: each(out, keyOf)}, err
		})
	add(s, operation{id: "key.revoke", method: http.MethodDelete, path: "/keys/{key}", tag: tag, action: auth.KeysManage, summary: "Revoke a key", about: "At once. It stays in the list.",
		errors: []problem.Code{problem.KeyNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/keys/$OTHER`},
		func(ctx context.Context, who auth.Principal, in *KeyPath) (Key, error) {
			k, err := s.o.Accounts.RevokeKey(ctx, who, in.Key)
			return keyOf(k), err
		})
	add(s, operation{id: "key.quota", method: http.MethodPut, path: "/keys/{key}/quota", tag: tag, action: auth.UsersManage, summary: "Bound what a key may use",
		about: "Numbers that are left out are not bounded by the key; `{}` lifts all.", errors: []problem.Code{problem.KeyNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X PUT $COVE/keys/$OTHER/quota -d '{"tokens_per_day":100000}'`},
		func(ctx context.Context, who auth.Principal, in *keyQuota) (Key, error) {
			if err := in.Body.check(); err != nil {
				return Key{}, err
			}
			k, err := s.o.Accounts.SetKeyQuota(ctx, who, in.Key, in.Body.text())
			return keyOf(k), err
		})
}
