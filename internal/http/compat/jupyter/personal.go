package jupyter

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// A user's personal session is the session with the files of the Contents API, the terminals, and the kernels of documents: so a notebook has beside it what it has on a Jupyter server. It is a
// session as others are, made when it is first needed, and found by its metadata.
const (
	personalKey = "jupyter.personal" // the user
	entriesKey  = "jupyter.kernels"  // a list of entry
)

const mostEntries = 64 << 10 // bytes of a personal session's list

// findPersonal returns a caller's personal session. ok is false for one who has none.
func (s *server) findPersonal(ctx context.Context, who auth.Principal) (personal hub.Session, ok bool, err error) {
	all, err := s.marked(ctx, who, map[string]string{personalKey: who.User})
	all = slices.DeleteFunc(all, func(one hub.Session) bool { return one.User != who.User }) // anybody may write metadata
	if err != nil || len(all) == 0 {
		return hub.Session{}, false, err
	}
	return slices.MinFunc(all, func(a, b hub.Session) int { return a.Created.Compare(b.Created) }), true, nil
}

// personal returns a caller's personal session, and makes it where there is none.
func (s *server) personal(ctx context.Context, who auth.Principal) (hub.Session, error) {
	personal, ok, err := s.findPersonal(ctx, who)
	if err != nil || ok {
		return personal, err
	}
	if err := who.Require(auth.SessionsWrite); err != nil {
		return hub.Session{}, err
	}
	leave, err := s.making.take(ctx, who)
	if err != nil {
		return hub.Session{}, err
	}
	defer leave()
	if personal, ok, err = s.findPersonal(ctx, who); err != nil || ok {
		return personal, err
	}
	return s.Hub.CreateSession(ctx, who, hub.NewSession{Name: "Jupyter", Metadata: map[string]string{personalKey: who.User}})
}

func entriesOf(personal hub.Session) (all []entry) {
	_ = json.Unmarshal([]byte(personal.Metadata[entriesKey]), &all) // another surface may have written what it likes there
	return all
}

func personalPlace(personal hub.Session, e entry) place {
	return place{id: e.ID, session: personal, kernel: e.Kernel, entry: e, personal: true}
}

// personalKernels are the kernels in a caller's personal session.
func (s *server) personalKernels(ctx context.Context, who auth.Principal) (all []place, err error) {
	personal, ok, err := s.findPersonal(ctx, who)
	if err != nil || !ok {
		return nil, err
	}
	for _, e := range entriesOf(personal) {
		if kernelID().MatchString(e.ID) && e.Kernel != "" {
			all = append(all, personalPlace(personal, e))
		}
	}
	return all, nil
}

// editPersonal changes the list of a personal session's kernels.
func (s *server) editPersonal(ctx context.Context, who auth.Principal, id string, edit func([]entry) []entry) (hub.Session, error) {
	leave, err := s.making.take(ctx, who)
	if err != nil {
		return hub.Session{}, err
	}
	defer leave()
	personal, err := s.Hub.Session(ctx, who, id)
	if err != nil {
		return hub.Session{}, err
	}
	text, err := json.Marshal(edit(entriesOf(personal)))
	if err == nil && len(text) > mostEntries {
		err = problem.New(problem.InvalidRequest, "the names and paths of the kernels are too long")
	}
	if err != nil {
		return hub.Session{}, err
	}
	meta := map[string]string{personalKey: who.User}
	for key, value := range personal.Metadata {
		meta[key] = value
	}
	meta[entriesKey] = string(text)
	return s.Hub.ChangeSession(ctx, who, id, hub.SessionChange{Metadata: meta})
}

// turns have the requests of one user change its personal session one after the other: making a session can take long, and others do not wait for that.
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

// newPersonalKernel starts one more kernel in the caller's personal session.
func (s *server) newPersonalKernel(c *call, e entry) (place, error) {
	personal, err := s.personal(c.Context(), c.who)
	if err != nil {
		return place{}, err
	}
	if e.ID == "" {
		e.ID = newUUID()
	}
	e.Kernel = "jupyter-" + newUUID()
	if _, err = s.Hub.StartKernel(c.Context(), c.who, personal.ID, e.Kernel); err != nil {
		return place{}, err
	}
	personal, err = s.editPersonal(c.Context(), c.who, personal.ID, func(all []entry) []entry { return append(all, e) })
	if err != nil {
		_ = s.Hub.StopKernel(context.WithoutCancel(c.Context()), c.who, personal.ID, e.Kernel) // it ends with the session otherwise
		return place{}, err
	}
	return personalPlace(personal, e), nil
}

func (s *server) changePersonalKernel(c *call, p place, e entry) (place, error) {
	personal, err := s.editPersonal(c.Context(), c.who, p.session.ID, func(all []entry) []entry {
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
	return personalPlace(personal, e), nil
}

// stopPersonalKernel ends a kernel of a personal session.
func (s *server) stopPersonalKernel(ctx context.Context, who auth.Principal, p place) error {
	if err := s.Hub.StopKernel(ctx, who, p.session.ID, p.kernel); err != nil && !problem.Has(err, problem.KernelNotFound) {
		return err
	}
	_, err := s.editPersonal(ctx, who, p.session.ID, func(all []entry) []entry {
		return slices.DeleteFunc(all, func(e entry) bool { return e.ID == p.id })
	})
	return err
}
