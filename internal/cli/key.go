package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"cove/internal/auth"
	"cove/internal/config"
	"cove/internal/problem"
)

type keyCmd struct {
	Create keyCreate `cmd:"" help:"Make a key and print it, once."`
	Ls     keyLs     `cmd:"" help:"List keys; their texts are not kept."`
	Revoke keyRevoke `cmd:"" help:"End a key at once."`
}

// Help is the long help.
func (keyCmd) Help() string {
	return `Keys belong to a project and to a user. These commands work on the database of this machine, also while a server uses it.

Examples:

    cove key create --name laptop
    cove key create --name ci --scope sessions:execute --scope files:read --expires 30d
    cove key ls
    cove key revoke key_...`
}

type keyCreate struct {
	configFlag
	Name    string           `required:"" placeholder:"NAME" help:"What it is for."`
	Scope   []string         `placeholder:"SCOPE" help:"What it may do, such as sessions:execute. Repeatable; without any: all that its user may."`
	Expires *config.Duration `placeholder:"TIME" help:"When it ends, from now on, such as 30d. Without: never."`
	Project string           `placeholder:"PROJECT" help:"Id or name of the project (default: local)."`
	User    string           `placeholder:"USER" help:"Id or name of the user, a member of the project (default: local)."`
	E2B     bool             `name:"e2b" help:"Print it in the form that E2B's clients demand of a key."`
	JSON    bool             `name:"json" help:"Print it as one JSON object."`
}

func (c *keyCreate) run(ctx context.Context, p *Program) (int, error) {
	if c.Expires != nil && *c.Expires <= 0 {
		return 0, problem.New(problem.Usage, "--expires must be above 0").WithHint("leave --expires out for a key that does not expire")
	}
	return 0, p.onRecords(ctx, c.configFlag, func(r *Records) error {
		n := auth.NewKey{Name: c.Name, Project: c.Project, User: c.User}
		if c.Expires != nil {
			n.Life = time.Duration(*c.Expires)
		}
		for _, s := range c.Scope {
			for one := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
				n.Scopes = append(n.Scopes, auth.Action(one))
			}
		}
		k, text, err := r.Accounts.CreateKey(ctx, auth.Local(), n)
		if err == nil && c.E2B {
			text, err = auth.HexText(text)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			shown := keyJSON(k)
			shown["key"] = text
			return p.printJSON(shown)
		}
		if _, err := fmt.Fprintln(p.Out, text); err != nil {
			return err
		}
		fmt.Fprintf(p.Err, "cove: key %s, %s. It is not shown again, and not kept.\n", k.ID, expiry(k))
		return nil
	})
}

func expiry(k auth.Key) string {
	if k.Expires.IsZero() {
		return "which does not expire"
	}
	return "which expires at " + dateTime(k.Expires)
}

func keyJSON(k auth.Key) map[string]any {
	m := map[string]any{"id": k.ID, "name": k.Name, "project": k.Project, "user": k.User, "last4": k.Last4, "created": k.Created}
	if k.Scopes != nil {
		m["scopes"] = k.Scopes
	}
	for name, at := range map[string]time.Time{"expires": k.Expires, "used": k.Used, "revoked": k.Revoked} {
		if !at.IsZero() {
			m[name] = at
		}
	}
	return m
}

type keyLs struct {
	configFlag
	Project string `placeholder:"PROJECT" help:"Id or name of the project (default: local)."`
	All     bool   `help:"Also those that expired or were revoked."`
	JSON    bool   `name:"json" help:"Print them as one JSON array."`
}

func (c *keyLs) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onRecords(ctx, c.configFlag, func(r *Records) error {
		who, err := r.in(ctx, c.Project)
		if err != nil {
			return err
		}
		all, err := r.Accounts.Keys(ctx, who)
		if err != nil {
			return err
		}
		shown := []auth.Key{}
		for _, k := range all {
			if c.All || keyState(k) == "good" {
				shown = append(shown, k)
			}
		}
		if c.JSON {
			list := make([]map[string]any, 0, len(shown))
			for _, k := range shown {
				list = append(list, keyJSON(k))
			}
			return p.printJSON(list)
		}
		return c.table(ctx, p, r, shown)
	})
}

func (c *keyLs) table(ctx context.Context, p *Program, r *Records, keys []auth.Key) error {
	if len(keys) == 0 {
		fmt.Fprintln(p.Err, "cove: there are no keys; `cove key create --name NAME` makes one")
		return nil
	}
	names := r.userNames(ctx)
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tENDS IN\tUSER\tMAY\tLAST USED\tEXPIRES\tSTATE")
	for _, k := range keys {
		may := "all that its user may"
		if k.Scopes != nil {
			words := make([]string, 0, len(k.Scopes))
			for _, s := range k.Scopes {
				words = append(words, string(s))
			}
			may = strings.Join(words, " ")
		}
		fmt.Fprintf(w, "%s\t%s\t…%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, oneLine(k.Name), oneLine(k.Last4), oneLine(names[k.User]), oneLine(may), dateTime(k.Used), dateTime(k.Expires), keyState(k))
	}
	return w.Flush()
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
	configFlag
	ID string `arg:"" help:"The key's id, such as key_..., as cove key ls shows it."`
}

func (c *keyRevoke) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onRecords(ctx, c.configFlag, func(r *Records) error {
		id := c.ID
		if at, _, err := auth.ParseText(id); err == nil {
			id = at // the user gave the text itself
		}
		who := auth.Local()
		if k, err := r.Accounts.Store.Key(ctx, id); err == nil {
			who.Project = k.Project
		}
		k, err := r.Accounts.RevokeKey(ctx, who, id)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "key %s (%s) is revoked\n", k.ID, oneLine(k.Name))
		return err
	})
}

// in returns who this machine's operator is in a project, by id or name ("" is the local one).
func (r *Records) in(ctx context.Context, project string) (auth.Principal, error) {
	who := auth.Local()
	if project == "" {
		return who, nil
	}
	found, err := r.Accounts.Project(ctx, who, project)
	who.Project = found.ID
	return who, err
}

// userNames returns the names of the users by their ids; what cannot be read is not named.
func (r *Records) userNames(ctx context.Context) map[string]string {
	names := map[string]string{}
	users, _ := r.Accounts.Users(ctx, auth.Local())
	for _, u := range users {
		names[u.ID] = u.Name
	}
	return names
}
