package api

import (
	"context"
	"net/http"
	"runtime"

	"cove/internal/server/auth"
)

// Health says that the server answers.
type Health struct {
	Status string `json:"status" enum:"ok,ready"`
}

// Version is the server's version.
type Version struct {
	Version string `json:"version"`
	API     string `json:"api" example:"v1"`
	Go      string `json:"go"`
}

// Settings are what of the server's settings its page has to know.
type Settings struct {
	Version string `json:"version"`
	Model   bool   `json:"model" doc:"Whether you may ask a model, and there is one"`
	Upload  int64  `json:"upload_bytes" doc:"The largest file that can be uploaded"`
	JSON    int64  `json:"json_bytes" doc:"The largest JSON body"`
	Sharing bool   `json:"sharing" doc:"Whether conversations can be shared by links"`
	Quota   *Quota `json:"project_quota,omitempty" doc:"What a project may use that has no quota of its own, for those who may server:manage"`
	Scripts bool   `json:"scripts" doc:"Whether the page may run HTML with scripts that code made, in a frame of its own, when the user asks for it"`
}

// PublicSettings are what of the server's settings its page has to know before anybody has signed in.
type PublicSettings struct {
	Passwords bool `json:"passwords" doc:"Whether a name and a password sign a browser in"`
	Sharing   bool `json:"sharing" doc:"Whether conversations can be shared by links"`
}

// Caller is the user and the project of a key.
type Caller struct {
	User        string        `json:"user"`
	UserName    string        `json:"user_name"`
	Project     string        `json:"project"`
	ProjectName string        `json:"project_name"`
	Login       string        `json:"login,omitempty" doc:"The name to sign in with; missing: the user has no password"`
	Key         string        `json:"key,omitempty"`
	Browser     string        `json:"browser,omitempty" doc:"Where a browser that is signed in asks"`
	Role        auth.Role     `json:"role"`
	Scopes      []auth.Action `json:"scopes,omitempty" doc:"What the key is limited to; missing: all that the role may"`
	Admin       bool          `json:"admin" doc:"Of the server"`
}

func (s *server) addHealth() {
	const tag = "server"
	add(s, operation{id: "health", method: http.MethodGet, path: "/health", tag: tag, public: true, summary: "Does the server answer?", example: `curl $COVE/health`},
		func(context.Context, auth.Principal, *struct{}) (Health, error) { return Health{Status: "ok"}, nil })
	add(s, operation{id: "ready", method: http.MethodGet, path: "/health/ready", tag: tag, public: true, summary: "Can it serve?", about: "503 when it cannot, as while it starts or ends.",
		example: `curl $COVE/health/ready`},
		func(ctx context.Context, _ auth.Principal, _ *struct{}) (Health, error) {
			return Health{Status: "ready"}, s.o.Ready(ctx)
		})
	add(s, operation{id: "version", method: http.MethodGet, path: "/version", tag: tag, summary: "What is it?", about: "Any key is enough.", example: `curl -H "Authorization: Bearer $KEY" $COVE/version`},
		func(context.Context, auth.Principal, *struct{}) (Version, error) {
			return Version{Version: s.o.Version, API: "v1", Go: runtime.Version()}, nil
		})
	add(s, operation{id: "settings", method: http.MethodGet, path: "/settings", tag: tag, summary: "What can be done here?", about: "What the server's page asks when it is loaded. Any key is enough.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/settings`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (Settings, error) {
			models, err := s.o.Hub.Models(ctx, who) // fails where the caller may ask none, or the provider cannot be reached: that is none, and no reason not to load
			out := Settings{Version: s.o.Version, Model: err == nil && len(models) > 0, Upload: s.o.MaxFile, JSON: maxJSON, Sharing: !s.o.NoSharing, Scripts: !s.o.NoScripts}
			if who.May(auth.ServerManage) {
				out.Quota = &s.o.ProjectQuota
			}
			return out, nil
		})
	add(s, operation{id: "settings.public", method: http.MethodGet, path: "/settings/public", tag: tag, public: true, summary: "What can be done before signing in?", about: "What the server's page asks before anybody has signed in.",
		example: `curl $COVE/settings/public`},
		func(context.Context, auth.Principal, *struct{}) (PublicSettings, error) {
			return PublicSettings{Passwords: true, Sharing: !s.o.NoSharing}, nil
		})
	add(s, operation{id: "me", method: http.MethodGet, path: "/me", tag: tag, summary: "Who am I?", about: "The user and the project of your key, and what it may do. Any key is enough.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/me`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (Caller, error) { return s.caller(ctx, who) })
}

func (s *server) caller(ctx context.Context, who auth.Principal) (Caller, error) {
	self, err := s.o.Accounts.Self(ctx, who)
	return Caller{User: who.User, UserName: self.User, Project: who.Project, ProjectName: self.Project, Login: self.Login, Key: who.Key, Browser: who.Browser,
		Role: who.Role, Scopes: who.Scopes, Admin: who.Admin}, err
}
