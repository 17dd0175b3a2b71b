package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// Invitations are how people become members of projects and set passwords; *auth.Accounts, which documents the methods.
type Invitations interface {
	Invite(ctx context.Context, who auth.Principal, n auth.NewInvitation) (auth.Invitation, string, error)
	Invitations(ctx context.Context, who auth.Principal) ([]auth.Invitation, error)
	Uninvite(ctx context.Context, who auth.Principal, id string) error
	LookInvitation(ctx context.Context, code string) (auth.Invited, error)
	AcceptInvitation(ctx context.Context, who auth.Principal, n auth.Acceptance) (auth.Principal, error)
	SetPassword(ctx context.Context, who auth.Principal, n auth.NewPassword) error
}

// Invitation makes somebody a member of a project, once, or lets a user set a new password.
type Invitation struct {
	ID      string    `json:"id" example:"inv_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Project string    `json:"project"`
	Role    auth.Role `json:"role,omitempty" enum:"owner,admin,member,viewer,auditor" doc:"Of the new member; missing: it is for a new password"`
	Name    string    `json:"name,omitempty" doc:"Whom it is for"`
	User    string    `json:"user,omitempty" doc:"Who sets a new password with it"`
	Maker   string    `json:"created_by"`
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at"`
}

func invitationOf(i auth.Invitation) Invitation {
	return Invitation{ID: i.ID, Project: i.Project, Role: i.Role, Name: i.Name, User: i.User, Maker: i.Maker, Created: i.Created.UTC(), Expires: i.Expires.UTC()}
}

// MadeInvitation is an invitation with its code.
type MadeInvitation struct {
	Code string `json:"code" doc:"Not shown again; the page's address for it is /#invitation=CODE"`
	Invitation
}

// Invited is what an invitation says to who has its code.
type Invited struct {
	Project string    `json:"project" doc:"Its name"`
	Role    auth.Role `json:"role,omitempty" enum:"owner,admin,member,viewer,auditor" doc:"Missing: it is for a new password"`
	Name    string    `json:"name,omitempty" doc:"Whom it is for"`
	User    string    `json:"user,omitempty" doc:"Name of the user who sets a new password"`
	Login   string    `json:"login,omitempty" doc:"What that user signs in with; missing where it is to be chosen"`
	Expires time.Time `json:"expires_at"`
}

