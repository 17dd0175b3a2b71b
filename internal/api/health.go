package api

import (
	"context"
	"net/http"
	"runtime"

	"cove/internal/auth"
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

// Caller is the user and the project of a key.
type Caller struct {
	User    string        `json:"user"`
	Project string        `json:"project"`
	Key     string        `json:"key,omitempty"`
	Role    auth.Role     `json:"role"`
	Scopes  []auth.Action `json:"scopes,omitempty" doc:"What the key is limited to; missing: all that the role may"`
	Admin   bool          `json:"admin" doc:"Of the server"`
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
	add(s, operation{id: "me", method: http.MethodGet, path: "/me", tag: tag, summary: "Who am I?", about: "The user and the project of your key, and what it may do. Any key is enough.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/me`},
		func(_ context.Context, who auth.Principal, _ *struct{}) (Caller, error) {
			return Caller{User: who.User, Project: who.Project, Key: who.Key, Role: who.Role, Scopes: who.Scopes, Admin: who.Admin}, nil
		})
}
