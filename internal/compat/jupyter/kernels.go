package jupyter

import (
	"net/http"
	"net/url"

	"cove/internal/hub"
	"cove/internal/ident"
	"cove/internal/problem"
)

// Metadata of sessions that are kernels of this surface.
const (
	kernelKey  = "jupyter.kernel" // the name of its specification
	sessionKey = "jupyter.session"
	pathKey    = "jupyter.path"
	nameKey    = "jupyter.name"
	typeKey    = "jupyter.type"
)

// mainKernel is the one of a session's kernels that this surface uses.
const mainKernel = "main"

// mostListed bounds what one answer lists: Jupyter's lists have no pages.
const mostListed = 1000

// kernelModel is a kernel as clients see it.
type kernelModel struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	LastActivity string `json:"last_activity"`
	State        string `json:"execution_state"`
	Connections  int    `json:"connections"`
}

func (s *server) model(session hub.Session) kernelModel {
	m := kernelModel{ID: ident.UUID(session.ID), Name: session.Metadata[kernelKey], LastActivity: moment(session.Used), State: stateIdle}
	s.mu.Lock()
	k := s.kernels[session.ID]
	s.mu.Unlock()
	if k != nil {
		state, active, connections := k.look()
		m.State, m.Connections = state, connections
		if active.After(session.Used) {
			m.LastActivity = moment(active)
		}
	}
	return m
}

// marked lists the sessions that have these metadata.
func (s *server) marked(c *call, meta map[string]string) ([]hub.Session, error) {
	var all []hub.Session
	page := hub.Page{Limit: 100}
	for {
		list, err := s.Hub.Sessions(c.Context(), c.who, hub.SessionFilter{Meta: meta}, page)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if page.After = list.Next; page.After == "" || len(all) >= mostListed {
			return all, nil
		}
	}
}

func (s *server) kernelsOf(c *call) ([]kernelModel, error) {
	sessions, err := s.marked(c, map[string]string{kernelKey: specName})
	models := []kernelModel{}
	for _, session := range sessions {
		models = append(models, s.model(session))
	}
	return models, err
}

// kernel returns the hub's session of a kernel.
func (s *server) kernel(c *call, id string) (hub.Session, error) {
	none := problem.New(problem.KernelNotFound, "Kernel does not exist: "+id)
	own, ok := ident.FromUUID(ident.Session, id)
	if !ok {
		return hub.Session{}, none
	}
	session, err := s.Hub.Session(c.Context(), c.who, own)
	if problem.Is(err, problem.NotFound) || err == nil && (session.State == hub.SessionDeleted || session.Metadata[kernelKey] == "") {
		return hub.Session{}, none
	}
	return session, err
}

func (s *server) listKernels(c *call) error {
	models, err := s.kernelsOf(c)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, models)
}

// startKernel makes a session. What else clients send, a path and variables of the environment, are matters of the machine that a Jupyter server runs on.
func (s *server) startKernel(c *call) error {
	var in struct {
		Name string `json:"name"`
		ID   string `json:"kernel_id"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if in.ID != "" {
		return problem.New(problem.InvalidRequest, "this server chooses the ids of kernels").WithHint("leave kernel_id out")
	}
	if err := known(in.Name); err != nil {
		return err
	}
	session, err := s.Hub.CreateSession(c.Context(), c.who, hub.NewSession{Name: "Jupyter kernel", Metadata: map[string]string{kernelKey: specName}})
	if err != nil {
		return err
	}
	m := s.model(session)
	c.w.Header().Set("Location", Prefix+"/api/kernels/"+url.PathEscape(m.ID))
	return c.reply(http.StatusCreated, m)
}

func (s *server) getKernel(c *call) error {
	session, err := s.kernel(c, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.model(session))
}

func (s *server) deleteKernel(c *call) error {
	session, err := s.kernel(c, c.PathValue("id"))
	if err == nil {
		err = s.end(c.Context(), c.who, session.ID)
	}
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) interruptKernel(c *call) error {
	session, err := s.kernel(c, c.PathValue("id"))
	if err == nil {
		err = s.interrupt(c.Context(), c.who, session.ID)
	}
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) restartKernel(c *call) error {
	session, err := s.kernel(c, c.PathValue("id"))
	if err == nil {
		err = s.restart(c.Context(), c.who, session)
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.model(session))
}
