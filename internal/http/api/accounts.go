package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"cove/internal/code/screen"
	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Users are the users of a server.
type Users interface {
	CreateUser(ctx context.Context, who auth.Principal, name string, admin bool) (auth.User, error)
	Users(ctx context.Context, who auth.Principal) ([]auth.User, error)
	User(ctx context.Context, who auth.Principal, user string) (auth.User, error)
	Self(ctx context.Context, who auth.Principal) (auth.Self, error)
	SetAdmin(ctx context.Context, who auth.Principal, user string, admin bool) (auth.User, error)
	DeleteUser(ctx context.Context, who auth.Principal, user string) error
}

// Projects are the projects of a server and their members.
type Projects interface {
	CreateProject(ctx context.Context, who auth.Principal, name string) (auth.Project, error)
	Projects(ctx context.Context, who auth.Principal) ([]auth.Project, error)
	Project(ctx context.Context, who auth.Principal, project string) (auth.Project, error)
	SetQuota(ctx context.Context, who auth.Principal, project string, quota []byte) (auth.Project, error)
	Instructions(ctx context.Context, who auth.Principal, project string) (string, error)
	SetInstructions(ctx context.Context, who auth.Principal, project, text string) (auth.Project, error)
	Members(ctx context.Context, who auth.Principal, project string) ([]auth.Membership, error)
	SetMember(ctx context.Context, who auth.Principal, m auth.Membership) (auth.Membership, error)
}

// User is a person or a program.
type User struct {
	ID      string    `json:"id" example:"usr_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Name    string    `json:"name" doc:"Unique, such as an address"`
	Admin   bool      `json:"admin" doc:"Of the server"`
	Created time.Time `json:"created_at"`
}

func userOf(u auth.User) User { u.Created = u.Created.UTC(); return User(u) }

// Project is what sessions, files, conversations and keys belong to.
type Project struct {
	ID      string    `json:"id" example:"prj_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Name    string    `json:"name"`
	Quota   *Quota    `json:"quota,omitempty" doc:"Missing: the server's default"`
	Created time.Time `json:"created_at"`
}

// Quota is what a project or a key may use; what is left out or 0 is no limit.
type Quota struct {
	Sessions   int        `json:"live_sessions,omitempty" minimum:"0" doc:"In memory at once; one that is not used is paused when another needs its place"`
	Executions int        `json:"concurrent_executions,omitempty" minimum:"0" doc:"That run or wait"`
	CPUSeconds float64    `json:"cpu_seconds_per_day,omitempty" minimum:"0" doc:"Of executions; days are UTC"`
	Disk       int64      `json:"disk_bytes,omitempty" minimum:"0" doc:"Of stored files and paused sessions"`
	Tokens     int64      `json:"tokens_per_day,omitempty" minimum:"0" doc:"That models read and wrote"`
	Code       *CodeRules `json:"code,omitempty" doc:"What becomes of code before it runs; of a project in the place of the server's rules, of a key besides. The server's when left out"`
	Redact     *Redaction `json:"redact,omitempty" doc:"What is taken out of what code emits, before anybody sees or stores it; of a project in the place of the server's, of a key besides. The server's when left out"`
	Network    *Reach     `json:"network,omitempty" doc:"Where sessions may connect to, within what the server allows; all of that when left out"`
}

// Reach is where sessions may connect to, in the words of a session's network.
type Reach struct {
	Allow []string `json:"allow,omitempty" maxItems:"256" doc:"Nowhere when left out"`
	Deny  []string `json:"deny,omitempty" maxItems:"256"`
}

// CodeRules say what becomes of code before it runs.
type CodeRules struct {
	Policy string   `json:"policy" enum:"off,note,ask,refuse" doc:"off: nobody looks; note: what is found is in the execution's cautions; ask: serious finds wait for a user's word; refuse: they do not run"`
	Rules  []string `json:"rules,omitempty" maxItems:"100" example:"[\"starts-programs\"]" doc:"Rules that ask and refuse are about besides the serious ones"`
}

