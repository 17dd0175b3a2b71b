package hub

import (
	"context"
	"fmt"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/server/auth"
)

const (
	// mostLinks bounds the links of a session.
	mostLinks = 100

	shortestLink = time.Second
	longestLink  = 10 * 365 * 24 * time.Hour
)

// NewLink says what to make a link to.
type NewLink struct {
	Session string
	Purpose string
	Path    string
	Port    int
	Open    bool
	Wakes   bool
	Life    time.Duration // 0: it does not end
	Code    string        // one that the caller has; "": a new one
}

func (n NewLink) check() error {
	invalid := func(text string) error { return problem.New(problem.InvalidRequest, text) }
	switch {
	case n.Life != 0 && (n.Life < shortestLink || n.Life > longestLink):
		return problem.New(problem.LifeInvalid, "a link lives for a second to 10 years, or without an end")
	case n.Purpose == LinkPort && (n.Port < 1 || n.Port > 65535 || n.Path != ""):
		return invalid("a link to a port has a port from 1 to 65535, and no path")
	case n.Purpose == LinkPort, n.Purpose == LinkMachine && n.Path == "" && n.Port == 0 && !n.Open:
		return nil
	case n.Purpose != LinkRead && n.Purpose != LinkWrite:
		return invalid("a link is for read, write or port")
	case n.Path == "" || n.Port != 0 || n.Open:
		return invalid("a link to a file has its path, and neither a port nor is it open")
	}
	return filesystem.CheckPath(n.Path)
}

// AddLink makes a link and returns its code, which is not kept. Needs what the link lets others do: auth.FilesRead, auth.FilesWrite or auth.SessionsExecute. Problems:
// too_many_links, life_invalid, invalid_path.
func (h *Hub) AddLink(ctx context.Context, who auth.Principal, n NewLink) (SessionLink, string, error) {
	code, hash := auth.RandomCode()
	if n.Code != "" {
		code = n.Code
		hash, _ = auth.CodeHash(code)
	}
	l := SessionLink{
		ID: ident.New(ident.Link), Hash: hash, Project: who.Project, User: who.User, Key: who.Key, Session: n.Session, Purpose: n.Purpose, Path: n.Path, Port: n.Port, Open: n.Open, Wakes: n.Wakes,
		Created: h.work.Now(),
	}
	if n.Life > 0 {
		l.Expires = l.Created.Add(n.Life)
	}
	err := n.check()
	for _, right := range l.Rights() {
		if err == nil {
			err = who.Require(right)
		}
	}
	if err == nil {
		err = h.work.Store.AddLink(ctx, l, mostLinks)
	}
	h.work.WriteAudit(ctx, who, "link.create", n.Session, fmt.Sprintf("%s %s %s%d", l.ID, n.Purpose, n.Path, n.Port), err)
	if err != nil {
		return SessionLink{}, "", err
	}
	return l, code, nil
}

// Links lists the links of a session, the newest first. Needs auth.SessionsRead.
func (h *Hub) Links(ctx context.Context, who auth.Principal, session string) ([]SessionLink, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	if _, err := h.Session(ctx, who, session); err != nil {
		return nil, err
	}
	return h.work.Store.Links(ctx, who.Project, session)
}

// DeleteLink withdraws a link at once. Needs auth.SessionsWrite.
func (h *Hub) DeleteLink(ctx context.Context, who auth.Principal, session, id string) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = h.work.Store.DeleteLink(ctx, who.Project, session, id)
	}
	h.work.WriteAudit(ctx, who, "link.delete", session, id, err)
	return err
}

// LinkOf returns the link with a code, and whom it stands for: its maker, limited to what the link is for. What never was, was withdrawn or has expired is the same
// link_not_found, and so is a link whose maker may not do that any more.
func (h *Hub) LinkOf(ctx context.Context, code string) (SessionLink, auth.Principal, error) {
	hash, ok := auth.CodeHash(code)
	if !ok {
		return SessionLink{}, auth.Principal{}, linkGone()
	}
	l, role, err := h.work.Store.LinkOf(ctx, hash, h.work.Now())
	return standsFor(l, role, err)
}

// OpenPort returns the open link to a port of a session; without one, link_not_found.
func (h *Hub) OpenPort(ctx context.Context, session string, port int) (SessionLink, auth.Principal, error) {
	l, role, err := h.work.Store.OpenPort(ctx, session, port, h.work.Now())
	return standsFor(l, role, err)
}

func standsFor(l SessionLink, role auth.Role, err error) (SessionLink, auth.Principal, error) {
	if problem.Is(err, problem.NotFound) {
		err = linkGone()
	}
	who := auth.Principal{User: l.User, Project: l.Project, Key: l.Key, Role: role, Scopes: l.Rights()}
	if err == nil && len(who.Scopes) == 0 { // of a purpose that this version does not know: no scopes would be all that the role may
		err = linkGone()
	}
	for _, right := range who.Scopes {
		if err == nil && !who.May(right) {
			err = linkGone()
		}
	}
	return l, who, err
}

func linkGone() error {
	return problem.New(problem.LinkNotFound, "there is nothing behind this link: it is not right, was withdrawn, or has expired").WithHint("ask who sent it for another one")
}

// Search finds words in the project's history. Needs auth.ConversationsRead.
func (h *Hub) Search(ctx context.Context, who auth.Principal, query string, p Page) (Listing[Found], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Listing[Found]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return Listing[Found]{}, err
	}
	return h.work.Store.Search(ctx, who.Project, query, p)
}
