package jupyter

import (
	"context"
	"net/http"
	"net/url"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Metadata of sessions that are kernels of this surface.
const (
	kernelKey  = "jupyter.kernel" // the name of its specification
	idKey      = "jupyter.id"     // the kernel's id, where a client chose it
	sessionKey = "jupyter.session"
	pathKey    = "jupyter.path"
	nameKey    = "jupyter.name"
	typeKey    = "jupyter.type"
)

// mainKernel is the kernel of a session that is a kernel.
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

func (s *server) model(p place) kernelModel {
	m := kernelModel{ID: p.id, Name: specName, LastActivity: moment(p.session.Used), State: stateIdle}
	if k := s.present(p.id); k != nil {
		state, active, connections := k.look()
		m.State, m.Connections = state, connections
		if active.After(p.session.Used) {
			m.LastActivity = moment(active)
		}
	}
	return m
}

// marked lists the sessions that have these metadata.
func (s *server) marked(ctx context.Context, who auth.Principal, meta map[string]string) ([]hub.Session, error) {
	var all []hub.Session
	page := hub.Page{Limit: 100}
	for {
		list, err := s.Hub.Sessions(ctx, who, hub.SessionFilter{Meta: meta}, page)
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
	places, err := s.places(c.Context(), c.who)
	models := []kernelModel{}
	for _, p := range places {
		models = append(models, s.model(p))
	}
	return models, err
}

func (s *server) listKernels(c *call) error {
	models, err := s.kernelsOf(c)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, models)
}

// startKernel makes a session. A client that says a path means the files of the Contents API: its kernel is in the personal session. Variables of the environment, which clients send, are matters of
// the machine that a Jupyter server runs on.
func (s *server) startKernel(c *call) error {
	var in struct {
		Name string `json:"name"`
		Path string `json:"path"`
		ID   string `json:"kernel_id"`
	}
	err := c.read(&in)
	if err == nil {
		err = known(in.Name)
	}
	if err == nil {
		err = s.mayName(c, in.ID)
	}
	var p place
	if err == nil && in.Path == "" {
		p, err = s.newKernel(c, entry{ID: in.ID})
	} else if err == nil {
		var dir document
		if dir, err = documentOf(in.Path); err == nil {
			p, err = s.newPersonalKernel(c, entry{ID: in.ID, Dir: string(dir)})
		}
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Prefix+"/api/kernels/"+url.PathEscape(p.id))
	return c.reply(http.StatusCreated, s.model(p))
}

func (s *server) getKernel(c *call) error {
	p, err := s.here(c)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.model(p))
}

func (s *server) deleteKernel(c *call) error {
	p, err := s.here(c)
	if err == nil {
		err = s.end(c.Context(), c.who, p)
	}
	return c.done(err)
}

func (s *server) interruptKernel(c *call) error {
	p, err := s.here(c)
	if err == nil {
		err = s.interrupt(c.Context(), c.who, p)
	}
	return c.done(err)
}

func (s *server) restartKernel(c *call) error {
	p, err := s.here(c)
	if err == nil {
		err = s.restart(c.Context(), c.who, p)
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s.model(p))
}

// done answers that something was done, which has no more to tell.
func (c *call) done(err error) error {
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}
