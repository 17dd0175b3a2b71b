package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

const (
	// browserLife is how long a browser that is not used stays signed in, and browserStep how exact that is.
	browserLife = 30 * 24 * time.Hour
	browserStep = 24 * time.Hour
	// codeLife is how long a code can be used.
	codeLife = 15 * time.Minute
	// maxBrowsers bounds the browsers of a user in a project. A further one takes the place of the one that was unused for longest.
	maxBrowsers = 50
)

// Browser is a browser that a user is signed in with, as it is kept: never its secret.
type Browser struct {
	ID      string // ident.Browser; the part of the cookie that it is found by
	Project string
	User    string
	Key     string // that it was signed in with, whose rights and life it has; "": a code
	Hash    []byte // SHA-256 of the secret
	Created time.Time
	Used    time.Time // to the minute
	Expires time.Time // moves on with use
	Revoked time.Time // zero: it is signed in
	Agent   string
	IP      string // that it was signed in from
}

// Code signs a browser in, once.
type Code struct {
	ID            string // SHA-256 of the text, in hexadecimal
	Project, User string
	Created       time.Time
	Expires       time.Time
	Used          time.Time // zero: it was not
}

// BrowserStore keeps browsers, and the codes that sign them in. Not found: browser_not_found.
type BrowserStore interface {
	AddBrowser(ctx context.Context, b Browser) error
	Browser(ctx context.Context, id string) (Browser, error)
	Browsers(ctx context.Context, project, user string) ([]Browser, error) // project "": all
	ChangeBrowser(ctx context.Context, id string, change func(*Browser) error) (Browser, error)
	DeleteBrowser(ctx context.Context, id string) error
	CodeStore
}

// CodeStore keeps the codes that sign browsers in.
type CodeStore interface {
	AddCode(ctx context.Context, c Code) error
	Code(ctx context.Context, id string) (Code, error) // the zero value where there is none
	UseCode(ctx context.Context, id string, at time.Time) error
}

// NewCode makes a code that signs a browser in as a member of a project ("": the caller and its project; else ids or names). Who calls with a key makes none:
// a browser with a code has all rights of its user, and no end.
func (a *Accounts) NewCode(ctx context.Context, who Principal, project, user string) (text string, err error) {
	var c Code
	err = a.alone(ctx, func(ctx context.Context, a *Accounts) (err error) {
		c, text, err = a.newCode(ctx, who, project, user)
		return err
	})
	if err = a.record(ctx, who, "code.create", c.User, "", err); err != nil {
		return "", err
	}
	return text, nil
}

func (a *Accounts) newCode(ctx context.Context, who Principal, project, user string) (Code, string, error) {
	if who.Key != "" || who.Browser != "" {
		return Code{}, "", forbidden("codes are made on the server's machine")
	}
	if err := who.Require(KeysManage); err != nil {
		return Code{}, "", err
	}
	project, user, err := a.keyHolder(ctx, who, NewKey{Project: project, User: user})
	if err != nil {
		return Code{}, "", err
	}
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := base32Text(secret[:])
	now := a.now().UTC()
	c := Code{ID: codeID(text), Project: project, User: user, Created: now, Expires: now.Add(codeLife)}
	return c, text, a.Store.AddCode(ctx, c)
}

func codeID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Redeem returns whom a code stands for, which nobody else gets from then on. Problems: sign_in_code_unknown, also where it has expired; sign_in_code_used.
func (a *Accounts) Redeem(ctx context.Context, visitor Principal, text string) (Principal, error) {
	if !secretText(text) {
		return Principal{}, unknownCode("the code is not one of this server's, or a part of it is missing")
	}
	id := codeID(text)
	c, err := a.Store.Code(ctx, id)
	if err != nil {
		return Principal{}, err
	}
	who := visitor
	if err = a.usable(c); err == nil {
		err = a.alone(ctx, func(ctx context.Context, a *Accounts) error {
			who, err = a.redeem(ctx, id)
			return err
		})
	}
	if err != nil && c.ID != "" {
		visitor.Project, visitor.User = c.Project, c.User
		err = a.record(ctx, visitor, "browser.sign_in", "", "with a code", err)
	}
	who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
	return who, err
}

