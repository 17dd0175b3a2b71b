package app

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cove/internal/commands/cli"
	"cove/internal/core/problem"
	"cove/internal/http/compat/mcp"
	"cove/internal/server/auth"
	"cove/internal/server/oauth"
)

// tokens is whose access tokens are taken beside keys; nil where the operator has named nobody. It makes s.issuer.
func (s *server) tokens() (*mcp.OAuth, error) {
	set := s.cfg.OAuth
	if set.Issuer == "" {
		return nil, nil
	}
	if set.Resource == "" && slices.ContainsFunc(s.cfg.Serve.Listen, func(address string) bool { return !onlyHere(address) }) {
		return nil, problem.New(problem.ConfigInvalid, "oauth.resource must be set, since others than this machine's programs reach the server").
			WithHint("set oauth.resource (COVE_OAUTH_RESOURCE) to the address of /mcp as clients have it, such as https://cove.example.com/mcp")
	}
	resource := func() string { return cmp.Or(set.Resource, s.about.Address+"/mcp") } // by now with the port that the server has got
	o := oauth.Set(set)
	o.Log, o.Audience = s.log, func() string { return cmp.Or(set.Audience, resource()) }
	s.issuer = oauth.New(o)
	var join *auth.Membership
	if project, role := set.Join(); project != "" {
		join = &auth.Membership{Project: project, Role: auth.Role(role)}
	}
	return &mcp.OAuth{Issuer: set.Issuer, Resource: resource, Scope: o.Scope, Caller: func(ctx context.Context, token string) (auth.Principal, error) {
		holder, err := s.issuer.Verify(ctx, token)
		if err != nil {
			return auth.Principal{}, err
		}
		return s.accounts.AuthenticateHolder(ctx, holder, join)
	}}, nil
}

// greetIssuer says at the start whether tokens can be looked at. The server starts all the same: keys work, and the issuer is asked again when a token comes.
func (s *server) greetIssuer(ctx context.Context, _ cli.ServerOptions) error {
	if s.issuer == nil {
		return nil
	}
	if project, _ := s.cfg.OAuth.Join(); project != "" {
		if _, err := s.store.Project(ctx, project); err != nil {
			s.log.Warn("nobody joins: oauth.newcomers names a project that cannot be found", "project", project, "error", problem.Of(err).Message)
		}
	}
	if err := s.issuer.Check(ctx); err != nil {
		s.log.Warn("access tokens are refused until the authorization server can be asked", "issuer", s.cfg.OAuth.Issuer, "error", problem.Of(err).Message, "cause", errors.Unwrap(err))
		return nil
	}
	s.log.Info("access tokens are taken at /mcp", "issuer", s.cfg.OAuth.Issuer)
	return nil
}
