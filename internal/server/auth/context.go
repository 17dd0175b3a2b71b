package auth

import "context"

type principalKey struct{}

// With returns a context that carries the caller, as the server's authentication sets it for every surface after it.
func With(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// From returns the caller that With put into the context, and whether there is one.
func From(ctx context.Context) (Principal, bool) {
	who, ok := ctx.Value(principalKey{}).(Principal)
	return who, ok
}

type placeKey struct{}

// WithPlace returns a context of a request that takes one of the places of those that are served at a time; leave gives it up, and may be called more than once.
func WithPlace(ctx context.Context, leave func()) context.Context {
	return context.WithValue(ctx, placeKey{}, leave)
}

// LeavePlace gives up the place of a request that has become a lasting connection, which is bounded by itself.
func LeavePlace(ctx context.Context) {
	if leave, ok := ctx.Value(placeKey{}).(func()); ok {
		leave()
	}
}

type againKey struct{}

// WithAgain returns a context of a connection that carries several requests: again looks at the caller anew for each of them, because a key may
// have been revoked since, and counts it.
func WithAgain(ctx context.Context, again func(context.Context) (Principal, error)) context.Context {
	return context.WithValue(ctx, againKey{}, again)
}

// Again returns the caller of the next request on a connection, or why it is refused. Without WithAgain it is the caller of the first.
func Again(ctx context.Context) (Principal, error) {
	if again, ok := ctx.Value(againKey{}).(func(context.Context) (Principal, error)); ok {
		return again(ctx)
	}
	who, _ := From(ctx)
	return who, nil
}
