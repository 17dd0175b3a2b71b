package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

const (
	shortestPassword = 10  // characters
	longestPassword  = 200 // characters
	longestLogin     = 100 // characters

	// What OWASP has for Argon2id: https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonSalt   = 16
	argonKey    = 32

	hashesAtOnce  = 2
	hashesWaiting = 64
	hashPatience  = 10 * time.Second
)

// Password is how a user signs in without a key.
type Password struct {
	User    string
	Login   string // as loginOf has it; nobody else's
	Hash    string // in the PHC string format
	Changed time.Time
}

// PasswordStore keeps passwords.
type PasswordStore interface {
	SetPassword(ctx context.Context, p Password) error // in place of the user's last one. Problems: user_exists
	Password(ctx context.Context, user string) (Password, error)
	PasswordOf(ctx context.Context, login string) (Password, error) // both: the zero value where there is none
}

// loginOf returns a name that people sign in with as it is compared, without regard to case and width.
func loginOf(name string) (string, error) {
	wrong := problem.New(problem.NameInvalid, "a name to sign in with has 1 to 100 letters, digits and signs, and no spaces").WithHint("take a name such as ada, or an address")
	if utf8.RuneCountInString(name) > longestLogin || ident.Valid(ident.User, name) {
		return "", wrong
	}
	login, err := precis.UsernameCaseMapped.CompareKey(name)
	if err != nil || login == "" || goodName(login) != nil || utf8.RuneCountInString(login) > longestLogin {
		return "", wrong.WithCause(err)
	}
	return login, nil
}

// goodPassword returns a password as it is hashed: however a keyboard composes its characters.
func goodPassword(text, login string) (string, error) {
	wrong := problem.New(problem.PasswordInvalid, "a password has 10 to 200 characters").WithHint("take a few words that do not belong together")
	if !utf8.ValidString(text) || len(text) > 4*longestPassword {
		return "", wrong
	}
	text = norm.NFKC.String(text)
	if n := utf8.RuneCountInString(text); n < shortestPassword || n > longestPassword || strings.ContainsFunc(text, unicode.IsControl) {
		return "", wrong
	}
	switch {
	case strings.EqualFold(text, login):
		return "", problem.New(problem.PasswordInvalid, "the password is the name that you sign in with").WithHint("take a few words that do not belong together")
	case strings.Count(text, text[:utf8Length(text)])*utf8Length(text) == len(text):
		return "", problem.New(problem.PasswordInvalid, "the password is one character again and again").WithHint("take a few words that do not belong together")
	}
	return text, nil
}

// utf8Length is the length of a text's first character in bytes.
func utf8Length(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// hashing bounds how many passwords are hashed at the same time: each takes 19 MiB and a processor. Its zero value is ready.
type hashing struct {
	once    sync.Once
	places  chan struct{}
	waiting chan struct{}
	done    atomic.Int64 // hashes that were begun
}

// enter waits for a place. leave gives it back.
func (h *hashing) enter(ctx context.Context) (leave func(), err error) {
	h.once.Do(func() { h.places, h.waiting = make(chan struct{}, hashesAtOnce), make(chan struct{}, hashesWaiting) })
	full := problem.New(problem.Overloaded, "too many people sign in with passwords at this moment").WithHint("try again in a moment")
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return nil, full
	}
	ctx, cancel := context.WithTimeout(ctx, hashPatience)
	defer cancel()
	select {
	case h.places <- struct{}{}:
		h.done.Add(1)
		return func() { <-h.places }, nil
	case <-ctx.Done():
		return nil, full
	}
}

// hash returns what is kept of a password.
func (h *hashing) hash(ctx context.Context, text string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	var salt [argonSalt]byte
	_, _ = rand.Read(salt[:]) // never fails
	return phc{argonMemory, argonTime, argonLanes, salt[:], argon2.IDKey([]byte(text), salt[:], argonTime, argonMemory, argonLanes, argonKey)}.String(), nil
}

// same says whether a password is the one that was kept. Where none was, kept is "": that takes as long, and is never the same.
func (h *hashing) same(ctx context.Context, text, kept string) (bool, error) {
	p, known := parsePHC(kept)
	leave, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	key := argon2.IDKey([]byte(text), p.salt, p.time, p.memory, p.lanes, uint32(len(p.key)))
	return subtle.ConstantTimeCompare(key, p.key) == 1 && known, nil
}

// phc is a hash with its parameters.
type phc struct {
	memory, time uint32
	lanes        uint8
	salt, key    []byte
}

func (p phc) String() string {
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.time, p.lanes, text(p.salt), text(p.key))
}

// parsePHC returns a hash of nothing, which costs as much, where the text is none that this server makes or bears to compute.
func parsePHC(text string) (p phc, ok bool) {
	nobody := phc{argonMemory, argonTime, argonLanes, make([]byte, argonSalt), make([]byte, argonKey)}
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return nobody, false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.lanes); err != nil {
		return nobody, false
	}
	var err, err2 error
	p.salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	bearable := p.memory >= 8 && p.memory <= 64<<10 && p.time >= 1 && p.time <= 10 && p.lanes >= 1 && p.lanes <= 4
	if err != nil || err2 != nil || !bearable || len(p.salt) < 8 || len(p.salt) > 64 || len(p.key) < 16 || len(p.key) > 64 {
		return nobody, false
	}
	return p, true
}

// LoginKey is what wrong passwords for a name are counted by: the same for all ways to write it.
func LoginKey(name string) string {
	if login, err := loginOf(name); err == nil {
		return login
	}
	return "" // nobody's, for which no password is looked at
}

