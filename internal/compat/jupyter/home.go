package jupyter

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"cove/internal/auth"
	"cove/internal/hub"
	"cove/internal/problem"
)

// A user's home is the session with the files of the Contents API, the terminals, and the kernels of documents: so a notebook has beside it what it has on a Jupyter server. It is a
// session as others are, made when it is first needed, and found by its metadata.
const (
	homeKey    = "jupyter.home"    // the user
	entriesKey = "jupyter.kernels" // a list of entry
)

const mostEntries = 64 << 10 // bytes of a home's list

// findHome returns a caller's home. ok is false for one who has none.
func (s *server) findHome(ctx context.Context, who auth.Principal) (home hub.Session, ok bool, err error) {
	all, err := s.marked(ctx, who, map[string]string{homeKey: who.User})
	all = slices.DeleteFunc(all, func(one hub.Session) bool { return one.User != who.User }) // anybody may write metadata
	if err != nil || len(all) == 0 {
		return hub.Session{}, false, err
	}
	return slices.MinFunc(all, func(a, b hub.Session) int { return a.Created.Compare(b.Created) }), true, nil
}

// home returns a caller's home, and makes it where there is none.
func (s *server) home(ctx context.Context, who auth.Principal) (hub.Session, error) {
	home, ok, err := s.findHome(ctx, who)
	if err != nil || ok {
		return home, err
	}
	if err := who.Require(auth.SessionsWrite); err != nil {
		return hub.Session{}, err
	}
	leave, err := s.homes.take(ctx, who)
	if err != nil {
		return hub.Session{}, err
	}
	defer leave()
	if home, ok, err = s.findHome(ctx, who); err != nil || ok {
		return home, err
	}
	return s.Hub.CreateSession(ctx, who, hub.NewSession{Name: "Jupyter home", Metadata: map[string]string{homeKey: who.User}})
}

func entriesOf(home hub.Session) (all []entry) {
	_ = json.Unmarshal([]byte(home.Metadata[entriesKey]), &all) // another surface may have written what it likes there
	return all
}

func homePlace(home hub.Session, e entry) place {
	return place{id: e.ID, session: home, kernel: e.Kernel, entry: e, home: true}
}

// homeKernels are the kernels in a caller's home.
func (s *server) homeKernels(ctx context.Context, who auth.Principal) (all []place, err error) {
	home, ok, err := s.findHome(ctx, who)
	if err != nil || !ok {
		return nil, err
	}
	for _, e := range entriesOf(home) {
		if kernelID().MatchString(e.ID) && e.Kernel != "" {
			all = append(all, homePlace(home, e))
		}
	}
	return all, nil
}

// editHome changes the list of a home's kernels.
func (s *server) editHome(ctx context.Context, who auth.Principal, id string, edit func([]entry) []entry) (hub.Session, error) {
	leave, err := s.homes.take(ctx, who)
	if err != nil {
		return hub.Session{}, err
	}
	defer leave()
	home, err := s.Hub.Session(ctx, who, id)
	if err != nil {
		return hub.Session{}, err
	}
	text, err := json.Marshal(edit(entriesOf(home)))
	if err == nil && len(text) > mostEntries {
		err = problem.New(problem.InvalidRequest, "the names and paths of the kernels are too long")
	}
	if err != nil {
		return hub.Session{}, err
	}
	meta := map[string]string{homeKey: who.User}
	for key, value := range home.Metadata {
		meta[key] = value
	}
	meta[entriesKey] = string(text)
	return s.Hub.ChangeSession(ctx, who, id, hub.SessionChange{Metadata: meta})
}

// turns have the requests of one user change its home one after the other: making a session can take long, and others do not wait for that.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

type turn struct {
	free  chan struct{} // holds a token while nobody has the turn
	users int           // who have it, or wait for it
}

// take waits for the turn of a caller's user.
func (t *turns) take(ctx context.Context, who auth.Principal) (leave func(), err error) {
	name := who.Project + " " + who.User
	t.mu.Lock()
	if t.all == nil {
		t.all = map[string]*turn{}
	}
	one := t.all[name]
	if one == nil {
		one = &turn{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		t.all[name] = one
	}
	one.users++
	t.mu.Unlock()
	done := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.all, name)
		}
	}
	select {
	case <-one.free:
		return func() { one.free <- struct{}{}; done() }, nil
	case <-ctx.Done():
		done()
		return nil, context.Cause(ctx)
	}
}

// newHomeKernel starts one more kernel in the caller's home.
func (s *server) newHomeKernel(c *call, e entry) (place, error) {
	home, err := s.home(c.Context(), c.who)
	if err != nil {
		return place{}, err
	}
	if e.ID == "" {
		e.ID = newUUID()
	}
	e.Kernel = "jupyter-" + newUUID()
	if _, err = s.Hub.StartKernel(c.Context(), c.who, home.ID, e.Kernel); err != nil {
		return place{}, err
	}
	home, err = s.editHome(c.Context(), c.who, home.ID, func(all []entry) []entry { return append(all, e) })
	if err != nil {
		_ = s.Hub.StopKernel(context.WithoutCancel(c.Context()), c.who, home.ID, e.Kernel) // it ends with the session otherwise
		return place{}, err
	}
	return homePlace(home, e), nil
}

func (s *server) changeHomeKernel(c *call, p place, e entry) (place, error) {
	home, err := s.editHome(c.Context(), c.who, p.session.ID, func(all []entry) []entry {
		for i := range all {
			if all[i].ID == p.id {
				all[i] = e
			}
		}
		return all
	})
	if err != nil {
		return place{}, err
	}
	return homePlace(home, e), nil
}

// stopHomeKernel ends a kernel of a home.
func (s *server) stopHomeKernel(ctx context.Context, who auth.Principal, p place) error {
	if err := s.Hub.StopKernel(ctx, who, p.session.ID, p.kernel); err != nil && !problem.Has(err, problem.KernelNotFound) {
		return err
	}
	_, err := s.editHome(ctx, who, p.session.ID, func(all []entry) []entry {
		return slices.DeleteFunc(all, func(e entry) bool { return e.ID == p.id })
	})
	return err
}
