// Package protocol says what an interface of the server is: cove's own, OpenAI's, and those that come. A surface is a value that its package makes
// and that package app hands to the front door, package front, which knows none of them by name.
package protocol

import (
	"context"
	"net/http"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// Surface is one interface of the server.
type Surface struct {
	// About says in a line what it is, for people who open the server's first page.
	About string
	// Prefix begins the path of everything that is the surface's, and ends with a slash: "/v1/".
	Prefix string
	// Host is the name by which a surface is called that shares a prefix with others: "sandbox.example.com", or ".example.com" for all names that end
	// so. "": any name. The server goes by these names, see front.Options.Hosts.
	Host string
	// Named narrows the names that Host stands for; nil: all of them.
	Named func(host string) bool
	// Foreign says that what is shown there is not the server's but what somebody's code says: every address, however it is written, goes to Handler with no caller found, and
	// from any web page. Handler decides who may see what.
	Foreign bool
	// Only narrows what is the surface's below Prefix, for one whose prefix others begin with, too; nil: all of it.
	Only func(r *http.Request) bool
	// Cookies says that a browser that is signed in may call, without a key.
	Cookies bool
	// Keys returns the keys that a request brings in a way that the clients of this surface alone have, beside those that every surface takes; nil: there is no such way.
	// Where a request brings several they must be the same. Its Handler finds the visit with auth.VisitOf.
	Keys func(r *http.Request) []string
	// Tokens finds the caller of an access token, which is what comes in the place of a key and has not its form; nil: there are keys alone.
	Tokens func(ctx context.Context, token string) (auth.Principal, error)
	// Handler answers what is below Prefix, also what is no route. It finds the caller with auth.From, and there is one in every request
	// but for those of routes that need no key.
	Handler http.Handler
	// Routes are what can be asked of it.
	Routes []Route
	// Refuse writes a problem in the form that the surface's clients understand, with its status. The headers that are the same for all are set.
	Refuse func(w http.ResponseWriter, r *http.Request, p *problem.Error)
}

// Route is one thing that can be asked of the server.
type Route struct {
	Method, Pattern string        // "GET", "/api/v1/sessions/{id}", as http.ServeMux has it
	Actions         []auth.Action // all that it takes; none for what any key may ask
	Access          Access
	// Large says that a request's body may be a file.
	Large bool
}

// Access says whether a route needs a key.
type Access int

const (
	// WithKey is for a route that needs a key.
	WithKey Access = iota
	// Public is for a route that needs none.
	Public
	// ByCode is for a route that needs none because its address has a secret of its own. A body may be as long as with a key.
	ByCode
	// Documentation is for a page that people open in a browser, with nothing on it that is anybody's own. It needs a key unless the operator wants it
	// otherwise, and the browser may send that as a password.
	Documentation
)

// Serves says whether a request is the surface's.
func (s *Surface) Serves(host string, r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, s.Prefix) && (s.Host == "" || GoesBy(s.Host, host) && (s.Named == nil || s.Named(host))) && (s.Only == nil || s.Only(r))
}

// GoesBy says whether a host's name, in small letters, is one that pattern stands for.
func GoesBy(pattern, name string) bool {
	return pattern == name || strings.HasPrefix(pattern, ".") && strings.HasSuffix(name, pattern)
}
