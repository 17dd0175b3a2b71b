package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

type keyCmd struct {
	Create keyCreate `cmd:"" help:"Make a key and print it, once."`
	Ls     keyLs     `cmd:"" help:"List keys; their texts are not kept."`
	Revoke keyRevoke `cmd:"" help:"End a key at once."`
}

// Help is the long help.
func (keyCmd) Help() string {
	return `Keys belong to a project and to a user. These commands work on the database of this machine, also while a server uses it, or with --server
on a server, with the rights of the key that is given: members make keys for themselves, and nobody makes one that may more.

Examples:

    cove key create --name laptop
    cove key create --name ci --scope sessions:execute --scope files:read --expires 30d
    cove key create --name ada --user ada --holder 4f6c1e0a-...     # for her access tokens; see docs/mcp.md
    cove key ls
    cove key ls --all-projects
    cove key create --name ci --server https://cove.example.com
    cove key revoke key_...`
}

type keyCreate struct {
	adminFlags
	Name    string           `required:"" placeholder:"NAME" help:"What it is for."`
	Scope   []string         `placeholder:"SCOPE" help:"What it may do, such as sessions:execute. Repeatable; without any: all that its user may."`
	Expires *config.Duration `placeholder:"TIME" help:"When it ends, from now on, such as 30d. Without: never."`
	Project string           `placeholder:"PROJECT" help:"Id or name of the project (default: local; on a server, the project of the key)."`
	User    string           `placeholder:"USER" help:"Id or name of the user, a member of the project (default: local; on a server, the user of the key)."`
	Holder  string           `placeholder:"VALUE" help:"Whose access tokens of the authorization server (oauth.issuer) the key stands for, as the claim oauth.claim has it. Such a key has no text."`
	E2B     bool             `name:"e2b" help:"Print it in the form that E2B's clients demand of a key."`
	JSON    bool             `name:"json" help:"Print it as one JSON object."`
}

func (c *keyCreate) run(ctx context.Context, p *Program) (int, error) {
	if c.Expires != nil && *c.Expires <= 0 {
		return 0, problem.New(problem.Usage, "--expires must be above 0").WithHint("leave --expires out for a key that does not expire")
	}
	set, err := c.settings(p)
	if err != nil {
		return 0, err
	}
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		n := auth.NewKey{Name: c.Name, Project: c.Project, User: c.User}
		if c.Holder != "" {
			n.Holder = &auth.Identity{Issuer: set.OAuth.Issuer, Claim: set.OAuth.Claim, Value: c.Holder}
		}
		if c.Expires != nil {
			n.Life = time.Duration(*c.Expires)
		}
		for _, s := range c.Scope {
			for one := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
				n.Scopes = append(n.Scopes, auth.Action(one))
			}
		}
		k, text, err := a.CreateKey(ctx, n)
		if err == nil && c.E2B && text != "" {
			text, err = auth.HexText(text)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			shown := keyJSON(k)
			if text != "" {
				shown["key"] = text
			}
			return p.printJSON(shown)
		}
		if text == "" {
			_, err = lang.Fprintf(p.Out, "key %s, %s, stands for access tokens with %s\n", k.ID, expiry(k), oneLine(k.Subject))
			return err
		}
		if _, err := fmt.Fprintln(p.Out, text); err != nil {
			return err
		}
		notef(p.Err, "key %s, %s. It is not shown again, and not kept.", k.ID, expiry(k))
		return nil
	})
}

func expiry(k auth.Key) string {
	if k.Expires.IsZero() {
		return lang.Text("which does not expire")
	}
	return lang.Sprintf("which expires at %s", dateTime(k.Expires))
}

func keyJSON(k auth.Key) map[string]any {
	m := map[string]any{"id": k.ID, "name": k.Name, "project": k.Project, "user": k.User, "last4": k.Last4, "created": k.Created}
	if k.Scopes != nil {
		m["scopes"] = k.Scopes
	}
	if k.Subject != "" {
		m["holder"] = k.Subject
	}
	for name, at := range map[string]time.Time{"expires": k.Expires, "used": k.Used, "revoked": k.Revoked} {
		if !at.IsZero() {
			m[name] = at
		}
	}
	return m
}

type keyLs struct {
	adminFlags
	Project     string `placeholder:"PROJECT" help:"Id or name of the project (default: local; on a server, the project of the key)."`
	AllProjects bool   `help:"Those of all projects."`
	All         bool   `help:"Also those that expired or were revoked."`
	JSON        bool   `name:"json" help:"Print them as one JSON array."`
}

