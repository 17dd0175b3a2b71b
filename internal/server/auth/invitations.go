package auth

import (
	"context"
	"slices"
	"time"

	"golang.org/x/text/secure/precis"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

const (
	invitationLife      = 7 * 24 * time.Hour
	shortestInvitation  = time.Minute
	longestInvitation   = 90 * 24 * time.Hour
	maxInvitations      = 1000 // of one project that can be used
	invitationRefusal   = "the invitation is not one of this server's, was withdrawn, or has expired"
	invitationNextSteps = "ask who invited you for another one"
)

// Invitation makes somebody a member of a project, once; or lets a user set a new password.
type Invitation struct {
	ID      string // ident.Invitation
	Hash    string // SHA-256 of the code, in hexadecimal
	Project string
	User    string // who sets a new password with it; "": it is for a new member
	Role    Role   // of the new member
	Name    string // whom it is for, in the words of who made it
	Maker   string // the user
	Created time.Time
	Expires time.Time
	Used    time.Time // zero: it was not
}

// InvitationStore keeps invitations. Not found: invitation_not_found.
type InvitationStore interface {
	AddInvitation(ctx context.Context, i Invitation) error
	Invitation(ctx context.Context, id string) (Invitation, error)
	InvitationOf(ctx context.Context, hash string) (Invitation, error) // the zero value where there is none
	Invitations(ctx context.Context, project string) ([]Invitation, error)
	UseInvitation(ctx context.Context, id string, at time.Time) error
	DeleteInvitation(ctx context.Context, id string) error
}

// NewInvitation says whom to invite.
type NewInvitation struct {
	Project string // "": the caller's; else an id or a name
	Role    Role
	Name    string
	User    string        // id or name: whose password is set anew. Then there is no role
	Life    time.Duration // 0: 7 days
}

// Invite makes an invitation and returns its code, which is not kept. Needs UsersManage, and for another's password ServerManage. The role is one that
// the caller could give.
func (a *Accounts) Invite(ctx context.Context, who Principal, n NewInvitation) (Invitation, string, error) {
	var i Invitation
	var code string
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) (err error) {
		i, code, err = a.invite(ctx, who, n)
		return err
	})
	detail := string(n.Role)
	if n.User != "" {
		detail = "a new password for " + i.User
	}
	if err == nil {
		who.Project = i.Project
	}
	if err = a.record(ctx, who, "invitation.create", i.ID, detail, err); err != nil {
		return Invitation{}, "", err
	}
	i.Hash = ""
	return i, code, nil
}

func (a *Accounts) invite(ctx context.Context, who Principal, n NewInvitation) (Invitation, string, error) {
	if err := who.Require(UsersManage); err != nil {
		return Invitation{}, "", err
	}
	p, err := a.projectFor(ctx, who, n.Project)
	if err != nil {
		return Invitation{}, "", err
	}
	now := a.now().UTC()
	i := Invitation{ID: ident.New(ident.Invitation), Project: p.ID, Role: n.Role, Name: n.Name, Maker: who.User, Created: now}
	if n.Life == 0 {
		n.Life = invitationLife
	}
	if n.Life < shortestInvitation || n.Life > longestInvitation {
		return Invitation{}, "", problem.New(problem.LifeInvalid, "an invitation can be used for a minute to 90 days")
	}
	i.Expires = now.Add(n.Life)
	if n.Name != "" {
		if err := goodName(n.Name); err != nil {
			return Invitation{}, "", err
		}
	}
	if i.User, err = a.invited(ctx, who, p.ID, n); err != nil {
		return Invitation{}, "", err
	}
	have, err := a.Store.Invitations(ctx, p.ID)
	if err != nil {
		return Invitation{}, "", err
	}
	if open := slices.DeleteFunc(have, func(i Invitation) bool { return !a.open(i) }); len(open) >= maxInvitations {
		return Invitation{}, "", problem.New(problem.TooManyInvitations, "the project has as many invitations as it can have").WithHint("withdraw some first")
	}
	var code string
	code, i.Hash = RandomCode()
	return i, code, a.Store.AddInvitation(ctx, i)
}

