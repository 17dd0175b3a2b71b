package jupyter

import (
	"context"
	"maps"
	"path"
	"regexp"
	"sync"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// place is where a kernel of this surface is: the main kernel of a session of its own, or one more kernel of its user's personal session.
type place struct {
	id       string // for clients, a UUID
	session  hub.Session
	kernel   string // the hub's name of it
	entry    entry
	personal bool
}

// entry is what the surface knows of a kernel beside the hub. That of a kernel in a personal session is in the metadata there, that of another in its session's.
type entry struct {
	ID      string `json:"id"`
	Kernel  string `json:"kernel"`        // the hub's name
	Dir     string `json:"dir,omitempty"` // where it begins, relative to the workspace
	Session string `json:"session,omitempty"`
	Path    string `json:"path,omitempty"`
	Name    string `json:"name,omitempty"`
	Type    string `json:"type,omitempty"`
}

// single is the place of a session that is a kernel.
func single(of hub.Session) place {
	m := of.Metadata
	id := m[idKey]
	if id == "" {
		id = ident.UUID(of.ID)
	}
	return place{id: id, session: of, kernel: mainKernel, entry: entry{ID: m[idKey], Kernel: mainKernel, Session: m[sessionKey], Path: m[pathKey], Name: m[nameKey], Type: m[typeKey]}}
}

// metadata is what a session's metadata is when it says this, beside what else is there.
func (e entry) metadata(others map[string]string) map[string]string {
	m := maps.Clone(others)
	if m == nil {
		m = map[string]string{}
	}
	m[kernelKey] = specName
	for key, value := range map[string]string{idKey: e.ID, sessionKey: e.Session, pathKey: e.Path, nameKey: e.Name, typeKey: e.Type} {
		if delete(m, key); value != "" {
			m[key] = value
		}
	}
	return m
}

// place finds a kernel by its id.
func (s *server) place(ctx context.Context, who auth.Principal, id string) (place, error) {
	none := problem.New(problem.KernelNotFound, "Kernel does not exist: "+id)
	if !kernelID().MatchString(id) {
		return place{}, none
	}
	if own, ok := ident.FromUUID(ident.Session, id); ok {
		session, err := s.Hub.Session(ctx, who, own)
		switch {
		case err == nil && session.State != hub.SessionDeleted && session.Metadata[kernelKey] != "":
			return single(session), nil
		case err != nil && !problem.Is(err, problem.NotFound):
			return place{}, err
		}
	}
	all, err := s.personalKernels(ctx, who)
	if err != nil {
		return place{}, err
	}
	for _, p := range all {
		if p.id == id {
			return p, nil
		}
	}
	named, err := s.marked(ctx, who, map[string]string{idKey: id})
	if err == nil && len(named) == 0 {
		err = none
	}
	if err != nil {
		return place{}, err
	}
	return single(named[0]), nil
}

// places are all kernels that a caller sees, those of the personal session first.
func (s *server) places(ctx context.Context, who auth.Principal) ([]place, error) {
	all, err := s.personalKernels(ctx, who)
	if err != nil {
		return nil, err
	}
	sessions, err := s.marked(ctx, who, map[string]string{kernelKey: specName})
	for _, session := range sessions {
		all = append(all, single(session))
	}
	return all, err
}

// kernelID is the form of a kernel's id, as Jupyter has it.
var kernelID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z_]+(-[0-9A-Za-z_]+){4}$`) })

const longestID = 100 // bytes of an id that a client chooses

// mayName returns what is wrong with an id that a client chooses for a new kernel.
func (s *server) mayName(c *call, id string) error {
	if id == "" {
		return nil
	}
	if len(id) > longestID || !kernelID().MatchString(id) {
		return problem.New(problem.InvalidRequest, "a kernel's id is a UUID").WithHint("leave kernel_id out, and the server chooses one")
	}
	_, err := s.place(c.Context(), c.who, id)
	switch {
	case err == nil:
		return problem.New(problem.KernelExists, "Kernel already exists: "+id)
	case problem.Is(err, problem.NotFound):
		return nil
	}
	return err
}

// here finds the kernel of a request's address.
func (s *server) here(c *call) (place, error) { return s.place(c.Context(), c.who, c.PathValue("id")) }

// newKernel makes a session that is a kernel.
func (s *server) newKernel(c *call, e entry) (place, error) {
	session, err := s.Hub.CreateSession(c.Context(), c.who, hub.NewSession{Name: "Jupyter kernel", Metadata: e.metadata(nil)})
	if err != nil {
		return place{}, err
	}
	return single(session), nil
}

// note stores what is known of a kernel.
func (s *server) note(c *call, p place, e entry) (place, error) {
	if p.personal {
		return s.changePersonalKernel(c, p, e)
	}
	session, err := s.Hub.ChangeSession(c.Context(), c.who, p.session.ID, hub.SessionChange{Metadata: e.metadata(p.session.Metadata)})
	if err != nil {
		return place{}, err
	}
	return single(session), nil
}

// folderOf is where the kernel of a document begins: beside it.
func folderOf(document string) string { return path.Dir(path.Clean("/" + document))[1:] }
