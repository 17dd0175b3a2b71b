package auth

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/audit"
)

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
	Quota   []byte    // JSON of hub.Quota; nil: the server's default
	// Subject says whose access tokens of an authorization server the key stands for, as Identity.Subject has it. Such a key has no text, and so no hash. "": it has a text.
	Subject string
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
	// Instructions are for models, in all conversations of the project.
	Instructions string
}

// Membership is a user's role in a project.
type Membership struct {
	Project, User string
	Role          Role
}

// Store keeps accounts. Package store implements it. Not found: user_not_found, project_not_found, key_not_found.
type Store interface {
	KeyStore
	BrowserStore
	PasswordStore
	InvitationStore
	UserStore
	ProjectStore
	// Alone has do look at accounts and change them in one transaction, beside which no other Alone runs, in no other process either. do uses nothing
	// but the store that it is given, and may run more than once.
	Alone(ctx context.Context, do func(ctx context.Context, s Store) error) error
}

// KeyStore keeps keys.
type KeyStore interface {
	AddKey(ctx context.Context, k Key) error
	Key(ctx context.Context, id string) (Key, error)
	KeyOf(ctx context.Context, subject string) (Key, error) // of several the newest that is not revoked; else the newest
	Keys(ctx context.Context, project string) ([]Key, error)
	ChangeKey(ctx context.Context, id string, change func(*Key) error) (Key, error)
}

// UserStore keeps users.
type UserStore interface {
	AddUser(ctx context.Context, u User) error
	User(ctx context.Context, idOrName string) (User, error)
	Users(ctx context.Context) ([]User, error)
	ChangeUser(ctx context.Context, id string, change func(*User) error) (User, error)
	DeleteUser(ctx context.Context, id string) error // with keys, browsers, codes, memberships, password, and invitations for and by the user
}

// ProjectStore keeps projects, and who is what in them.
type ProjectStore interface {
	AddProject(ctx context.Context, p Project) error
	Project(ctx context.Context, idOrName string) (Project, error)
	Projects(ctx context.Context) ([]Project, error)
	ChangeProject(ctx context.Context, id string, change func(*Project) error) (Project, error)
	MemberStore
}

// MemberStore keeps who is what in which project.
type MemberStore interface {
	SetMember(ctx context.Context, m Membership) error            // Role "" removes
	Role(ctx context.Context, project, user string) (Role, error) // "" when not a member
	Members(ctx context.Context, project string) ([]Membership, error)
	Memberships(ctx context.Context, user string) ([]Membership, error) // the oldest project first
}

// Accounts are the users, projects and keys of a server. It is safe for concurrent use. Every change, and every refused one, leaves a
// row in the audit log; a change whose row cannot be written is reported as failed.
//
// Who may do what beyond the table of roles: a member manages his own keys only. An admin rules everybody but owners, and makes nobody an
// owner. A project keeps an owner and the server an admin. Other projects are the matter of those who may ServerManage.
type Accounts struct {
	Store Store
	Audit audit.Log
	Now   func() time.Time // nil: time.Now

	known   known   // keys that were good a moment ago
	hashing hashing // of passwords
	touches touches // notes of when keys were used, on their way to the store
}

func (a *Accounts) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// alone has do change accounts as one step: "is it the last one" and the change after it. do may run more than once.
func (a *Accounts) alone(ctx context.Context, do func(ctx context.Context, a *Accounts) error) error {
	err := a.Store.Alone(ctx, func(ctx context.Context, s Store) error { return do(ctx, &Accounts{Store: s, Now: a.Now}) })
	a.known.forget()
	return err
}

// record writes the audit row of what who did, or tried to do, and returns err, or why the row could not be written.
func (a *Accounts) record(ctx context.Context, who Principal, action, target, detail string, err error) error {
	outcome := "ok"
	if err != nil {
		outcome = problem.Of(err).Code
	}
	row := audit.Row{
		ID: ident.New(ident.Audit), At: a.now().UTC(), Project: who.Project, User: who.User, Key: who.Key, Action: action,
		Target: telemetry.Clean(target), Outcome: outcome, Detail: telemetry.Clean(detail), Request: who.Request, IP: who.IP, Agent: who.Agent,
	}
	if failed := audit.Add(ctx, a.Audit, row); failed != nil && err == nil {
		return failed
	}
	return err
}

// goodName bounds the names of keys, users and projects, which are shown in terminals and pages.
func goodName(name string) error {
	if name == "" || len(name) > 200 || !utf8.ValidString(name) {
		return problem.New(problem.NameInvalid, "a name has 1 to 200 bytes of UTF-8")
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return problem.New(problem.NameInvalid, "a name has no control characters")
		}
	}
	return nil
}

func notFound(code problem.NotFoundCode) error {
	return problem.New(code, "there is no such "+strings.TrimSuffix(string(code), "_not_found"))
}

func forbidden(message string) error { return problem.New(problem.Forbidden, message) }
