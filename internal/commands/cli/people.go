package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

type userCmd struct {
	Add userAdd `cmd:"" help:"Add a user."`
	Ls  userLs  `cmd:"" help:"List the users and what they are in which project."`
	Rm  userRm  `cmd:"" help:"Remove a user with all keys; what the user made stays with the projects."`

	Invite userInvite `cmd:"" help:"Print an address by which somebody becomes a member of a project, or a user sets a new password."`
}

// Help is the long help.
func (userCmd) Help() string {
	return `Roles: owner, everything; admin, everything but the owners; member, works; viewer, reads what members do; auditor, reads the audit
log and the usage alone. With --server these commands work on a server, with the rights of the key; most take one of an admin of the server.

Examples:

    cove user invite --project lab --role member
    cove user add ada@example.com --project lab --role member
    cove key create --name "Ada's laptop" --project lab --user ada@example.com
    cove user rm ada@example.com`
}

type userAdd struct {
	adminFlags
	Name    string `arg:"" help:"A name that no other user has, such as an address."`
	Project string `placeholder:"PROJECT" help:"Make the user a member of this project too (default: local; on a server, the project of the key)."`
	Role    string `default:"member" enum:"owner,admin,member,viewer,auditor,none" placeholder:"ROLE" help:"What the user is there: owner, admin, member, viewer, auditor or none (default: member)."`
	Admin   bool   `help:"Make the user an admin of the whole server."`
}

func (c *userAdd) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		project, err := a.Project(ctx, c.Project)
		if err != nil {
			return err
		}
		u, err := a.CreateUser(ctx, c.Name, c.Admin)
		if err != nil {
			return err
		}
		if c.Role != "none" {
			if err := a.SetMember(ctx, auth.Membership{Project: project.ID, User: u.ID, Role: auth.Role(c.Role)}); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(p.Out, "%s\n", u.ID)
		return err
	})
}

type userLs struct {
	adminFlags
	JSON bool `name:"json" help:"Print them as one JSON array."`
}

// userShown is a user with the user's projects.
type userShown struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Admin    bool              `json:"admin"`
	Projects map[string]string `json:"projects"` // name to role
}

func (c *userLs) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		users, err := usersWithProjects(ctx, a)
		if err != nil {
			return err
		}
		if c.JSON {
			return p.printJSON(users)
		}
		var rows [][]string
		for _, u := range users {
			server := ""
			if u.Admin {
				server = "admin"
			}
			if len(u.Projects) == 0 {
				rows = append(rows, []string{u.ID, oneLine(u.Name), "-", "-", server})
			}
			for _, name := range sortedNames(u.Projects) {
				rows = append(rows, []string{u.ID, oneLine(u.Name), oneLine(name), u.Projects[name], server})
			}
		}
		return p.table([]string{"ID", "NAME", "PROJECT", "ROLE", "SERVER"}, 1, rows)
	})
}

func usersWithProjects(ctx context.Context, a administration) ([]userShown, error) {
	users, err := a.Users(ctx)
	if err != nil {
		return nil, err
	}
	shown, at := make([]userShown, len(users)), map[string]int{}
	for k, u := range users {
		shown[k], at[u.ID] = userShown{ID: u.ID, Name: u.Name, Admin: u.Admin, Projects: map[string]string{}}, k
	}
	projects, err := a.Projects(ctx)
	if err != nil {
		return nil, err
	}
	for _, pr := range projects {
		members, err := a.Members(ctx, pr.ID)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			if k, known := at[m.User]; known {
				shown[k].Projects[pr.Name] = string(m.Role)
			}
		}
	}
	return shown, nil
}

type userRm struct {
	adminFlags
	Name string `arg:"" help:"The user's name or id."`
}

func (c *userRm) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		if err := a.DeleteUser(ctx, c.Name); err != nil {
			return err
		}
		_, err := lang.Fprintf(p.Out, "user %s is removed, with all keys\n", oneLine(c.Name))
		return err
	})
}

type projectCmd struct {
	Add    projectAdd    `cmd:"" help:"Add a project."`
	Ls     projectLs     `cmd:"" help:"List the projects."`
	Member projectMember `cmd:"" help:"Give a user a role in a project, or none."`
	Quota  projectQuota  `cmd:"" help:"Set what a project may use."`

	Instructions projectInstructions `cmd:"" help:"Print or set what models are asked to do in all conversations of a project."`
}

