// Package auth says who calls and what they may do: keys, users, projects, roles, and the one decision that every surface obeys.
package auth

import (
	"slices"
	"strings"

	"cove/internal/core/problem"
)

// Action is what a caller wants to do. The names are those of key scopes.
type Action string

// The actions.
const (
	SessionsRead       Action = "sessions:read"
	SessionsWrite      Action = "sessions:write" // create, extend, pause, resume, fork, delete
	SessionsExecute    Action = "sessions:execute"
	FilesRead          Action = "files:read"
	FilesWrite         Action = "files:write"
	PackagesInstall    Action = "packages:install"
	ConversationsRead  Action = "conversations:read"
	ConversationsWrite Action = "conversations:write"
	ModelsRead         Action = "models:read"
	UsageRead          Action = "usage:read"
	KeysManage         Action = "keys:manage"
	UsersManage        Action = "users:manage" // the members of a project and the quotas of its keys
	AuditRead          Action = "audit:read"
	ServerManage       Action = "server:manage" // projects, their quotas and users of the whole server; needs Principal.Admin besides
)

// Role is what a user is in a project.
type Role string

// The roles.
const (
	Owner   Role = "owner"   // everything
	Admin   Role = "admin"   // everything but the owners
	Member  Role = "member"  // works: sessions, files, conversations
	Viewer  Role = "viewer"  // reads what members do
	Auditor Role = "auditor" // reads the audit log and the usage, and nothing that users made
)

// Principal is an authenticated caller. Everything it makes belongs to its project, and it sees nothing of other projects.
type Principal struct {
	User    string // ident.User
	Project string // ident.Project
	Key     string // ident.Key; "" in the command line's own process, and of a browser that was signed in with a code
	Browser string // ident.Browser, where a browser that is signed in calls
	Role    Role
	Scopes  []Action // what the key is limited to; nil: everything that the role may
	Admin   bool     // of the server

	// What the audit log says of the request.
	Request, IP, Agent string
}

// Require returns nil when the principal may do a, and otherwise a problem of kind Denied with code "forbidden".
func (p Principal) Require(a Action) error {
	if p.May(a) {
		return nil
	}
	return problem.New(problem.Forbidden, "this key may not do that: it takes "+string(a)).
		WithHint("use a key whose role and scopes have " + string(a))
}

// May says whether the principal may do a.
func (p Principal) May(a Action) bool {
	if a == ServerManage && !p.Admin {
		return false
	}
	return slices.Contains(rights[p.Role], a) && (p.Scopes == nil || slices.Contains(p.Scopes, a))
}

var (
	reading = []Action{SessionsRead, FilesRead, ConversationsRead, ModelsRead, UsageRead}
	working = slices.Concat(reading, []Action{SessionsWrite, SessionsExecute, FilesWrite, PackagesInstall, ConversationsWrite})
	ruling  = slices.Concat(working, []Action{KeysManage, UsersManage, AuditRead, ServerManage})
)

// rights is the whole table of roles and actions.
var rights = map[Role][]Action{
	Owner:   ruling,
	Admin:   ruling,
	Member:  append(slices.Clone(working), KeysManage), // of their own; see Accounts
	Viewer:  reading,
	Auditor: {UsageRead, AuditRead},
}

// Actions returns all actions.
func Actions() []Action {
	return []Action{
		SessionsRead, SessionsWrite, SessionsExecute, FilesRead, FilesWrite, PackagesInstall, ConversationsRead, ConversationsWrite,
		ModelsRead, UsageRead, KeysManage, UsersManage, AuditRead, ServerManage,
	}
}

// Roles returns all roles, the mightiest first.
func Roles() []Role { return []Role{Owner, Admin, Member, Viewer, Auditor} }

func actionList() string {
	names := make([]string, 0, len(Actions()))
	for _, a := range Actions() {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// LocalProject and LocalUser own what the command line does without a server, and what the first key of a server sees.
const (
	LocalProject = "prj_00000000000000000000000000"
	LocalUser    = "usr_00000000000000000000000000"
)

// Local is who the command line is in its own process: a person who can read the data folder owns its content.
func Local() Principal {
	return Principal{User: LocalUser, Project: LocalProject, Role: Owner, Admin: true}
}
