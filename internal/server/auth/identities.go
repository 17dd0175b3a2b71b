package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"unicode"
	"unicode/utf8"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/audit"
)

// longestHolder bounds what a token calls its holder, in bytes. OpenID Connect allows a subject 255.
const longestHolder = 255

// Identity is whom an access token stands for. Everything about the token has been checked.
type Identity struct {
	Issuer string // address of the authorization server
	Claim  string // that names the holder: "sub"
	Value  string // of the claim, which is the holder's for ever at that issuer
}

// Subject is the identity as a key has it. Another server, or another claim, has other holders of the same names.
func (i Identity) Subject() string { return i.Claim + "=" + i.Value + " " + i.Issuer }

// check says whether the identity can be anybody's.
func (i Identity) check() error {
	wrong := problem.New(problem.NameInvalid, "what a token calls its holder has 1 to 255 bytes of UTF-8 without control characters")
	if i.Value == "" || len(i.Value) > longestHolder || !utf8.ValidString(i.Value) {
		return wrong
	}
	for _, r := range i.Value {
		if !unicode.IsPrint(r) {
			return wrong
		}
	}
	if i.Issuer == "" || i.Claim == "" {
		return problem.New(problem.ConfigInvalid, "no authorization server is named").WithHint("set oauth.issuer, or COVE_OAUTH_ISSUER")
	}
	return nil
}

// linked returns k as a key that stands for somebody's access tokens.
func (a *Accounts) linked(ctx context.Context, who Principal, k Key, of Identity) (Key, error) {
	if !who.May(ServerManage) { // else an admin of one project would have others' tokens lead into it
		return Key{}, forbidden("only an admin of the server links holders of access tokens")
	}
	if err := of.check(); err != nil {
		return Key{}, err
	}
	before, err := a.Store.KeyOf(ctx, of.Subject())
	if err == nil && before.Revoked.IsZero() {
		return Key{}, problem.New(problem.HolderExists, "the key "+before.ID+" stands for these tokens").WithHint("revoke that key first")
	}
	if err != nil && problem.Of(err).Kind != problem.NotFound {
		return Key{}, err
	}
	k.Hash, k.Last4, k.Subject = []byte{}, "", of.Subject()
	return k, nil
}

// AuthenticateHolder returns the caller that an access token stands for: that of the key which is linked to its holder, with no more rights than it takes to work.
// Where nobody is linked, join makes a user who is a member of a project (with the role) and a key; nil: nobody joins. Problems: holder_unknown, which is
// also who is a member no more, or whose key was revoked or has expired.
func (a *Accounts) AuthenticateHolder(ctx context.Context, of Identity, join *Membership) (Principal, error) {
	if err := of.check(); err != nil {
		return Principal{}, holderUnknown(Identity{Claim: of.Claim, Value: "not a name"}).WithCause(err)
	}
	subject, now := of.Subject(), a.now()
	hash := sha256.Sum256([]byte(subject))
	if who, ok := a.known.get(subject, hash, now); ok {
		return who, nil
	}
	round := a.known.round()
	k, err := a.Store.KeyOf(ctx, subject)
	if problem.Is(err, problem.NotFound) && join != nil {
		k, err = a.join(ctx, of, *join)
		round = a.known.round()
	}
	switch {
	case problem.Is(err, problem.NotFound):
		return Principal{}, holderUnknown(of)
	case err != nil:
		return Principal{}, err
	case k.Subject != subject || !a.good(k):
		return Principal{}, holderUnknown(of)
	}
	who, err := a.principal(ctx, k)
	if problem.Is(err, problem.Denied) {
		return Principal{}, holderUnknown(of)
	}
	if err != nil {
		return Principal{}, err
	}
	// Somebody else's server says who calls: that is enough to work, not to rule.
	who.Admin, who.Scopes = false, slices.DeleteFunc(slices.Clone(working), func(action Action) bool { return k.Scopes != nil && !slices.Contains(k.Scopes, action) })
	until := now.Add(remembering)
	if !k.Expires.IsZero() && k.Expires.Before(until) {
		until = k.Expires
	}
	a.known.put(round, subject, entry{hash, who, until})
	if now.Sub(k.Used) >= usedStep {
		a.touches.start(func() { a.touch(ctx, k.ID, now) })
	}
	return who, nil
}

func holderUnknown(of Identity) *problem.Error {
	return problem.New(problem.HolderUnknown, "nobody on this server is linked to the holder of the access token, or no longer: "+of.Claim+" is "+of.Value).
		WithHint("ask an admin of the server to link this holder to a user")
}

// join makes a user, a membership and a key for somebody who comes for the first time.
func (a *Accounts) join(ctx context.Context, of Identity, m Membership) (k Key, err error) {
	var rows []audit.Row
	var who Principal
	err = a.alone(ctx, func(ctx context.Context, a *Accounts) error {
		rows = nil
		if before, err := a.Store.KeyOf(ctx, of.Subject()); err == nil || !problem.Is(err, problem.NotFound) {
			k = before
			return err
		}
		p, err := a.Store.Project(ctx, m.Project)
		if problem.Is(err, problem.NotFound) {
			return errors.New("oauth.newcomers names a project that is not there: " + m.Project) // the operator's mistake, for the log
		} else if err != nil {
			return err
		}
		u := User{ID: ident.New(ident.User), Name: of.Value, Created: a.now().UTC()}
		if err := a.createUser(ctx, Local(), u); problem.Is(err, problem.Invalid) { // a user of that name may be somebody else
			return holderUnknown(of).WithCause(err)
		} else if err != nil {
			return err
		}
		if err := a.Store.SetMember(ctx, Membership{Project: p.ID, User: u.ID, Role: m.Role}); err != nil {
			return err
		}
		if err := a.roomForKey(ctx, p.ID); err != nil {
			return err
		}
		k, _ = a.mint(p.ID, u.ID, "access tokens")
		k.Hash, k.Last4, k.Subject = []byte{}, "", of.Subject()
		who = Principal{User: u.ID, Project: p.ID, Key: k.ID}
		rows = []audit.Row{
			{Action: "user.create", Target: u.ID, Detail: u.Name}, {Action: "member.set", Target: u.ID, Detail: string(m.Role)}, {Action: "key.create", Target: k.ID, Detail: u.ID},
		}
		return a.Store.AddKey(ctx, k)
	})
	for _, r := range rows {
		if err == nil {
			err = a.record(ctx, who, r.Action, r.Target, r.Detail, nil)
		}
	}
	return k, err
}
