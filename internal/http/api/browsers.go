package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// Browsers are the browsers that the users of a server are signed in with; *auth.Accounts, which documents the methods.
type Browsers interface {
	Authenticate(ctx context.Context, text string) (auth.Principal, error)
	Redeem(ctx context.Context, visitor auth.Principal, text string) (auth.Principal, error)
	AuthenticatePassword(ctx context.Context, visitor auth.Principal, name, password, project string) (auth.Principal, error)
	SignIn(ctx context.Context, who auth.Principal, how string) (auth.Browser, string, error)
	SignOut(ctx context.Context, who auth.Principal) error
	Browsers(ctx context.Context, who auth.Principal) ([]auth.Browser, error)
	RevokeBrowser(ctx context.Context, who auth.Principal, id string) error
}

// Browser is a browser that you are signed in with.
type Browser struct {
	ID      string    `json:"id" example:"brw_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Key     string    `json:"key,omitempty" doc:"That it was signed in with, and whose rights it has; missing: a code"`
	Created time.Time `json:"created_at"`
	Used    time.Time `json:"used_at" doc:"To the minute"`
	Expires time.Time `json:"expires_at" doc:"Unless it is used before"`
	Agent   string    `json:"agent" doc:"What the browser says it is"`
	IP      string    `json:"ip" doc:"From where it was signed in"`
	Current bool      `json:"current" doc:"Whether it is the one that asks"`
}

type (
	signIn struct {
		Body struct {
			Code string `json:"code,omitempty" maxLength:"200" doc:"As in the address that cove serve and cove open print, after #setup="`
			Key  string `json:"key,omitempty" maxLength:"200" doc:"A key's text"`

			User     string `json:"user,omitempty" maxLength:"200" doc:"The name that you sign in with, in large or small letters"`
			Password string `json:"password,omitempty" maxLength:"800"`
			Project  string `json:"project,omitempty" maxLength:"200" doc:"Id or name of the project to work in, with a password; the oldest that you are a member of when left out"`
		}
	}
	// BrowserPath names a browser in an address.
	BrowserPath struct {
		Browser string `path:"browser" maxLength:"64" example:"brw_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
)

func (s *server) addBrowsers() {
	const tag = "browsers"
	add(s, operation{id: "browser.sign_in", method: http.MethodPost, path: "/sign-in", tag: tag, public: true, repeat: repeatNever, summary: "Sign a browser in",
		about:  "With a code, which works once, with a key, or with a name and a password. The answer sets the cookie.",
		errors: []problem.Code{problem.SignInCodeUnknown, problem.SignInCodeUsed, problem.SignInWrong, problem.Unauthenticated, problem.KeyExpired, problem.TooManyFailedLogins},
		example: `curl -c cookies $COVE/sign-in -d "{\"key\":\"$KEY\"}"
BROWSER=$(curl -s -b cookies $COVE/me | field browser)`},
		func(ctx context.Context, _ auth.Principal, in *signIn) (Caller, error) { return s.signIn(ctx, in) })
	addSilent(s, operation{id: "browser.sign_out", method: http.MethodPost, path: "/sign-out", tag: tag, repeat: repeatNever, summary: "Sign this browser out",
		about: "At once; the cookie is removed. With a key nothing happens.", example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sign-out`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) error {
			err := s.o.Accounts.SignOut(ctx, who)
			if err == nil {
				auth.VisitOf(ctx).Forget()
			}
			return err
		})
	add(s, operation{id: "browser.list", method: http.MethodGet, path: "/browsers", tag: tag, summary: "List your browsers",
		about: "Those that you are signed in with, in this project. A key that is limited shows those that were signed in with it.", example: `curl -H "Authorization: Bearer $KEY" $COVE/browsers`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (List[Browser], error) {
			out, err := s.o.Accounts.Browsers(ctx, who)
			return List[Browser]{Items: each(out, func(b auth.Browser) Browser {
				return Browser{ID: b.ID, Key: b.Key, Created: b.Created.UTC(), Used: b.Used.UTC(), Expires: b.Expires.UTC(), Agent: b.Agent, IP: b.IP, Current: b.ID == who.Browser}
			})}, err
		})
	addSilent(s, operation{id: "browser.revoke", method: http.MethodDelete, path: "/browsers/{browser}", tag: tag, summary: "Sign one of your browsers out", about: "At once.",
		errors: []problem.Code{problem.BrowserNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/browsers/$BROWSER`},
		func(ctx context.Context, who auth.Principal, in *BrowserPath) error {
			err := s.o.Accounts.RevokeBrowser(ctx, who, in.Browser)
			if err == nil && in.Browser == who.Browser {
				auth.VisitOf(ctx).Forget()
			}
			return err
		})
}

func (s *server) signIn(ctx context.Context, in *signIn) (Caller, error) {
	b := in.Body
	ways := 0
	for _, way := range []bool{b.Code != "", b.Key != "", b.User != "" && b.Password != ""} {
		if way {
			ways++
		}
	}
	if ways != 1 {
		return Caller{}, problem.New(problem.InvalidRequest, "a browser is signed in with a code, with a key, or with a name and a password").
			WithHint(`send {"code":"..."}, {"key":"cove_..."} or {"user":"...","password":"..."}`)
	}
	visit := auth.VisitOf(ctx)
	visitor := visit.Visitor()
	name, how := "", "with a code"
	switch {
	case b.Key != "":
		how = "with a key"
	case b.Password != "":
		name, how = cmp.Or(auth.LoginKey(b.User), "-"), "with a password"
	}
	who, err := visit.Login(ctx, name, func(ctx context.Context) (auth.Principal, error) {
		switch {
		case b.Code != "":
			return s.o.Accounts.Redeem(ctx, visitor, b.Code)
		case b.Key != "":
			return s.o.Accounts.Authenticate(ctx, b.Key)
		}
		return s.o.Accounts.AuthenticatePassword(ctx, visitor, b.User, b.Password, b.Project)
	})
	if err != nil {
		return Caller{}, err
	}
	who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
	return s.remember(ctx, who, how)
}

// remember signs the visiting browser in.
func (s *server) remember(ctx context.Context, who auth.Principal, how string) (Caller, error) {
	b, text, err := s.o.Accounts.SignIn(ctx, who, how)
	if err != nil {
		return Caller{}, err
	}
	visit := auth.VisitOf(ctx)
	visit.Remember(text, b.Expires)
	who.Browser = b.ID
	return s.caller(ctx, who)
}
