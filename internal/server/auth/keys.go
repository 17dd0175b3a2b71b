package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

// maxKeys bounds the keys of one project that are good.
const maxKeys = 1000

// NewKey says what key to make.
type NewKey struct {
	Name    string
	Project string // "": the caller's
	User    string // "": the caller; else an id or a name
	Scopes  []Action
	Life    time.Duration // 0: for ever
	// Holder has the key stand for the access tokens of somebody; see Identity. Only an admin of the server makes such a key.
	Holder *Identity
}

// CreateKey makes a key and returns its text, which is not kept and cannot be had again. Members make keys for themselves only; nobody
// makes a key with more rights than his own, or one that outlives the key that it is made with. Nil Scopes are the caller's. A key with a Holder has no text.
func (a *Accounts) CreateKey(ctx context.Context, who Principal, n NewKey) (Key, string, error) {
	var k Key
	var text string
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) (err error) {
		k, text, err = a.createKey(ctx, who, n)
		return err
	})
	if err = a.record(ctx, who, "key.create", k.ID, k.User, err); err != nil {
		return Key{}, "", err
	}
	return k, text, nil
}

func (a *Accounts) createKey(ctx context.Context, who Principal, n NewKey) (Key, string, error) {
	if err := who.Require(KeysManage); err != nil {
		return Key{}, "", err
	}
	if err := goodName(n.Name); err != nil {
		return Key{}, "", err
	}
	project, user, err := a.keyHolder(ctx, who, n)
	if err != nil {
		return Key{}, "", err
	}
	scopes, err := scopesOf(who, n.Scopes)
	if err != nil {
		return Key{}, "", err
	}
	expires, err := a.expiry(ctx, who, n.Life)
	if err != nil {
		return Key{}, "", err
	}
	if err := a.roomForKey(ctx, project); err != nil {
		return Key{}, "", err
	}
	k, text := a.mint(project, user, n.Name)
	k.Scopes, k.Expires = scopes, expires
	if n.Holder != nil {
		if k, err = a.linked(ctx, who, k, *n.Holder); err != nil {
			return Key{}, "", err
		}
		text = ""
	}
	if err := a.Store.AddKey(ctx, k); err != nil {
		return Key{}, "", err
	}
	return k, text, nil
}

// mint returns a key that nobody has yet, for ever and with all of its user's rights, and its text.
func (a *Accounts) mint(project, user, name string) (Key, string) {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	id, word := ident.New(ident.Key), base32Text(secret[:])
	text := textOf(id, word)
	hash := sha256.Sum256([]byte(word))
	return Key{
		ID: id, Project: project, User: user, Name: name, Hash: hash[:], Last4: text[len(text)-4:], Created: a.now().UTC(),
	}, text
}

// keyHolder returns the user and the project of the key n, if who may make a key for that user.
func (a *Accounts) keyHolder(ctx context.Context, who Principal, n NewKey) (project, user string, err error) {
	project, user = who.Project, who.User
	if n.Project != "" {
		p, err := a.projectFor(ctx, who, n.Project)
		if err != nil {
			return "", "", err
		}
		project = p.ID
	}
	if n.User == "" && project == who.Project {
		return project, user, nil
	}
	if n.User != "" {
		user = n.User
	}
	u, err := a.Store.User(ctx, user)
	if err != nil {
		return "", "", err
	}
	if u.ID == who.User && project == who.Project {
		return project, u.ID, nil
	}
	role, err := a.Store.Role(ctx, project, u.ID)
	if err != nil {
		return "", "", err
	}
	switch {
	case !rules(who, project):
		return "", "", forbidden("a " + string(who.Role) + " can make keys for their own use only")
	case role == "":
		return "", "", problem.New(problem.UserNotFound, "the project has no such member").
			WithHint("make the user a member of the project first")
	case !mayTouch(who, project, role):
		return "", "", forbidden("only an owner makes keys for an owner")
	case u.Admin && !who.May(ServerManage):
		return "", "", forbidden("only an admin of the server makes keys for one")
	}
	return project, u.ID, nil
}

// rules says whether who is more than one of the project's members.
func rules(who Principal, project string) bool {
	return who.May(ServerManage) || who.Project == project && (who.Role == Owner || who.Role == Admin)
}

// mayTouch says whether who, who rules the project, may also act on somebody of that role.
func mayTouch(who Principal, project string, role Role) bool {
	return role != Owner || who.May(ServerManage) || who.Project == project && who.Role == Owner
}

