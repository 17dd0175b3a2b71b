package jupyter

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/http"
	"path"
	"strings"

	"cove/internal/hub"
	"cove/internal/problem"
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

func (s *server) sessionModel(of hub.Session) sessionModel {
	m := of.Metadata
	return sessionModel{ID: m[sessionKey], Path: m[pathKey], Name: m[nameKey], Type: m[typeKey], Kernel: s.model(of),
		Notebook: map[string]string{"path": m[pathKey], "name": m[nameKey]}}
}

// sessionRequest is what clients say of a session; what is nil is left as it is.
type sessionRequest struct {
	Path     *string                       `json:"path"`
	Name     *string                       `json:"name"`
	Type     *string                       `json:"type"`
	Kernel   *struct{ ID, Name *string }   `json:"kernel"`
	Notebook *struct{ Path, Name *string } `json:"notebook"`
}

// metadata returns what old becomes.
func (in sessionRequest) metadata(old map[string]string) map[string]string {
	out := maps.Clone(old)
	if in.Notebook != nil {
		if in.Path == nil {
			in.Path = in.Notebook.Path
		}
		if in.Name == nil {
			in.Name = in.Notebook.Name
		}
		if in.Type == nil && out[typeKey] == "" {
			in.Type = new("notebook")
		}
	}
	for key, value := range map[string]*string{pathKey: in.Path, nameKey: in.Name, typeKey: in.Type} {
		if value != nil {
			out[key] = *value
		}
	}
	return out
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
	sessions, err := s.marked(c, map[string]string{kernelKey: specName})
	if err != nil {
		return err
	}
	models := []sessionModel{}
	for _, one := range sessions {
		if one.Metadata[sessionKey] != "" {
			models = append(models, s.sessionModel(one))
		}
	}
	return c.reply(http.StatusOK, models)
}

func (s *server) session(c *call) (hub.Session, error) {
	id := c.PathValue("id")
	list, err := s.marked(c, map[string]string{sessionKey: id})
	if err == nil && len(list) == 0 {
		err = problem.New(problem.SessionNotFound, "Session not found: "+id)
	}
	if err != nil {
		return hub.Session{}, err
	}
	return list[0], nil
}

func (s *server) getSession(c *call) error {
	one, err := s.session(c)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.sessionModel(one))
}

// startSession returns the session of a path, with the kernel that it has, or makes one.
func (s *server) startSession(c *call) error {
	var in sessionRequest
	if err := c.read(&in); err != nil {
		return err
	}
	meta := in.metadata(map[string]string{kernelKey: specName, sessionKey: newUUID()})
	switch {
	case meta[pathKey] == "":
		return problem.New(problem.InvalidRequest, "Missing field in JSON data: path")
	case meta[typeKey] == "":
		return problem.New(problem.InvalidRequest, "Missing field in JSON data: type")
	}
	there, err := s.marked(c, map[string]string{kernelKey: specName, pathKey: meta[pathKey]})
	if err != nil {
		return err
	}
	var made hub.Session
	switch {
	case len(there) > 0:
		made = there[0]
	case in.kernelID() != "":
		if made, err = s.kernel(c, in.kernelID()); err == nil {
			made, err = s.Hub.ChangeSession(c.Context(), c.who, made.ID, hub.SessionChange{Metadata: in.metadata(with(made.Metadata, meta))})
		}
	default:
		made, err = s.newKernel(c, in.kernelName(), meta)
	}
	if err != nil {
		return err
	}
	m := s.sessionModel(made)
	c.w.Header().Set("Location", Prefix+"/api/sessions/"+m.ID)
	return c.reply(http.StatusCreated, m)
}

func with(old, more map[string]string) map[string]string {
	out := maps.Clone(old)
	maps.Copy(out, more)
	return out
}

func (s *server) newKernel(c *call, name string, meta map[string]string) (hub.Session, error) {
	if err := known(name); err != nil {
		return hub.Session{}, err
	}
	title := path.Base(meta[pathKey])
	return s.Hub.CreateSession(c.Context(), c.who, hub.NewSession{Name: "Jupyter: " + strings.ToValidUTF8(title[:min(len(title), 100)], ""), Metadata: meta})
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
	meta := in.metadata(one.Metadata)
	before := s.model(one).ID
	changed := hub.Session{}
	switch {
	case in.kernelID() != "" && in.kernelID() != before:
		if changed, err = s.kernel(c, in.kernelID()); err == nil {
			changed, err = s.Hub.ChangeSession(c.Context(), c.who, changed.ID, hub.SessionChange{Metadata: with(changed.Metadata, meta)})
		}
	case in.kernelID() == "" && in.kernelName() != "":
		changed, err = s.newKernel(c, in.kernelName(), meta)
	default:
		changed, err = s.Hub.ChangeSession(c.Context(), c.who, one.ID, hub.SessionChange{Metadata: meta})
	}
	if err == nil && changed.ID != one.ID {
		err = s.end(c.Context(), c.who, one.ID)
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.sessionModel(changed))
}

func (s *server) deleteSession(c *call) error {
	one, err := s.session(c)
	if err == nil {
		err = s.end(c.Context(), c.who, one.ID)
	}
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	d := hex.EncodeToString(b[:])
	return d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:]
}