func (a *Accounts) redeem(ctx context.Context, id string) (Principal, error) {
	c, err := a.Store.Code(ctx, id)
	if err != nil {
		return Principal{}, err
	}
	if err := a.usable(c); err != nil {
		return Principal{}, err
	}
	who, err := a.principal(ctx, Key{Project: c.Project, User: c.User})
	if err != nil {
		return Principal{}, err
	}
	return who, a.Store.UseCode(ctx, id, a.now().UTC())
}

func (a *Accounts) usable(c Code) error {
	switch {
	case c.ID == "":
		return unknownCode("the code is not one of this server's")
	case !c.Used.IsZero():
		return problem.New(problem.SignInCodeUsed, "the code was used already, and works once").WithHint(anotherCode)
	case !a.now().Before(c.Expires):
		return unknownCode("the code has expired: it can be used for 15 minutes")
	}
	return nil
}

const anotherCode = "cove open on the server's machine prints an address with another one; a key signs you in, too"

func unknownCode(message string) error {
	return problem.New(problem.SignInCodeUnknown, message).WithHint(anotherCode)
}

// SignIn signs the caller's browser in and returns the text that it is known by from then on, which is not kept. how is for the audit log.
func (a *Accounts) SignIn(ctx context.Context, who Principal, how string) (Browser, string, error) {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	word := base32Text(secret[:])
	hash := sha256.Sum256([]byte(word))
	now := a.now().UTC()
	b := Browser{
		ID: ident.New(ident.Browser), Project: who.Project, User: who.User, Key: who.Key, Hash: hash[:], Created: now, Used: now.Truncate(usedStep),
		Expires: now.Add(browserLife), Agent: who.Agent, IP: who.IP,
	}
	err := a.alone(ctx, func(ctx context.Context, a *Accounts) error {
		if err := a.roomForBrowser(ctx, who); err != nil {
			return err
		}
		return a.Store.AddBrowser(ctx, b)
	})
	if err = a.record(ctx, who, "browser.sign_in", b.ID, how, err); err != nil {
		return Browser{}, "", err
	}
	return b, ident.Body(b.ID) + "_" + word, nil
}

func (a *Accounts) roomForBrowser(ctx context.Context, who Principal) error {
	have, err := a.Store.Browsers(ctx, who.Project, who.User)
	if err != nil {
		return err
	}
	slices.SortStableFunc(have, func(x, y Browser) int { return x.Used.Compare(y.Used) })
	for len(have) >= maxBrowsers {
		if err := a.Store.DeleteBrowser(ctx, have[0].ID); err != nil {
			return err
		}
		have = have[1:]
	}
	return nil
}

// AuthenticateBrowser returns whom a browser's text stands for: the user with the role of now and, where a key signed in, with its rights and while it is good.
// Anything else is a problem of kind Denied with code "unauthenticated". until is not zero where the browser is to be told that it stays signed in until then.
func (a *Accounts) AuthenticateBrowser(ctx context.Context, text string) (who Principal, until time.Time, err error) {
	id, hash, ok := parseBrowser(text)
	if !ok {
		return Principal{}, until, signedOut()
	}
	now := a.now()
	if who, ok := a.known.get(id, hash, now); ok {
		return who, until, nil
	}
	round := a.known.round()
	b, err := a.Store.Browser(ctx, id)
	if err != nil && problem.Of(err).Kind != problem.NotFound {
		return Principal{}, until, err
	}
	var kept [sha256.Size]byte // of a browser that does not exist: nothing hashes to it
	copy(kept[:], b.Hash)
	same := subtle.ConstantTimeCompare(kept[:], hash[:]) == 1 && err == nil && len(b.Hash) == len(kept)
	if !same || !b.Revoked.IsZero() || !now.Before(b.Expires) {
		return Principal{}, until, signedOut()
	}
	who, ends, err := a.principalOf(ctx, b)
	if err != nil {
		return Principal{}, until, err
	}
	remembered := now.Add(remembering)
	for _, end := range []time.Time{b.Expires, ends} {
		if !end.IsZero() && end.Before(remembered) {
			remembered = end
		}
	}
	a.known.put(round, id, entry{hash, who, remembered})
	if now.Sub(b.Used) >= usedStep {
		a.touches.start(func() { a.touchBrowser(ctx, id, now) })
	}
	if staysUntil := now.UTC().Add(browserLife); staysUntil.Sub(b.Expires) >= browserStep {
		until = staysUntil
	}
	return who, until, nil
}

