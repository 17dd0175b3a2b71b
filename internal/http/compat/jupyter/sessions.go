package jupyter

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"

	"cove/internal/core/problem"
)

// sessionModel is a session in Jupyter's sense: what a notebook, or another document, has to do with a kernel.
type sessionModel struct {
	ID       string            `json:"id"`
	Path     string            `json:"path"`
	Name     string            `json:"name"`
	Type     string            `json:"type"`
	Kernel   kernelModel       `json:"kernel"`
	Notebook map[string]string `json:"notebook"` // as clients before version 5 expect it
}

func (s *server) sessionModel(of place) sessionModel {
	e := of.entry
	return sessionModel{ID: e.Session, Path: e.Path, Name: e.Name, Type: e.Type, Kernel: s.model(of), Notebook: map[string]string{"path": e.Path, "name": e.Name}}
}

// sessionRequest is what clients say of a session; what is nil is left as it is.
type sessionRequest struct {
	Path     *string                       `json:"path"`
	Name     *string                       `json:"name"`
	Type     *string                       `json:"type"`
	Kernel   *struct{ ID, Name *string }   `json:"kernel"`
	Notebook *struct{ Path, Name *string } `json:"notebook"`
}

const longestSaid = 2048 // bytes of a session's path, name or type

// on returns what an entry becomes.
func (in sessionRequest) on(e entry) (entry, error) {
	if in.Notebook != nil {
		if in.Path == nil {
			in.Path = in.Notebook.Path
		}
		if in.Name == nil {
			in.Name = in.Notebook.Name
		}
		if in.Type == nil && e.Type == "" {
			in.Type = new("notebook")
		}
	}
	for into, value := range map[*string]*string{&e.Path: in.Path, &e.Name: in.Name, &e.Type: in.Type} {
		if value != nil {
			*into = *value
		}
	}
	if len(e.Path) > longestSaid || len(e.Name) > longestSaid || len(e.Type) > longestSaid {
		return e, problem.New(problem.InvalidRequest, "the path, the name or the type is too long")
	}
	return e, nil
}

func (in sessionRequest) kernelID() string {
	if in.Kernel == nil || in.Kernel.ID == nil {
		return ""
	}
	return *in.Kernel.ID
}

func (in sessionRequest) kernelName() string {
	if in.Kernel == nil || in.Kernel.Name == nil {
		return ""
	}
	return *in.Kernel.Name
}

func (s *server) listSessions(c *call) error {
	places, err := s.places(c.Context(), c.who)
	if err != nil {
		return err
	}
	models := []sessionModel{}
	for _, one := range places {
		if one.entry.Session != "" {
			models = append(models, s.sessionModel(one))
		}
	}
	return c.reply(http.StatusOK, models)
}

// session finds the session of a request's address.
func (s *server) session(c *call) (place, error) {
	id := c.PathValue("id")
	places, err := s.places(c.Context(), c.who)
	if err != nil {
		return place{}, err
	}
	for _, p := range places {
		if p.entry.Session == id {
			return p, nil
		}
	}
	return place{}, problem.New(problem.SessionNotFound, "Session not found: "+id)
}

func (s *server) getSession(c *call) error {
	one, err := s.session(c)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.sessionModel(one))
}

// startSession returns the session of a path, with the kernel that it has, or makes one in the personal session.
func (s *server) startSession(c *call) error {
	var in sessionRequest
	if err := c.read(&in); err != nil {
		return err
	}
	wanted, err := in.on(entry{Session: newUUID()})
	switch {
	case err != nil:
		return err
	case wanted.Path == "":
		return problem.New(problem.InvalidRequest, "Missing field in JSON data: path")
	case wanted.Type == "":
		return problem.New(problem.InvalidRequest, "Missing field in JSON data: type")
	}
	places, err := s.places(c.Context(), c.who)
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.entry.Session != "" && p.entry.Path == wanted.Path {
			return s.started(c, p)
		}
	}
	made, err := s.bind(c, in, wanted, true)
	if err != nil {
		return err
	}
	return s.started(c, made)
}

func (s *server) started(c *call, p place) error {
	c.w.Header().Set("Location", Prefix+"/api/sessions/"+p.entry.Session)
	return c.reply(http.StatusCreated, s.sessionModel(p))
}

// bind gives a session the kernel that a client asks for: one that is there, or a new one. With mayMake an id that no kernel has is that of the new one, where it has the form of one.
func (s *server) bind(c *call, in sessionRequest, e entry, mayMake bool) (place, error) {
	if id := in.kernelID(); id != "" {
		p, err := s.place(c.Context(), c.who, id)
		if err == nil {
			e.ID, e.Kernel, e.Dir = p.entry.ID, p.entry.Kernel, p.entry.Dir
			return s.note(c, p, e)
		}
		if !mayMake || !problem.Is(err, problem.NotFound) {
			return place{}, err
		}
	}
	if err := known(in.kernelName()); err != nil {
		return place{}, err
	}
	e.ID, e.Dir = "", folderOf(e.Path)
	if id := in.kernelID(); mayMake && len(id) <= longestID && kernelID().MatchString(id) {
		e.ID = id
	}
	return s.newPersonalKernel(c, e)
}

// changeSession renames a session, or gives it another kernel, which ends the one that it had.
func (s *server) changeSession(c *call) error {
	var in sessionRequest
	if err := c.read(&in); err != nil {
		return err
	}
	one, err := s.session(c)
	if err != nil {
		return err
	}
	wanted, err := in.on(one.entry)
	if err != nil {
		return err
	}
	var changed place
	if id := in.kernelID(); id != "" && id != one.id || id == "" && in.kernelName() != "" {
		if changed, err = s.bind(c, in, wanted, false); err == nil {
			err = s.end(c.Context(), c.who, one)
		}
	} else {
		changed, err = s.note(c, one, wanted)
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.sessionModel(changed))
}

func (s *server) deleteSession(c *call) error {
	one, err := s.session(c)
	if err == nil {
		err = s.end(c.Context(), c.who, one)
	}
	return c.done(err)
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	d := hex.EncodeToString(b[:])
	return d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:]
}
