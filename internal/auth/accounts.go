package auth

import (
	"context"
	"errors"
	"time"

	"cove/internal/audit"
)

var errTodo = errors.New("not written yet")

// Key is a key as it is kept: never its secret.
type Key struct {
	ID      string // ident.Key; the part of the key's text that it is found by
	Project string
	User    string
	Name    string
	Hash    []byte // SHA-256 of the secret
	Last4   string // of the text
	Scopes  []Action
	Created time.Time
	Expires time.Time // zero: never
	Used    time.Time // to the minute
	Revoked time.Time // zero: it is good
}

// User is a person or a program.
type User struct {
	ID      string
	Name    string // unique, such as an address
	Admin   bool   // of the server
	Created time.Time
}

// Project is what sessions, files, conversations and keys belong to.
type Project struct {
	ID      string
	Name    string // unique
	Created time.Time
	Quota   []byte // JSON of hub.Quota; nil: the server's default
}

// Membership is a user's role in a project.
type Membership struct {
	Project, User string
	Role          Role
}

// Store keeps accounts. Package store implements it. Not found: user_not_found, project_not_found, key_not_found.
type Store interface {
	AddKey(ctx context.Context, k Key) error
	Key(ctx context.Context, id string) (Key, error)
	Keys(ctx context.Context, project string) ([]Key, error)
	ChangeKey(ctx context.Context, id string, change func(*Key) error) (Key, error)
	AddUser(ctx context.Context, u User) error
	User(ctx context.Context, idOrName string) (User, error)
	Users(ctx context.Context) ([]User, error)
	ChangeUser(ctx context.Context, id string, change func(*User) error) (User, error)
	DeleteUser(ctx context.Context, id string) error // with keys and memberships
	AddProject(ctx context.Context, p Project) error
	Project(ctx context.Context, idOrName string) (Project, error)
	Projects(ctx context.Context) ([]Project, error)
	ChangeProject(ctx context.Context, id string, change func(*Project) error) (Project, error)
	SetMember(ctx context.Context, m Membership) error                // Role "" removes
	Role(ctx context.Context, project, user string) (Role, error) // "" when not a member
	Members(ctx context.Context, project string) ([]Membership, error)
}

// Accounts are the users, projects and keys of a server. It is safe for concurrent use.
type Accounts struct {
	Store Store
	Audit audit.Log
	Now   func() time.Time // nil: time.Now
}

// NewKey says what key to make.
type NewKey struct {
	Name    string
	Project string // "": the caller's
	User    string // "": the caller
	Scopes  []Action
	Life    time.Duration // 0: for ever
}

// CreateKey makes a key and returns its text, which is not kept and cannot be had again. Members make keys for themselves only; nobody
// makes a key with more rights than his own.
func (a *Accounts) CreateKey(ctx context.Context, who Principal, n NewKey) (Key, string, error) {
	return Key{}, "", errTodo
}

// Keys lists the project's keys; a member sees his own.
func (a *Accounts) Keys(ctx context.Context, who Principal) ([]Key, error) { return nil, errTodo }

// RevokeKey ends a key at once.
func (a *Accounts) RevokeKey(ctx context.Context, who Principal, id string) (Key, error) {
	return Key{}, errTodo
}

// Authenticate returns whom a key's text stands for. Any other text, a revoked or an expired key is a problem of kind Denied with code
// "unauthenticated" (or "key_expired") that does not say which.
func (a *Accounts) Authenticate(ctx context.Context, text string) (Principal, error) {
	return Principal{}, errTodo
}

// Found makes the local project, its owner and, when there is no key at all, a first one, whose text it returns ("" otherwise). first
// is a text to use for it instead of a random one, as an operator may set.
func (a *Accounts) Found(ctx context.Context, first string) (text string, err error) {
	return "", errTodo
}