type (
	invite struct {
		Body struct {
			Role    auth.Role `json:"role,omitempty" enum:"owner,admin,member,viewer,auditor" doc:"Of the new member"`
			Name    string    `json:"name,omitempty" maxLength:"200" doc:"Whom it is for, for people"`
			Seconds int64     `json:"seconds,omitempty" minimum:"60" maximum:"7776000" doc:"How long it can be used; 7 days when left out"`
			Project string    `json:"project,omitempty" maxLength:"200" doc:"Id or name; your own when left out"`
			User    string    `json:"user,omitempty" maxLength:"200" doc:"Id or name of a user who is to set a new password, instead of a role"`
		}
	}
	// InvitationPath names an invitation in an address.
	InvitationPath struct {
		Invitation string `path:"invitation" maxLength:"64" example:"inv_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	lookInvitation struct {
		Body struct {
			Code string `json:"code" maxLength:"200"`
		}
	}
	acceptInvitation struct {
		Body struct {
			Code     string `json:"code" maxLength:"200"`
			User     string `json:"user,omitempty" maxLength:"200" doc:"The name that you will sign in with"`
			Password string `json:"password,omitempty" maxLength:"800" doc:"10 to 200 characters"`
		}
	}
	setPassword struct {
		Body struct {
			Current  string `json:"current,omitempty" maxLength:"800" doc:"The present one"`
			User     string `json:"user,omitempty" maxLength:"200" doc:"The name that you will sign in with, where you have no password yet"`
			Password string `json:"password" maxLength:"800" doc:"10 to 200 characters"`
		}
	}
)

func (s *server) addInvitations() {
	const tag = "users and projects"
	add(s, operation{id: "invitation.create", method: http.MethodPost, path: "/invitations", tag: tag, action: auth.UsersManage, status: http.StatusCreated, repeat: repeatNever, summary: "Invite somebody",
		about: "To a project, with a role that you could give. Its code is in the answer and is not shown again; it works once, and the page takes it after `/#invitation=`. With `user` instead of `role` it is a link by which a user sets a new password, " +
			"for admins of the server: when it is used, all browsers of that user are signed out.", errors: []problem.Code{problem.Forbidden, problem.UserNotFound, problem.ProjectNotFound, problem.TooManyInvitations},
		example: `CODE=$(curl -H "Authorization: Bearer $KEY" $COVE/invitations -d '{"role":"member","name":"Eve"}' | field code)
INVITATION=$(curl -H "Authorization: Bearer $KEY" $COVE/invitations -d '{"role":"viewer"}' | field id)`},
		func(ctx context.Context, who auth.Principal, in *invite) (MadeInvitation, error) {
			b := in.Body
			i, code, err := s.o.Accounts.Invite(ctx, who, auth.NewInvitation{Project: b.Project, Role: b.Role, Name: b.Name, User: b.User, Life: seconds(b.Seconds)})
			return MadeInvitation{Code: code, Invitation: invitationOf(i)}, err
		})
	add(s, operation{id: "invitation.list", method: http.MethodGet, path: "/invitations", tag: tag, action: auth.UsersManage, summary: "List invitations", about: "Those to your project that can be used.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/invitations`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (List[Invitation], error) {
			out, err := s.o.Accounts.Invitations(ctx, who)
			return List[Invitation]{Items: each(out, invitationOf)}, err
		})
	addSilent(s, operation{id: "invitation.delete", method: http.MethodDelete, path: "/invitations/{invitation}", tag: tag, action: auth.UsersManage, summary: "Withdraw an invitation", about: "At once.",
		errors: []problem.Code{problem.InvitationNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/invitations/$INVITATION`},
		func(ctx context.Context, who auth.Principal, in *InvitationPath) error {
			return s.o.Accounts.Uninvite(ctx, who, in.Invitation)
		})
	add(s, operation{id: "invitation.look", method: http.MethodPost, path: "/invitations/look", tag: tag, public: true, repeat: repeatNever, summary: "What am I invited to?",
		errors: []problem.Code{problem.InvitationUnknown, problem.InvitationUsed, problem.TooManyFailedLogins}, example: `curl $COVE/invitations/look -d "{\"code\":\"$CODE\"}"`},
		func(ctx context.Context, _ auth.Principal, in *lookInvitation) (Invited, error) {
			return s.lookInvitation(ctx, in.Body.Code)
		})
	add(s, operation{id: "invitation.accept", method: http.MethodPost, path: "/invitations/accept", tag: tag, public: true, repeat: repeatNever, summary: "Accept an invitation",
		about: "With a name and a password you become a user and a member of the project, and the answer signs the browser in, as `sign-in` does. Who is a user already sends a key or the cookie, and neither name nor password; a browser that was not signed in with a key " +
			"works in that project from then on. With a link for a new password, `password` is the new one.",
		errors:  []problem.Code{problem.InvitationUnknown, problem.InvitationUsed, problem.NameInvalid, problem.PasswordInvalid, problem.UserExists, problem.MemberExists, problem.TooManyFailedLogins},
		example: `curl -c eve $COVE/invitations/accept -d "{\"code\":\"$CODE\",\"user\":\"eve\",\"password\":\"correct horse battery\"}"`},
		func(ctx context.Context, _ auth.Principal, in *acceptInvitation) (Caller, error) {
			return s.acceptInvitation(ctx, in)
		})
	addSilent(s, operation{id: "password.set", method: http.MethodPut, path: "/me/password", tag: tag, repeat: repeatNever, summary: "Set your password",
		about:  "Your other browsers are signed out. Who has no password yet sets a first one, with a name to sign in with, in a browser that was signed in with a code. Any key is enough for who knows the present password.",
		errors: []problem.Code{problem.PasswordWrong, problem.PasswordInvalid, problem.UserExists, problem.TooManyFailedLogins},
		example: `curl -b eve -X PUT $COVE/me/password \
  -d '{"current":"correct horse battery","password":"another horse, another battery"}'`},
		func(ctx context.Context, who auth.Principal, in *setPassword) error {
			_, err := auth.VisitOf(ctx).Login(ctx, who.User, func(ctx context.Context) (auth.Principal, error) {
				b := in.Body
				return who, s.o.Accounts.SetPassword(ctx, who, auth.NewPassword{Current: b.Current, Login: b.User, Password: b.Password})
			})
			return err
		})
}

func (s *server) lookInvitation(ctx context.Context, code string) (out Invited, err error) {
	err = auth.VisitOf(ctx).Look(ctx, func(ctx context.Context) error {
		i, err := s.o.Accounts.LookInvitation(ctx, code)
		out = Invited{Project: i.Project, Role: i.Role, Name: i.Name, User: i.User, Login: i.Login, Expires: i.Expires.UTC()}
		return err
	})
	return out, err
}

func (s *server) acceptInvitation(ctx context.Context, in *acceptInvitation) (Caller, error) {
	b, visit := in.Body, auth.VisitOf(ctx)
	var before auth.Principal
	if b.User == "" && b.Password == "" {
		caller, err := visit.Caller(ctx)
		if err != nil {
			return Caller{}, err
		}
		before = caller
	}
	as := before
	if as.User == "" {
		as = visit.Visitor()
	}
	who, err := visit.Login(ctx, "", func(ctx context.Context) (auth.Principal, error) {
		return s.o.Accounts.AcceptInvitation(ctx, as, auth.Acceptance{Code: b.Code, Login: b.User, Password: b.Password})
	})
	if err != nil {
		return Caller{}, err
	}
	switch {
	case before.User == "", before.Browser != "" && before.Key == "":
		if before.Browser != "" {
			if err := s.o.Accounts.SignOut(ctx, before); err != nil {
				return Caller{}, err
			}
		}
		return s.remember(ctx, who, "with an invitation")
	}
	return s.caller(ctx, who) // a key stays what it is, and so does a browser that has its rights from one
}