// AuthenticatePassword returns whom a name and a password stand for, in a project ("": the first that the user is a member of). Neither the answer nor the
// time that it takes tells whether there is such a user. Problems: sign_in_wrong; with a right password also forbidden and project_not_found.
func (a *Accounts) AuthenticatePassword(ctx context.Context, visitor Principal, name, password, project string) (Principal, error) {
	login, err := loginOf(name)
	text, err2 := goodPassword(password, "")
	if err != nil || err2 != nil {
		return Principal{}, wrongSignIn() // nobody has such a name or password
	}
	kept, err := a.Store.PasswordOf(ctx, login)
	if err != nil {
		return Principal{}, err
	}
	same, err := a.hashing.same(ctx, text, kept.Hash)
	if err != nil {
		return Principal{}, err
	}
	if !same {
		visitor.User = kept.User
		return Principal{}, a.record(ctx, visitor, "browser.sign_in", "", "with a password", wrongSignIn())
	}
	who, err := a.memberOf(ctx, kept.User, project)
	who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
	return who, err
}

func wrongSignIn() error {
	return problem.New(problem.SignInWrong, "the name or the password is not right").WithHint("an admin of the server makes a link for a new password")
}

// memberOf returns a user as a member of a project.
func (a *Accounts) memberOf(ctx context.Context, user, project string) (Principal, error) {
	if project == "" {
		of, err := a.Store.Memberships(ctx, user)
		if err != nil {
			return Principal{}, err
		}
		if len(of) == 0 {
			return Principal{}, forbidden("you are no member of a project")
		}
		return a.principal(ctx, Key{Project: of[0].Project, User: user})
	}
	p, err := a.Store.Project(ctx, project)
	if err != nil {
		return Principal{}, err
	}
	who, err := a.principal(ctx, Key{Project: p.ID, User: user})
	if problem.Is(err, problem.Denied) {
		err = notFound(problem.ProjectNotFound)
	}
	return who, err
}

// NewPassword says what password the caller wants.
type NewPassword struct {
	Current  string // the present one
	Login    string // the name to sign in with, where there is no password yet
	Password string
}

// SetPassword gives the caller a new password, and signs its other browsers out. Without a password yet that takes a browser that was signed in without a
// key: who has a key for an hour would have a password for ever. Problems: password_wrong, password_invalid, user_exists.
func (a *Accounts) SetPassword(ctx context.Context, who Principal, n NewPassword) error {
	return a.record(ctx, who, "password.set", who.User, "", a.setPassword(ctx, who, n))
}

func (a *Accounts) setPassword(ctx context.Context, who Principal, n NewPassword) error {
	had, err := a.Store.Password(ctx, who.User)
	if err != nil {
		return err
	}
	p := Password{User: who.User, Login: had.Login}
	switch {
	case had.Hash != "":
		if err := a.rightPassword(ctx, n.Current, had.Hash); err != nil {
			return err
		}
	case who.Browser == "" || who.Key != "":
		return forbidden("a first password is set in a browser that was signed in with a code")
	default:
		if p.Login, err = loginOf(n.Login); err != nil {
			return err
		}
	}
	if p.Hash, err = a.hashNew(ctx, n.Password, p.Login); err != nil {
		return err
	}
	return a.alone(ctx, func(ctx context.Context, a *Accounts) error {
		now, err := a.Store.Password(ctx, who.User)
		if err != nil {
			return err
		}
		if now.Hash != had.Hash {
			return problem.New(problem.PasswordWrong, "the password was changed a moment ago")
		}
		return a.keepPassword(ctx, p, who.Browser)
	})
}

func (a *Accounts) rightPassword(ctx context.Context, text, kept string) error {
	wrong := problem.New(problem.PasswordWrong, "the present password is not right")
	text, err := goodPassword(text, "")
	if err != nil {
		return wrong
	}
	same, err := a.hashing.same(ctx, text, kept)
	if err == nil && !same {
		err = wrong
	}
	return err
}

func (a *Accounts) hashNew(ctx context.Context, password, login string) (string, error) {
	text, err := goodPassword(password, login)
	if err != nil {
		return "", err
	}
	return a.hashing.hash(ctx, text)
}

// keepPassword writes a password and signs all browsers of its user out but one.
func (a *Accounts) keepPassword(ctx context.Context, p Password, but string) error {
	if err := a.freeLogin(ctx, p.Login, p.User); err != nil {
		return err
	}
	p.Changed = a.now().UTC()
	if err := a.Store.SetPassword(ctx, p); err != nil {
		return err
	}
	browsers, err := a.Store.Browsers(ctx, "", p.User)
	if err != nil {
		return err
	}
	for _, b := range browsers {
		if b.ID == but || !b.Revoked.IsZero() {
			continue
		}
		if _, err := a.Store.ChangeBrowser(ctx, b.ID, func(b *Browser) error { b.Revoked = a.now().UTC(); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// freeLogin returns nil when a name to sign in with is nobody's but user's, and is not what another user is called either.
func (a *Accounts) freeLogin(ctx context.Context, login, user string) error {
	taken := problem.New(problem.UserExists, "there is a user of that name").WithHint("take another name")
	p, err := a.Store.PasswordOf(ctx, login)
	if err != nil {
		return err
	}
	if p.User != "" && p.User != user {
		return taken
	}
	users, err := a.Store.Users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if name, err := loginOf(u.Name); err == nil && name == login && u.ID != user {
			return taken
		}
	}
	return nil
}