func scopesOf(who Principal, wanted []Action) ([]Action, error) {
	if wanted == nil {
		return slices.Clone(who.Scopes), nil
	}
	scopes := make([]Action, 0, len(wanted))
	for _, s := range wanted {
		switch {
		case !slices.Contains(Actions(), s):
			return nil, problem.New(problem.ScopeUnknown, "there is no such scope").WithHint("the scopes are " + actionList())
		case !who.May(s):
			return nil, forbidden("nobody makes a key with more rights than his own: " + string(s))
		case !slices.Contains(scopes, s):
			scopes = append(scopes, s)
		}
	}
	return scopes, nil
}

// expiry returns when a key of that life ends. A key that ends makes none that lives longer: a stolen one would never end.
func (a *Accounts) expiry(ctx context.Context, who Principal, life time.Duration) (time.Time, error) {
	if life < 0 || life > 100*365*24*time.Hour {
		return time.Time{}, problem.New(problem.LifeInvalid, "a key lives from now on, for at most 100 years")
	}
	var expires time.Time
	if life > 0 {
		expires = a.now().UTC().Add(life)
	}
	if who.Key == "" {
		return expires, nil
	}
	own, err := a.Store.Key(ctx, who.Key)
	if err != nil {
		return time.Time{}, err
	}
	switch {
	case own.Expires.IsZero():
		return expires, nil
	case life == 0:
		return own.Expires, nil
	case expires.After(own.Expires):
		return time.Time{}, forbidden("the new key would outlive the key that it is made with")
	}
	return expires, nil
}

func (a *Accounts) roomForKey(ctx context.Context, project string) error {
	keys, err := a.Store.Keys(ctx, project)
	if err != nil {
		return err
	}
	good := 0
	for _, k := range keys {
		if a.good(k) {
			good++
		}
	}
	if good >= maxKeys {
		return problem.New(problem.TooManyKeys, "the project has as many keys as it can have").WithHint("revoke some first")
	}
	return nil
}

// good says whether a key is neither revoked nor expired.
func (a *Accounts) good(k Key) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || a.now().Before(k.Expires))
}

// Keys lists the project's keys; a member sees his own.
func (a *Accounts) Keys(ctx context.Context, who Principal) ([]Key, error) {
	if err := who.Require(KeysManage); err != nil {
		return nil, err
	}
	keys, err := a.Store.Keys(ctx, who.Project)
	if err != nil {
		return nil, err
	}
	if !rules(who, who.Project) {
		keys = slices.DeleteFunc(keys, func(k Key) bool { return k.User != who.User })
	}
	for i := range keys {
		keys[i].Hash = nil
	}
	return keys, nil
}

// AllKeys lists the keys of all projects, those of the oldest project first. Needs KeysManage and ServerManage.
func (a *Accounts) AllKeys(ctx context.Context, who Principal) ([]Key, error) {
	if err := who.Require(ServerManage); err != nil {
		return nil, err
	}
	projects, err := a.Store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var all []Key
	for _, p := range projects {
		who.Project = p.ID
		keys, err := a.Keys(ctx, who)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
	}
	return all, nil
}

// RevokeKey ends a key at once. Ending it again changes nothing.
func (a *Accounts) RevokeKey(ctx context.Context, who Principal, id string) (Key, error) {
	k, err := a.changeKey(ctx, who, id, KeysManage, func(k *Key) {
		if k.Revoked.IsZero() {
			k.Revoked = a.now().UTC()
		}
	})
	return k, a.record(ctx, who, "key.revoke", id, "", err)
}

// SetKeyQuota bounds what a key may use: the JSON of hub.Quota, or nil for the server's default. Needs UsersManage.
func (a *Accounts) SetKeyQuota(ctx context.Context, who Principal, id string, quota []byte) (Key, error) {
	k, err := Key{}, goodQuota(quota)
	if err == nil {
		k, err = a.changeKey(ctx, who, id, UsersManage, func(k *Key) { k.Quota = slices.Clone(quota) })
	}
	return k, a.record(ctx, who, "key.quota", id, string(quota), err)
}

func (a *Accounts) changeKey(ctx context.Context, who Principal, id string, need Action, change func(*Key)) (Key, error) {
	if err := who.Require(need); err != nil {
		return Key{}, err
	}
	if !ident.Valid(ident.Key, id) {
		return Key{}, notFound(problem.KeyNotFound)
	}
	k, err := a.Store.Key(ctx, id)
	if err != nil {
		return Key{}, err
	}
	if k.Project != who.Project && !who.May(ServerManage) || !rules(who, k.Project) && k.User != who.User {
		return Key{}, notFound(problem.KeyNotFound)
	}
	role, err := a.Store.Role(ctx, k.Project, k.User)
	if err != nil {
		return Key{}, err
	}
	if k.User != who.User && !mayTouch(who, k.Project, role) {
		return Key{}, forbidden("only an owner changes an owner's key")
	}
	k, err = a.Store.ChangeKey(ctx, id, func(k *Key) error { change(k); return nil })
	a.known.forget()
	k.Hash = nil
	return k, err
}
