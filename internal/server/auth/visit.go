package auth

import (
	"context"
	"time"
)

// Visit is what the front door does for a surface that signs browsers in, which knows neither of addresses nor of cookies.
type Visit interface {
	// Visitor is nobody yet: Request, IP and Agent alone.
	Visitor() Principal
	// Login has find tell who calls. Addresses that are often refused are held back. With a name find looks at that user's password (see LoginKey): then an
	// address that was refused too often is refused unseen, and so is a name, for a moment.
	Login(ctx context.Context, name string, find func(context.Context) (Principal, error)) (Principal, error)
	// Look has find look up something by a code that it was sent. Addresses that often send wrong ones are held back.
	Look(ctx context.Context, find func(context.Context) error) error
	// Caller is who calls an operation that needs nobody; nobody where the request has no key and no cookie.
	Caller(ctx context.Context) (Principal, error)
	// Enter takes one of the places of requests that are served at a time, for a caller that a surface has found by itself; leave gives it up.
	Enter(ctx context.Context, who Principal) (leave func(), err error)
	// Remember has the browser send text with its requests until then, and Forget no longer.
	Remember(text string, until time.Time)
	Forget()
}

type visitKey struct{}

// WithVisit returns a context that carries the visit.
func WithVisit(ctx context.Context, v Visit) context.Context {
	return context.WithValue(ctx, visitKey{}, v)
}

// VisitOf returns the visit that WithVisit put into the context, or one without a front door.
func VisitOf(ctx context.Context) Visit {
	if v, ok := ctx.Value(visitKey{}).(Visit); ok {
		return v
	}
	return plainVisit{}
}

type plainVisit struct{}

func (plainVisit) Visitor() Principal         { return Principal{} }
func (plainVisit) Remember(string, time.Time) {}
func (plainVisit) Forget()                    {}
func (plainVisit) Login(ctx context.Context, _ string, find func(context.Context) (Principal, error)) (Principal, error) {
	return find(ctx)
}
func (plainVisit) Look(ctx context.Context, find func(context.Context) error) error { return find(ctx) }
func (plainVisit) Enter(context.Context, Principal) (func(), error)                 { return func() {}, nil }
func (plainVisit) Caller(ctx context.Context) (Principal, error) {
	who, _ := From(ctx)
	return who, nil
}