// Redaction says what is taken out of what code emits.
type Redaction struct {
	Kinds []string `json:"kinds" maxItems:"20" example:"[\"secrets\",\"cards\"]" doc:"secrets: keys and tokens of known forms; guesses: what looks like the value of a password; cards; people: identity numbers and IBANs; emails; off: nothing is taken out"`
}

// Caution is what calls for a second look in code.
type Caution struct {
	Rule    string `json:"rule" example:"runs-download"`
	Line    int    `json:"line"`
	What    string `json:"what" doc:"What stands there, shortened"`
	Serious bool   `json:"serious,omitempty" doc:"Hardly ever in honest code for data questions"`
}

func cautionsOf(found []screen.Finding) []Caution {
	var out []Caution
	for _, f := range found {
		out = append(out, Caution{Rule: f.Rule, Line: f.Line, What: f.What, Serious: screen.Serious(f.Rule)})
	}
	return out
}

// check returns what is wrong with the rules of a quota.
func (q Quota) check() error {
	if q.Code != nil {
		if err := (hub.CodeRules{Policy: hub.CodePolicy(q.Code.Policy), Rules: q.Code.Rules}).Check(); err != nil {
			return err
		}
	}
	if q.Redact != nil {
		if err := (hub.Redaction{Kinds: q.Redact.Kinds}).Check(); err != nil {
			return err
		}
	}
	if q.Network == nil {
		return nil
	}
	_, err := egress.ParseRules(q.Network.Allow, q.Network.Deny)
	return err
}

// text returns a quota in the form in which it is stored; nil is the server's default.
func (q Quota) text() []byte {
	if q == (Quota{}) {
		return nil
	}
	text, _ := json.Marshal(q)
	return text
}

func quotaOf(text []byte) *Quota {
	var q Quota
	if len(text) == 0 || json.Unmarshal(text, &q) != nil {
		return nil
	}
	return &q
}

func projectOf(p auth.Project) Project {
	return Project{ID: p.ID, Name: p.Name, Quota: quotaOf(p.Quota), Created: p.Created.UTC()}
}

// Member is a user's role in a project.
type Member struct {
	User string    `json:"user"`
	Role auth.Role `json:"role" enum:"owner,admin,member,viewer,auditor"`
}

func memberOf(m auth.Membership) Member { return Member{User: m.User, Role: m.Role} }

type (
	createUser struct {
		Body struct {
			Name  string `json:"name" minLength:"1" maxLength:"200"`
			Admin bool   `json:"admin,omitempty"`
		}
	}
	// UserPath names a user in an address.
	UserPath struct {
		User string `path:"user" maxLength:"200" doc:"Id or name"`
	}
	changeUser struct {
		UserPath
		Body struct {
			Admin bool `json:"admin"`
		}
	}
	createProject struct {
		Body struct {
			Name string `json:"name" minLength:"1" maxLength:"200"`
		}
	}
	// ProjectPath names a project in an address.
	ProjectPath struct {
		Project string `path:"project" maxLength:"200" doc:"Id or name"`
	}
	projectQuota struct {
		ProjectPath
		Body Quota
	}
	// Instructions are for models, in all conversations of a project.
	Instructions struct {
		Text string `json:"instructions" maxLength:"8000" doc:"Models follow them in the turns of this API, of the page and of the command line; those of a turn go first. Empty: none"`
	}
	setInstructions struct {
		ProjectPath
		Body Instructions
	}
	// MemberPath names a user of a project in an address.
	MemberPath struct {
		ProjectPath
		User string `path:"user" maxLength:"200" doc:"Id or name"`
	}
	setMember struct {
		MemberPath
		Body struct {
			Role auth.Role `json:"role" enum:"owner,admin,member,viewer,auditor"`
		}
	}
)