// invited returns whose password is set anew, or "" for a new member whom who may make one.
func (a *Accounts) invited(ctx context.Context, who Principal, project string, n NewInvitation) (user string, err error) {
	switch {
	case n.User != "" && n.Role != "":
		return "", problem.New(problem.InvalidRequest, "a link for a new password has no role (role)").WithHint("leave out user, to invite somebody, or role")
	case n.User != "":
		if err := who.Require(ServerManage); err != nil {
			return "", err
		}
		u, err := a.Store.User(ctx, n.User)
		return u.ID, err
	case !slices.Contains(Roles(), n.Role):
		return "", problem.New(problem.RoleUnknown, "there is no such role").WithHint("the roles are owner, admin, member, viewer and auditor")
	case !rules(who, project) || !mayTouch(who, project, n.Role):
		return "", forbidden("only an owner makes owners and changes them")
	}
	return "", nil
}

// open says whether an invitation can be used.
func (a *Accounts) open(i Invitation) bool { return i.Used.IsZero() && a.now().Before(i.Expires) }

// Invitations lists the invitations to the caller's project that can be used. Needs UsersManage.
func (a *Accounts) Invitations(ctx context.Context, who Principal) ([]Invitation, error) {
	if err := who.Require(UsersManage); err != nil {
		return nil, err
	}
	all, err := a.Store.Invitations(ctx, who.Project)
	all = slices.DeleteFunc(all, func(i Invitation) bool { return !a.open(i) || i.User != "" && !who.May(ServerManage) })
	for k := range all {
		all[k].Hash = ""
	}
	return all, err
}

// Uninvite withdraws an invitation. Needs UsersManage.
func (a *Accounts) Uninvite(ctx context.Context, who Principal, id string) error {
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) error { return a.uninvite(ctx, who, id) })
	return a.record(ctx, who, "invitation.delete", id, "", err)
}

func (a *Accounts) uninvite(ctx context.Context, who Principal, id string) error {
	if err := who.Require(UsersManage); err != nil {
		return err
	}
	if !ident.Valid(ident.Invitation, id) {
		return notFound(problem.InvitationNotFound)
	}
	i, err := a.Store.Invitation(ctx, id)
	switch {
	case err != nil:
		return err
	case i.Project != who.Project && !who.May(ServerManage), i.User != "" && !who.May(ServerManage):
		return notFound(problem.InvitationNotFound)
	case !mayTouch(who, i.Project, i.Role):
		return forbidden("only an owner withdraws an invitation of an owner")
	}
	return a.Store.DeleteInvitation(ctx, id)
}

// Invited is what an invitation says to who has its code.
type Invited struct {
	Project string // its name
	Role    Role   // "": it is for a new password
	Name    string
	User    string // the name of who sets a new password; "" where it is for a new member
	Login   string // that the user signs in with; "" where one is to be chosen
	Expires time.Time
}

// LookInvitation says what a code invites to. Problems: invitation_unknown, invitation_used.
func (a *Accounts) LookInvitation(ctx context.Context, code string) (Invited, error) {
	i, err := a.invitation(ctx, code)
	if err != nil {
		return Invited{}, err
	}
	p, err := a.Store.Project(ctx, i.Project)
	if err != nil {
		return Invited{}, err
	}
	out := Invited{Project: p.Name, Role: i.Role, Name: i.Name, Expires: i.Expires}
	if i.User == "" {
		return out, nil
	}
	u, err := a.Store.User(ctx, i.User)
	if err != nil {
		return Invited{}, err
	}
	kept, err := a.Store.Password(ctx, i.User)
	out.User, out.Login = u.Name, kept.Login
	return out, err
}

// invitation returns the invitation of a code while it can be used.
func (a *Accounts) invitation(ctx context.Context, code string) (Invitation, error) {
	unknown := problem.New(problem.InvitationUnknown, invitationRefusal).WithHint(invitationNextSteps)
	if !secretText(code) {
		return Invitation{}, unknown
	}
	i, err := a.Store.InvitationOf(ctx, codeID(code))
	switch {
	case err != nil:
		return Invitation{}, err
	case i.ID == "":
		return Invitation{}, unknown
	case !i.Used.IsZero():
		return Invitation{}, problem.New(problem.InvitationUsed, "the invitation was used already, and works once").WithHint("sign in, or " + invitationNextSteps)
	case !a.now().Before(i.Expires):
		return Invitation{}, unknown
	}
	still, err := a.stillInvites(ctx, i)
	if err == nil && !still {
		err = unknown
	}
	return i, err
}