// Help is the long help.
func (projectCmd) Help() string {
	return `Sessions, files, conversations and keys belong to a project, and users of other projects do not see them. With --server these commands
work on a server: adding projects and quotas take the key of an admin of the server, members and instructions that of an admin of the project.

Examples:

    cove project add lab
    cove project member lab ada@example.com viewer
    cove project quota lab --sessions 10 --tokens 1000000
    cove project instructions --set 'Amounts are in euros. Round to whole ones.'`
}

type projectAdd struct {
	adminFlags
	Name string `arg:"" help:"A name that no other project has."`
}

func (c *projectAdd) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		made, err := a.CreateProject(ctx, c.Name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s\n", made.ID)
		return err
	})
}

type projectLs struct {
	adminFlags
	JSON bool `name:"json" help:"Print them as one JSON array."`
}

func (c *projectLs) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		all, err := a.Projects(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			list := make([]map[string]any, 0, len(all))
			for _, pr := range all {
				one := map[string]any{"id": pr.ID, "name": pr.Name, "created": pr.Created}
				if pr.Quota != nil {
					one["quota"] = json.RawMessage(pr.Quota)
				}
				list = append(list, one)
			}
			return p.printJSON(list)
		}
		rows := make([][]string, 0, len(all))
		for _, pr := range all {
			quota := "the server's"
			if pr.Quota != nil {
				quota = string(pr.Quota)
			}
			rows = append(rows, []string{pr.ID, oneLine(pr.Name), dateTime(pr.Created), oneLine(quota)})
		}
		return p.table([]string{"ID", "NAME", "CREATED", "QUOTA"}, 3, rows)
	})
}

type projectMember struct {
	adminFlags
	Project string `arg:"" help:"The project's name or id."`
	User    string `arg:"" help:"The user's name or id."`
	Role    string `arg:"" enum:"owner,admin,member,viewer,auditor,none" help:"owner, admin, member, viewer, auditor or none."`
}

func (c *projectMember) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		m := auth.Membership{Project: c.Project, User: c.User, Role: auth.Role(c.Role)}
		if c.Role == "none" {
			m.Role = ""
		}
		if err := a.SetMember(ctx, m); err != nil {
			return err
		}
		_, err := lang.Fprintf(p.Out, "%s is %s in %s\n", oneLine(c.User), c.Role, oneLine(c.Project))
		return err
	})
}

type projectQuota struct {
	adminFlags
	Project    string       `arg:"" help:"The project's name or id."`
	Sessions   *int         `placeholder:"N" help:"Live sessions; 0 means no limit, as in the next ones."`
	Executions *int         `placeholder:"N" help:"Running executions."`
	CPUSeconds *float64     `name:"cpu-seconds" placeholder:"N" help:"Processor seconds in a day (UTC)."`
	Disk       *config.Size `placeholder:"SIZE" help:"Bytes of files and paused sessions."`
	Tokens     *int64       `placeholder:"N" help:"Tokens in a day."`
	AllowNet   []string     `placeholder:"HOST[:PORTS]" help:"Where its sessions may connect to, within what the server allows; repeatable."`
	DenyNet    []string     `placeholder:"HOST[:PORTS]" help:"Where they may not, although that is allowed; repeatable."`
	NoNet      bool         `help:"Its sessions connect to nothing."`
	Code       string       `enum:",off,note,ask,refuse" default:"" placeholder:"POLICY" help:"What becomes of code that calls for a second look: off, note, ask or refuse."`
	Redact     *string      `placeholder:"KINDS" help:"What is taken out of what its code emits: secrets, guesses, cards, people, emails, with commas between, or off."`
	CodeRule   []string     `placeholder:"RULE" help:"With ask and refuse: a rule that they are about besides the serious ones, such as starts-programs; repeatable."`
	AnyNet     bool         `help:"Its sessions may connect to all that the server allows."`
	Default    bool         `help:"The server's defaults again."`
}

// Help is the long help.
func (projectQuota) Help() string {
	return `Quotas that are not given stay as they are: as set for the project before, or else as the settings have them for every project.

Examples:

    cove project quota lab --sessions 10 --tokens 1000000
    cove project quota lab --allow-net '*.example.com' --deny-net admin.example.com
    cove project quota lab --code ask --code-rule starts-programs
    cove project quota lab --default`
}