func (s *server) addUsers() {
	const tag = "users and projects"
	add(s, operation{id: "user.create", method: http.MethodPost, path: "/users", tag: tag, action: auth.ServerManage, status: http.StatusCreated, repeat: repeatKept, summary: "Create a user",
		about: "The user is no member of a project yet: set a role in a project next, then make a key.", errors: []problem.Code{problem.UserExists}, example: `curl -H "Authorization: Bearer $KEY" $COVE/users -d '{"name":"bob@example.com"}'`},
		func(ctx context.Context, who auth.Principal, in *createUser) (User, error) {
			u, err := s.o.Accounts.CreateUser(ctx, who, in.Body.Name, in.Body.Admin)
			return userOf(u), err
		})
	add(s, operation{id: "user.list", method: http.MethodGet, path: "/users", tag: tag, action: auth.ServerManage, summary: "List users", example: `curl -H "Authorization: Bearer $KEY" $COVE/users`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (List[User], error) {
			out, err := s.o.Accounts.Users(ctx, who)
			return List[User]{Items: each(out, userOf)}, err
		})
	add(s, operation{id: "user.get", method: http.MethodGet, path: "/users/{user}", tag: tag, action: auth.ServerManage, summary: "Get a user", errors: []problem.Code{problem.UserNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/users/ann@example.com`},
		func(ctx context.Context, who auth.Principal, in *UserPath) (User, error) {
			u, err := s.o.Accounts.User(ctx, who, in.User)
			return userOf(u), err
		})
	add(s, operation{id: "user.change", method: http.MethodPatch, path: "/users/{user}", tag: tag, action: auth.ServerManage, summary: "Make a user an admin of the server, or no longer one",
		errors: []problem.Code{problem.UserNotFound, problem.LastAdmin}, example: `curl -H "Authorization: Bearer $KEY" -X PATCH $COVE/users/ann@example.com -d '{"admin":true}'`},
		func(ctx context.Context, who auth.Principal, in *changeUser) (User, error) {
			u, err := s.o.Accounts.SetAdmin(ctx, who, in.User, in.Body.Admin)
			return userOf(u), err
		})
	addSilent(s, operation{id: "user.delete", method: http.MethodDelete, path: "/users/{user}", tag: tag, action: auth.ServerManage, summary: "Delete a user",
		about: "With keys and memberships; what the user made stays with the projects.", errors: []problem.Code{problem.UserNotFound, problem.LastAdmin, problem.LastOwner},
		example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/users/bob@example.com`},
		func(ctx context.Context, who auth.Principal, in *UserPath) error {
			return s.o.Accounts.DeleteUser(ctx, who, in.User)
		})
}

func (s *server) addProjects() {
	const tag = "users and projects"
	add(s, operation{id: "project.create", method: http.MethodPost, path: "/projects", tag: tag, action: auth.ServerManage, status: http.StatusCreated, repeat: repeatKept, summary: "Create a project",
		about: "You are its owner.", errors: []problem.Code{problem.ProjectExists}, example: `curl -H "Authorization: Bearer $KEY" $COVE/projects -d '{"name":"teaching"}'`},
		func(ctx context.Context, who auth.Principal, in *createProject) (Project, error) {
			p, err := s.o.Accounts.CreateProject(ctx, who, in.Body.Name)
			return projectOf(p), err
		})
	add(s, operation{id: "project.list", method: http.MethodGet, path: "/projects", tag: tag, summary: "List projects", about: "The project of your key; with `server:manage` all projects. Any key is enough.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/projects`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (List[Project], error) {
			out, err := s.o.Accounts.Projects(ctx, who)
			return List[Project]{Items: each(out, projectOf)}, err
		})
	add(s, operation{id: "project.get", method: http.MethodGet, path: "/projects/{project}", tag: tag, summary: "Get a project", about: "Any key of the project is enough.", errors: []problem.Code{problem.ProjectNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/projects/research`},
		func(ctx context.Context, who auth.Principal, in *ProjectPath) (Project, error) {
			p, err := s.o.Accounts.Project(ctx, who, in.Project)
			return projectOf(p), err
		})
	add(s, operation{id: "project.quota", method: http.MethodPut, path: "/projects/{project}/quota", tag: tag, action: auth.ServerManage, summary: "Bound what a project may use",
		about: "`{}` goes back to the server's default.", errors: []problem.Code{problem.ProjectNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X PUT $COVE/projects/research/quota \
  -d '{"live_sessions":20,"tokens_per_day":1000000}'`},
		func(ctx context.Context, who auth.Principal, in *projectQuota) (Project, error) {
			if err := in.Body.check(); err != nil {
				return Project{}, err
			}
			p, err := s.o.Accounts.SetQuota(ctx, who, in.Project, in.Body.text())
			return projectOf(p), err
		})
	add(s, operation{id: "project.instructions", method: http.MethodGet, path: "/projects/{project}/instructions", tag: tag, action: auth.ConversationsRead, summary: "Get a project's instructions for models",
		errors: []problem.Code{problem.ProjectNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/projects/research/instructions`},
		func(ctx context.Context, who auth.Principal, in *ProjectPath) (Instructions, error) {
			text, err := s.o.Accounts.Instructions(ctx, who, in.Project)
			return Instructions{Text: text}, err
		})
	add(s, operation{id: "project.instructions.set", method: http.MethodPut, path: "/projects/{project}/instructions", tag: tag, action: auth.UsersManage, summary: "Set a project's instructions for models",
		about: "They hold for turns that begin afterwards.", errors: []problem.Code{problem.ProjectNotFound, problem.InstructionsInvalid},
		example: `curl -H "Authorization: Bearer $KEY" -X PUT $COVE/projects/research/instructions \
  -d '{"instructions":"Amounts are in euros. Round to whole ones."}'`},
		func(ctx context.Context, who auth.Principal, in *setInstructions) (Instructions, error) {
			p, err := s.o.Accounts.SetInstructions(ctx, who, in.Project, in.Body.Text)
			return Instructions{Text: p.Instructions}, err
		})
	add(s, operation{id: "member.list", method: http.MethodGet, path: "/projects/{project}/members", tag: tag, action: auth.UsersManage, summary: "List a project's members", errors: []problem.Code{problem.ProjectNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/projects/research/members`},
		func(ctx context.Context, who auth.Principal, in *ProjectPath) (List[Member], error) {
			out, err := s.o.Accounts.Members(ctx, who, in.Project)
			return List[Member]{Items: each(out, memberOf)}, err
		})
	add(s, operation{id: "member.set", method: http.MethodPut, path: "/projects/{project}/members/{user}", tag: tag, action: auth.UsersManage, summary: "Give a user a role in a project",
		errors: []problem.Code{problem.ProjectNotFound, problem.UserNotFound, problem.LastOwner}, example: `curl -H "Authorization: Bearer $KEY" -X PUT $COVE/projects/research/members/bob@example.com -d '{"role":"viewer"}'`},
		func(ctx context.Context, who auth.Principal, in *setMember) (Member, error) {
			m, err := s.o.Accounts.SetMember(ctx, who, auth.Membership{Project: in.Project, User: in.User, Role: in.Body.Role})
			return memberOf(m), err
		})
	addSilent(s, operation{id: "member.remove", method: http.MethodDelete, path: "/projects/{project}/members/{user}", tag: tag, action: auth.UsersManage, summary: "Remove a user from a project",
		errors: []problem.Code{problem.ProjectNotFound, problem.UserNotFound, problem.LastOwner}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/projects/research/members/bob@example.com`},
		func(ctx context.Context, who auth.Principal, in *MemberPath) error {
			_, err := s.o.Accounts.SetMember(ctx, who, auth.Membership{Project: in.Project, User: in.User})
			return err
		})
}
