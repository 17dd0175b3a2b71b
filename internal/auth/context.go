package auth

import "context"

type principalKey struct{}

// With returns a context that carries the caller, as the server's authentication sets it for every surface behind it.
func With(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// From returns the caller that With put into the context, and whether there is one.
func From(ctx context.Context) (Principal, bool) {
	who, ok := ctx.Value(principalKey{}).(Principal)
	return who, ok
}
