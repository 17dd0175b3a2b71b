package ports

import (
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/http/protocol"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Hub is what a hub has for ports.
type Hub interface {
	LinkOf(ctx context.Context, code string) (hub.SessionLink, auth.Principal, error)
	OpenPort(ctx context.Context, session string, port int) (hub.SessionLink, auth.Principal, error)
	UseLink(ctx context.Context, l hub.SessionLink, who auth.Principal, use func(ctx context.Context, s guestlink.Stream) error) error
	UsePort(ctx context.Context, who auth.Principal, session string, port int, use func(ctx context.Context, s guestlink.Stream) error) error
}

// Options are what the surfaces are made of.
type Options struct {
	Hub     Hub
	Address Address
	// Refuse writes a problem for programs.
	Refuse func(w http.ResponseWriter, r *http.Request, p *problem.Error)
}

// PathPrefix begins the address of a port that is reached by a link, below the server's own address: PathPrefix + CODE + "/".
const PathPrefix = "/p/"

const (
	// cookieName is the cookie with the code of a link, at a port's own name.
	cookieName = "cove-port"
	// Parameter brings the code of a link to a port's own name the first time.
	Parameter = "cove-link"
	// Header brings it with each request of a program.
	Header = "Cove-Link"

	longestCookie = 30 * 24 * time.Hour
)

// Surfaces returns the interfaces in the form in which package front mounts them.
func Surfaces(o Options) []protocol.Surface {
	f := &front{o: o}
	all := []protocol.Surface{{
		About: "ports of sessions, by links", Prefix: PathPrefix, Foreign: true, Cookies: true, Handler: http.HandlerFunc(f.byPath), Refuse: f.refuse,
	}}
	if o.Address.Host == "" {
		return all
	}
	return append(all, protocol.Surface{
		About: " ports of sessions", Prefix: "/", Host: "." + o.Address.Host, Foreign: true, Cookies: true, Handler: http.HandlerFunc(f.byName), Refuse: f.refuse,
		Named: func(host string) bool { _, _, ok := o.Address.Find(host); return ok },
	})
}

type front struct{ o Options }

// look finds the link with a code. Addresses that often send wrong ones are held back.
func (f *front) look(r *http.Request, code string) (l hub.SessionLink, who auth.Principal, err error) {
	err = auth.VisitOf(r.Context()).Look(r.Context(), func(ctx context.Context) error {
		l, who, err = f.o.Hub.LinkOf(ctx, code)
		if err == nil && l.Purpose != hub.LinkPort {
			err = problem.New(problem.LinkNotFound, "this link does not lead to a port")
		}
		return err
	})
	return l, who, err
}

// byPath serves PathPrefix + CODE + "/...".
func (f *front) byPath(w http.ResponseWriter, r *http.Request) {
	code, _, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, PathPrefix), "/")
	l, who, err := f.look(r, code)
	if err != nil {
		f.show(w, r, err)
		return
	}
	if !slash { // relative addresses of the page begin at its folder
		http.Redirect(w, r, PathPrefix+code+"/"+query(r.URL), http.StatusPermanentRedirect)
		return
	}
	if preflight(w, r) {
		return
	}
	y := Way{Session: l.Session, Port: l.Port, Prefix: PathPrefix + code + "/", Secret: true}
	f.serve(w, r, y, func(use func(context.Context, guestlink.Stream) error) error {
		return f.o.Hub.UseLink(r.Context(), l, who, use)
	})
}

func query(u *url.URL) string {
	if u.RawQuery == "" {
		return ""
	}
	return "?" + u.RawQuery
}