// stillInvites says whether who made an invitation could make it today: one who was removed, or may less, invites nobody.
func (a *Accounts) stillInvites(ctx context.Context, i Invitation) (bool, error) {
	u, err := a.Store.User(ctx, i.Maker)
	if err != nil {
		if problem.Of(err).Kind == problem.NotFound {
			return false, nil
		}
		return false, err
	}
	if u.Admin {
		return true, nil
	}
	role, err := a.Store.Role(ctx, i.Project, u.ID)
	return i.User == "" && (role == Owner || role == Admin && i.Role != Owner), err
}

// Acceptance is what somebody brings to an invitation.
type Acceptance struct {
	Code     string
	Login    string // the name to sign in with from now on
	Password string
}

// AcceptInvitation makes who has a code a member of the project: a new user, or the caller where who is one and brings no name; or gives a user a new
// password. It returns who signs in by it. Of several at once one succeeds. Problems: those of LookInvitation, name_invalid, password_invalid, user_exists,
// member_exists.
func (a *Accounts) AcceptInvitation(ctx context.Context, who Principal, n Acceptance) (Principal, error) {
	i, err := a.invitation(ctx, n.Code)
	if err != nil {
		return Principal{}, err
	}
	as, target, err := a.accept(ctx, who, i, n)
	row := who
	row.Project, row.User = i.Project, target
	if err = a.record(ctx, row, "invitation.accept", i.ID, string(i.Role), err); err != nil {
		return Principal{}, err
	}
	as.Request, as.IP, as.Agent = who.Request, who.IP, who.Agent
	return as, nil
}

func (a *Accounts) accept(ctx context.Context, who Principal, i Invitation, n Acceptance) (as Principal, user string, err error) {
	joins := i.User == "" && who.User != "" && n.Login == "" && n.Password == ""
	if joins && who.Scopes != nil {
		return as, who.User, forbidden("a key that is limited accepts no invitations")
	}
	u, p, err := a.newcomer(ctx, i, n, joins)
	if err != nil {
		return as, who.User, err
	}
	if joins {
		u.ID = who.User
	}
	err = a.alone(ctx, func(ctx context.Context, a *Accounts) error {
		if _, err := a.invitation(ctx, n.Code); err != nil {
			return err
		}
		if err := a.letIn(ctx, i, u, p); err != nil {
			return err
		}
		if err := a.Store.UseInvitation(ctx, i.ID, a.now().UTC()); err != nil {
			return err
		}
		if as, err = a.memberOf(ctx, u.ID, i.Project); i.User != "" && problem.Is(err, problem.NotFound) {
			as, err = a.memberOf(ctx, u.ID, "") // an admin of the server may belong to another project
		}
		return err
	})
	return as, u.ID, err
}

// newcomer returns the user and the password of who accepts an invitation; neither is in the store yet.
func (a *Accounts) newcomer(ctx context.Context, i Invitation, n Acceptance, joins bool) (u User, p Password, err error) {
	if joins {
		return u, p, nil
	}
	u.ID = i.User
	if i.User != "" {
		had, err := a.Store.Password(ctx, i.User)
		if err != nil {
			return u, p, err
		}
		p.Login = had.Login
	} else {
		u.ID, u.Created = ident.New(ident.User), a.now().UTC()
	}
	if p.User = u.ID; p.Login == "" {
		if p.Login, err = loginOf(n.Login); err != nil {
			return u, p, err
		}
		if u.Name, err = precis.UsernameCasePreserved.String(n.Login); err != nil {
			u.Name = p.Login
		}
	}
	p.Hash, err = a.hashNew(ctx, n.Password, p.Login)
	return u, p, err
}

// letIn writes what an invitation is for.
func (a *Accounts) letIn(ctx context.Context, i Invitation, u User, p Password) error {
	if i.User != "" {
		return a.keepPassword(ctx, p, "")
	}
	if p.Hash != "" {
		if err := a.freeLogin(ctx, p.Login, u.ID); err != nil {
			return err
		}
		if err := a.Store.AddUser(ctx, u); err != nil {
			return err
		}
		if err := a.keepPassword(ctx, p, ""); err != nil {
			return err
		}
	} else if role, err := a.Store.Role(ctx, i.Project, u.ID); err != nil || role != "" {
		if err == nil {
			err = problem.New(problem.MemberExists, "you are a member of the project already").WithHint("leave the invitation to somebody else")
		}
		return err
	}
	return a.Store.SetMember(ctx, Membership{Project: i.Project, User: u.ID, Role: i.Role})
}
