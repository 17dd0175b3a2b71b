package auth

import (
	"context"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

// CreateUser makes a user, who is nobody's member yet. Needs ServerManage. Problems: user_exists.
func (a *Accounts) CreateUser(ctx context.Context, who Principal, name string, admin bool) (User, error) {
	u := User{ID: ident.New(ident.User), Name: name, Admin: admin, Created: a.now().UTC()}
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) error { return a.createUser(ctx, who, u) })
	if err = a.record(ctx, who, "user.create", u.ID, name, err); err != nil {
		return User{}, err
	}
	return u, nil
}

func (a *Accounts) createUser(ctx context.Context, who Principal, u User) error {
	if err := who.Require(ServerManage); err != nil {
		return err
	}
	if err := goodName(u.Name); err != nil {
		return err
	}
	if ident.Valid(ident.User, u.Name) {
		return problem.New(problem.NameInvalid, "a name must not look like an id")
	}
	if _, err := a.Store.User(ctx, u.Name); err == nil {
		return problem.New(problem.UserExists, "there is a user of that name")
	} else if problem.Of(err).Kind != problem.NotFound {
		return err
	}
	if login, err := loginOf(u.Name); err == nil { // nobody is called what another signs in with
		p, err := a.Store.PasswordOf(ctx, login)
		if err != nil {
			return err
		}
		if p.User != "" {
			return problem.New(problem.UserExists, "a user signs in with that name")
		}
	}
	return a.Store.AddUser(ctx, u)
}

// Users lists the users of the server. Needs ServerManage.
func (a *Accounts) Users(ctx context.Context, who Principal) ([]User, error) {
	if err := who.Require(ServerManage); err != nil {
		return nil, err
	}
	return a.Store.Users(ctx)
}

// Self is what callers are told of themselves.
type Self struct {
	User    string // name
	Project string // name
	Login   string // the name that the user signs in with; "" where no password is set
}

// Self returns the names of the caller.
func (a *Accounts) Self(ctx context.Context, who Principal) (Self, error) {
	u, err := a.Store.User(ctx, who.User)
	if err != nil {
		return Self{}, err
	}
	project, err := a.Store.Project(ctx, who.Project)
	if err != nil {
		return Self{}, err
	}
	p, err := a.Store.Password(ctx, who.User)
	return Self{User: u.Name, Project: project.Name, Login: p.Login}, err
}

// User returns a user, by id or name. Needs ServerManage, but for oneself.
func (a *Accounts) User(ctx context.Context, who Principal, user string) (User, error) {
	if user != who.User {
		if err := who.Require(ServerManage); err != nil {
			return User{}, err
		}
	}
	return a.Store.User(ctx, user)
}

// SetAdmin makes a user an admin of the server, or no longer one. Needs ServerManage. The last one stays ("last_admin").
func (a *Accounts) SetAdmin(ctx context.Context, who Principal, user string, admin bool) (User, error) {
	var u User
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) (err error) {
		u, err = a.setAdmin(ctx, who, user, admin)
		return err
	})
	detail := "no admin"
	if admin {
		detail = "admin"
	}
	return u, a.record(ctx, who, "user.admin", user, detail, err)
}

func (a *Accounts) setAdmin(ctx context.Context, who Principal, user string, admin bool) (User, error) {
	if err := who.Require(ServerManage); err != nil {
		return User{}, err
	}
	u, err := a.Store.User(ctx, user)
	if err != nil {
		return User{}, err
	}
	if !admin {
		if err := a.keepsAdmin(ctx, u); err != nil {
			return User{}, err
		}
	}
	return a.Store.ChangeUser(ctx, u.ID, func(u *User) error { u.Admin = admin; return nil })
}

// DeleteUser removes a user with the user's keys, browsers and memberships; what the user made stays with the projects. Needs ServerManage. The server's last
// admin and a project's last owner stay ("last_admin", "last_owner"), and so does who the commands on the server's machine are ("user_local").
func (a *Accounts) DeleteUser(ctx context.Context, who Principal, user string) error {
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) error { return a.deleteUser(ctx, who, user) })
	return a.record(ctx, who, "user.delete", user, "", err)
}

func (a *Accounts) deleteUser(ctx context.Context, who Principal, user string) error {
	if err := who.Require(ServerManage); err != nil {
		return err
	}
	u, err := a.Store.User(ctx, user)
	if err != nil {
		return err
	}
	if u.ID == LocalUser {
		return problem.New(problem.UserLocal, "the commands on the server's machine act as this user, who stays")
	}
	if err := a.keepsAdmin(ctx, u); err != nil {
		return err
	}
	projects, err := a.Store.Projects(ctx)
	if err != nil {
		return err
	}
	for _, p := range projects {
		if err := a.keepsOwner(ctx, p.ID, u.ID); err != nil {
			return err
		}
	}
	return a.Store.DeleteUser(ctx, u.ID)
}

// keepsAdmin returns nil when the server has an admin besides u.
func (a *Accounts) keepsAdmin(ctx context.Context, u User) error {
	if !u.Admin {
		return nil
	}
	users, err := a.Store.Users(ctx)
	if err != nil {
		return err
	}
	for _, other := range users {
		if other.Admin && other.ID != u.ID {
			return nil
		}
	}
	return problem.New(problem.LastAdmin, "the server would have no admin any more").WithHint("make another user an admin first")
}

// keepsOwner returns nil when the project has an owner besides user, or user is none.
func (a *Accounts) keepsOwner(ctx context.Context, project, user string) error {
	members, err := a.Store.Members(ctx, project)
	if err != nil {
		return err
	}
	owns, others := false, false
	for _, m := range members {
		owns = owns || m.Role == Owner && m.User == user
		others = others || m.Role == Owner && m.User != user
	}
	if owns && !others {
		return problem.New(problem.LastOwner, "a project would have no owner any more").WithHint("make another member an owner first")
	}
	return nil
}