func (c *projectQuota) run(ctx context.Context, p *Program) (int, error) {
	change, given := c.change()
	if c.Default == given {
		return 0, problem.New(problem.Usage, "give what the project may use, or --default").WithHint("for example: cove project quota " + c.Project + " --sessions 10")
	}
	if _, err := egress.ParseRules(c.AllowNet, c.DenyNet); err != nil {
		return 0, err
	}
	if nets := len(c.AllowNet) + len(c.DenyNet); c.NoNet && (c.AnyNet || nets > 0) || c.AnyNet && nets > 0 || nets > 0 && len(c.AllowNet) == 0 {
		return 0, problem.New(problem.Usage, "--no-net and --any-net stand alone, and --deny-net takes from what --allow-net gives")
	}
	if err := errors.Join((hub.CodeRules{Rules: c.CodeRule}).Check(), (hub.Redaction{Kinds: c.redacts()}).Check()); err != nil {
		return 0, err
	}
	if len(c.CodeRule) > 0 && c.Code == "" {
		return 0, problem.New(problem.Usage, "--code-rule belongs to --code").WithHint("add --code ask or --code refuse")
	}
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		var quota *hub.Quota
		shown := "the server's default"
		if !c.Default {
			q, err := quotaOf(ctx, a, c.Project)
			if err != nil {
				return err
			}
			change(&q)
			text, err := json.Marshal(q)
			if err != nil {
				return err
			}
			quota, shown = &q, string(text)
		}
		if err := a.SetQuota(ctx, c.Project, quota); err != nil {
			return err
		}
		_, err := lang.Fprintf(p.Out, "the quota of %s is %s\n", oneLine(c.Project), shown)
		return err
	})
}

// redacts are the kinds that were given.
func (c *projectQuota) redacts() []string {
	kinds := []string{}
	if c.Redact != nil {
		kinds = append(kinds, strings.FieldsFunc(*c.Redact, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return kinds
}

// change sets what was given.
func (c *projectQuota) change() (change func(*hub.Quota), given bool) {
	change = func(q *hub.Quota) {
		set(&q.Sessions, c.Sessions)
		set(&q.Executions, c.Executions)
		set(&q.CPUSeconds, c.CPUSeconds)
		set(&q.Disk, (*int64)(c.Disk))
		set(&q.Tokens, c.Tokens)
		if c.Redact != nil {
			q.Redact = &hub.Redaction{Kinds: c.redacts()}
		}
		if c.Code != "" {
			q.Code = &hub.CodeRules{Policy: hub.CodePolicy(c.Code), Rules: c.CodeRule}
		}
		if c.AnyNet {
			q.Network = nil
		}
		if c.NoNet || len(c.AllowNet)+len(c.DenyNet) > 0 {
			q.Network = &hub.Reach{Allow: c.AllowNet, Deny: c.DenyNet}
		}
	}
	given = c.AnyNet || c.NoNet || len(c.AllowNet)+len(c.DenyNet) > 0
	return change, given || c.Redact != nil || c.Code != "" || c.Sessions != nil || c.Executions != nil || c.CPUSeconds != nil || c.Disk != nil || c.Tokens != nil
}

func set[T any](into, given *T) {
	if given != nil {
		*into = *given
	}
}

// quotaOf is what a project may use now.
func quotaOf(ctx context.Context, a administration, project string) (q hub.Quota, err error) {
	pr, err := a.Project(ctx, project)
	if err != nil {
		return q, err
	}
	if pr.Quota == nil {
		return a.DefaultQuota(ctx)
	}
	if err := json.Unmarshal(pr.Quota, &q); err != nil {
		return q, fmt.Errorf("read the quota of %s: %w", project, err)
	}
	return q, nil
}

// ProjectQuota is what a project may use that has no quota of its own.
func ProjectQuota(c config.Config) hub.Quota {
	return hub.Quota{Sessions: c.Quota.Project.Sessions, Executions: c.Quota.Project.Executions, CPUSeconds: c.Quota.Project.CPUSeconds, Disk: int64(c.Quota.Project.Disk), Tokens: c.Quota.Project.Tokens}
}
