package cli

import (
	"context"
	"io"

	"cove/internal/core/ident"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

// keptSession is the session of a conversation. It is saved under its id when a command ends, so that --continue goes on with its variables and files.
type keptSession struct {
	store   ondisk.Store
	id      string // ident.Session, and its name in store
	there   bool   // a former command has saved it
	most    int    // conversations whose sessions stay
	options func(id string) ondisk.Options
}

// newKept returns what will keep the session that o opens; nil where sessions cannot be saved, or are not to be.
func (p *Program) newKept(o opening) *keptSession {
	if !o.cfg.Saves() || !o.cfg.Store.History || o.cfg.Session.Conversations == 0 || p.Prepare == nil {
		return nil
	}
	return &keptSession{
		store: p.store(o.cfg), id: ident.New(ident.Session), most: o.cfg.Session.Conversations,
		options: func(id string) ondisk.Options { return p.namedOptions(id, o, io.Discard) },
	}
}

// adopt makes live a session that is saved when it is closed. Code ran in it so many times.
func (k *keptSession) adopt(ctx context.Context, live hub.Live, ran int) (*ondisk.LeasedSession, error) {
	return k.store.Adopt(ctx, k.id, k.options(k.id), live, ran)
}

// tidy removes the sessions of the conversations that were not used for longest, and those of which nothing was saved.
func (k *keptSession) tidy() {
	all, err := k.store.List() // the one used last first
	if err != nil {
		return // the next command tries again
	}
	n := 0
	for _, s := range all {
		if s.Served || !ident.Valid(ident.Session, s.Name) {
			continue
		}
		if n++; s.Name == k.id || s.State == ondisk.Running {
			continue
		}
		if n > k.most || !resumable(s) {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			_ = k.store.Remove(ctx, s.Name, "cove ask")
			cancel()
		}
	}
}

// goOn has a command work in the session that a conversation worked in, where that is still there and no other one is asked for.
func (p *Program) goOn(g *goingOn, o *opening) {
	if o.session.Session != "" {
		return
	}
	g.fresh = true
	all, err := p.store(o.cfg).List()
	if err != nil || !o.cfg.Saves() {
		return
	}
	for _, s := range all {
		switch {
		case s.Name == g.conversation.Metadata[metaSession] && s.State != ondisk.Broken:
			o.session.Session, g.fresh = s.Name, false
			return
		case s.Name == g.conversation.Session && o.kept != nil && resumable(s):
			o.kept.id, o.kept.there, g.fresh = s.Name, true, false
		}
	}
}

// resumable says whether something of a session was saved, or another process has it in memory.
func resumable(s ondisk.Info) bool {
	return s.State == ondisk.Running || s.State != ondisk.Broken && s.Head.Snapshot != ""
}