func (c *keyLs) run(ctx context.Context, p *Program) (int, error) {
	if c.AllProjects && c.Project != "" {
		return 0, problem.New(problem.Usage, "--all-projects and --project exclude each other")
	}
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		shown, others, err := c.keys(ctx, a)
		if err != nil {
			return err
		}
		if c.JSON {
			list := make([]map[string]any, 0, len(shown))
			for _, k := range shown {
				list = append(list, keyJSON(k))
			}
			return p.printJSON(list)
		}
		return c.table(ctx, p, a, shown, others)
	})
}

// keys are those to show, and those of other projects that are not shown, as far as the caller may see them.
func (c *keyLs) keys(ctx context.Context, a administration) (shown, others []auth.Key, err error) {
	manages, err := a.Manages(ctx)
	if err != nil {
		return nil, nil, err
	}
	project := auth.Project{}
	if !c.AllProjects && manages {
		if project, err = a.Project(ctx, c.Project); err != nil {
			return nil, nil, err
		}
	}
	list, named := manages || c.AllProjects, c.Project
	if list {
		named = ""
	}
	all, err := a.Keys(ctx, named, list)
	for _, k := range all {
		switch {
		case !c.All && keyState(k) != "good":
		case project.ID == "" || k.Project == project.ID:
			shown = append(shown, k)
		default:
			others = append(others, k)
		}
	}
	return shown, others, err
}

func (c *keyLs) table(ctx context.Context, p *Program, a administration, keys, others []auth.Key) error {
	defer c.tellOthers(p, others)
	if len(keys) == 0 {
		notef(p.Err, "there are no keys; `cove key create --name NAME` makes one")
		return nil
	}
	names, projects := userNames(ctx, a), map[string]string{}
	head, flexible := translated([]string{"ID", "NAME", "ENDS IN", "USER", "MAY", "LAST USED", "EXPIRES", "STATE"}), 4
	if c.AllProjects {
		head, flexible = slices.Insert(head, 3, translated([]string{"PROJECT"})...), flexible+1
		all, err := a.Projects(ctx)
		if err != nil {
			return err
		}
		for _, pr := range all {
			projects[pr.ID] = pr.Name
		}
	}
	rows := make([][]string, 0, len(keys))
	for _, k := range keys {
		may := lang.Text("all that its user may")
		if k.Scopes != nil {
			words := make([]string, 0, len(k.Scopes))
			for _, s := range k.Scopes {
				words = append(words, string(s))
			}
			may = strings.Join(words, " ")
		}
		end := "…" + k.Last4
		if k.Subject != "" {
			end = lang.Sprintf("tokens of %s", k.Subject)
		}
		row := []string{k.ID, oneLine(k.Name), oneLine(end), oneLine(cmp.Or(names[k.User], k.User)), oneLine(may), dateTime(k.Used), dateTime(k.Expires), keyStateWord(k)}
		if c.AllProjects {
			row = slices.Insert(row, 3, oneLine(projects[k.Project]))
		}
		rows = append(rows, row)
	}
	return p.table(head, flexible, rows)
}

// tellOthers says that there are keys that are not shown.
func (c *keyLs) tellOthers(p *Program, others []auth.Key) {
	if len(others) == 0 {
		return
	}
	notef(p.Err, "not listed: %s of other projects; --all-projects lists all, --project NAME those of one", count(len(others), "key"))
}

// keyStateWord is keyState in the language of the process.
func keyStateWord(k auth.Key) string {
	switch keyState(k) {
	case "revoked":
		return lang.Text("revoked")
	case "expired":
		return lang.Text("expired")
	}
	return lang.Text("good")
}

func keyState(k auth.Key) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && time.Now().After(k.Expires):
		return "expired"
	}
	return "good"
}

type keyRevoke struct {
	adminFlags
	ID string `arg:"" help:"The key's id, such as key_..., as cove key ls shows it."`
}

func (c *keyRevoke) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		id := c.ID
		if at, _, err := auth.ParseText(id); err == nil {
			id = at // the user gave the text itself
		}
		k, err := a.RevokeKey(ctx, id)
		if err != nil {
			return err
		}
		_, err = lang.Fprintf(p.Out, "key %s (%s) is revoked\n", k.ID, oneLine(k.Name))
		return err
	})
}