// preflight answers what a browser asks before a page without an origin calls its own server.
func preflight(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, *")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// byName serves the names of ports.
func (f *front) byName(w http.ResponseWriter, r *http.Request) {
	session, port, ok := f.o.Address.Find(nameOf(r.Host))
	if !ok {
		f.show(w, r, problem.New(problem.RouteNotFound, "there is nothing at this address"))
		return
	}
	g, done, err := f.admit(w, r, session, port)
	if done {
		return
	}
	if err != nil {
		f.show(w, r, err)
		return
	}
	f.serve(w, r, Way{Session: session, Port: port}, g)
}

// nameOf is a host's name without its port, in small letters.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Asks says whether a request to a port's own name brings what may let it in: the code of a link, or a key.
func Asks(r *http.Request) bool {
	_, err := r.Cookie(cookieName)
	return err == nil || r.Header.Get(Header) != "" || r.URL.Query().Get(Parameter) != "" || isKey(r.Header.Get("Authorization"))
}

// grant has something use the port that a request was let in to.
type grant func(use func(context.Context, guestlink.Stream) error) error

// admit finds what lets a request in: a link that the address brings, the header, or the browser remembers; a key; or that the port is open to all. done says that the request is
// answered.
func (f *front) admit(w http.ResponseWriter, r *http.Request, session string, port int) (g grant, done bool, err error) {
	byLink := func(l hub.SessionLink, who auth.Principal) grant {
		return func(use func(context.Context, guestlink.Stream) error) error {
			return f.o.Hub.UseLink(r.Context(), l, who, use)
		}
	}
	find := func(code string) (l hub.SessionLink, who auth.Principal, err error) {
		if l, who, err = f.look(r, code); err == nil && (l.Session != session || l.Port != port) {
			err = problem.New(problem.LinkNotFound, "this link does not lead to this port")
		}
		return l, who, err
	}
	if code := r.URL.Query().Get(Parameter); code != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		l, _, err := find(code)
		if err != nil {
			return g, false, err
		}
		remember(w, r, l, code)
		return g, true, nil
	}
	if code := r.Header.Get(Header); code != "" {
		l, who, err := find(code)
		return byLink(l, who), false, err
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if l, who, err := find(c.Value); err == nil {
			return byLink(l, who), false, nil
		}
	}
	if isKey(r.Header.Get("Authorization")) {
		who, err := auth.VisitOf(r.Context()).Caller(r.Context())
		if err == nil && who.User == "" {
			err = problem.New(problem.Unauthenticated, "the key is not valid")
		}
		return func(use func(context.Context, guestlink.Stream) error) error {
			return f.o.Hub.UsePort(r.Context(), who, session, port, use)
		}, false, err
	}
	l, who, err := f.o.Hub.OpenPort(r.Context(), session, port)
	if problem.Has(err, problem.LinkNotFound) {
		err = problem.New(problem.Unauthenticated, "this port is private").WithHint("open it with a link that its owner makes, or send a key as a program")
	}
	return byLink(l, who), false, err
}

// remember has the browser keep the code of a link, and leads it to the address without that.
func remember(w http.ResponseWriter, r *http.Request, l hub.SessionLink, code string) {
	life := longestCookie
	if !l.Expires.IsZero() {
		life = min(life, time.Until(l.Expires))
	}
	secure := r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: code, Path: "/", MaxAge: max(1, int(life.Seconds())), HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode})
	u := *r.URL
	q := u.Query()
	q.Del(Parameter)
	u.RawQuery = q.Encode()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, "/"+strings.TrimLeft(u.EscapedPath(), "/")+query(&u), http.StatusSeeOther)
}

// serve forwards a request to a port.
func (f *front) serve(w http.ResponseWriter, r *http.Request, y Way, g grant) {
	begun := false
	err := g(func(ctx context.Context, stream guestlink.Stream) error {
		begun = true
		Forward(ctx, w, r, stream, y, f.refuse)
		return nil
	})
	if err != nil && !begun {
		f.show(w, r, err)
	}
}

func (f *front) show(w http.ResponseWriter, r *http.Request, err error) {
	p, _ := problem.Public(err)
	f.refuse(w, r, p)
}

// refuse answers people with a page, and programs with a document.
func (f *front) refuse(w http.ResponseWriter, r *http.Request, p *problem.Error) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		f.o.Refuse(w, r, p)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	again := ""
	if problem.Has(p, problem.PortRefused) { // a server that is about to listen
		again = `<meta http-equiv="refresh" content="3">`
	}
	w.WriteHeader(httpstatus.Of(p))
	fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">%s<title>cove</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1.5rem;color-scheme:light dark}p{opacity:.75}</style>
<h1 style="font-size:1.25rem">%s</h1><p>%s</p></html>
`, again, html.EscapeString(sentence(p.Message)), html.EscapeString(sentence(p.Hint)))
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