// principalOf returns the user that is signed in with a browser, and when the key ends that it was signed in with.
func (a *Accounts) principalOf(ctx context.Context, b Browser) (who Principal, ends time.Time, err error) {
	k := Key{Project: b.Project, User: b.User}
	if b.Key != "" {
		k, err = a.Store.Key(ctx, b.Key)
		if err != nil && problem.Of(err).Kind != problem.NotFound {
			return Principal{}, ends, err
		}
		if err != nil || !a.good(k) || k.Project != b.Project || k.User != b.User {
			return Principal{}, ends, signedOut()
		}
	}
	who, err = a.principal(ctx, k)
	if problem.Is(err, problem.Denied) {
		err = signedOut()
	}
	who.Browser = b.ID
	return who, k.Expires, err
}

func signedOut() error {
	return problem.New(problem.Unauthenticated, "this browser is not signed in, or no longer").WithHint("sign in again, with a key or with the address that cove open prints on the server's machine")
}

// parseBrowser returns the id and the hash of the secret in a browser's text, which is ID_SECRET as in a key's.
func parseBrowser(text string) (id string, hash [sha256.Size]byte, ok bool) {
	name, secret, ok := strings.Cut(text, "_")
	id = ident.Browser + "_" + name
	if !ok || !ident.Valid(ident.Browser, id) || !secretText(secret) {
		return "", hash, false
	}
	return id, sha256.Sum256([]byte(secret)), true
}

// secretText says whether a text has the form of a secret.
func secretText(text string) bool {
	return len(text) == secretLength && strings.Trim(text, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

// touchBrowser is touch for a browser, whose end moves on.
func (a *Accounts) touchBrowser(ctx context.Context, id string, at time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touching)
	defer cancel()
	_, _ = a.Store.ChangeBrowser(ctx, id, func(b *Browser) error {
		if at.Sub(b.Used) < usedStep || !b.Revoked.IsZero() {
			return errFresh
		}
		b.Used = at.UTC().Truncate(usedStep)
		if stays := at.UTC().Add(browserLife); stays.Sub(b.Expires) >= browserStep {
			b.Expires = stays
		}
		return nil
	})
}

// SignOut ends the caller's browser. A caller with a key has none, and nothing happens.
func (a *Accounts) SignOut(ctx context.Context, who Principal) error {
	if who.Browser == "" {
		return nil
	}
	return a.record(ctx, who, "browser.sign_out", who.Browser, "", a.endBrowser(ctx, who.Browser))
}

func (a *Accounts) endBrowser(ctx context.Context, id string) error {
	_, err := a.Store.ChangeBrowser(ctx, id, func(b *Browser) error {
		if b.Revoked.IsZero() {
			b.Revoked = a.now().UTC()
		}
		return nil
	})
	a.known.forget()
	return err
}

// Browsers lists the caller's browsers in its project that are signed in. With a key that is limited these are those that were signed in with it.
func (a *Accounts) Browsers(ctx context.Context, who Principal) ([]Browser, error) {
	all, err := a.Store.Browsers(ctx, who.Project, who.User)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(b Browser) bool { return !b.Revoked.IsZero() || !a.now().Before(b.Expires) || !seesBrowser(who, b) })
	for i := range all {
		all[i].Hash = nil
	}
	return all, nil
}

func seesBrowser(who Principal, b Browser) bool {
	return b.User == who.User && b.Project == who.Project && (who.Scopes == nil || b.Key == who.Key)
}

// RevokeBrowser signs one of the caller's browsers out. Ending it again changes nothing.
func (a *Accounts) RevokeBrowser(ctx context.Context, who Principal, id string) error {
	return a.record(ctx, who, "browser.revoke", id, "", a.revokeBrowser(ctx, who, id))
}

func (a *Accounts) revokeBrowser(ctx context.Context, who Principal, id string) error {
	if !ident.Valid(ident.Browser, id) {
		return notFound(problem.BrowserNotFound)
	}
	b, err := a.Store.Browser(ctx, id)
	if err != nil {
		return err
	}
	if !seesBrowser(who, b) {
		return notFound(problem.BrowserNotFound)
	}
	return a.endBrowser(ctx, id)
}
