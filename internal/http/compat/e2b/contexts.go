package e2b

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"cove/internal/http/bodybudget"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// codeContext is an interpreter with variables of its own: a kernel of the session. Clients get its JSON.
type codeContext struct {
	ID       string `json:"id"` // the kernel's name
	Language string `json:"language"`
	Dir      string `json:"cwd"`
}

const mostContexts = 100

// standing are the contexts that every sandbox has, by their languages: code without a context runs there. Python's is the session's main kernel.
func standing(language string) codeContext {
	c := codeContext{ID: language, Language: language, Dir: homes["user"]}
	if language == python {
		c.ID = kernel.Main
	} else if in := languages[language].in; in != "" {
		c.ID, c.Language = in, in
	}
	return c
}

func (r record) contexts() []codeContext {
	all := []codeContext{standing(python)}
	for _, name := range slices.Sorted(maps.Keys(languages)) {
		if l := languages[name]; l.in == "" && installed()[l.program] {
			all = append(all, standing(name))
		}
	}
	return append(all, r.Contexts...)
}

// contextOf returns a context by its id.
func (r record) contextOf(id string) (codeContext, error) {
	all := r.contexts()
	if at := slices.IndexFunc(all, func(c codeContext) bool { return c.ID == id }); at >= 0 {
		return all[at], nil
	}
	return codeContext{}, &fault{http.StatusNotFound, fmt.Sprintf("Context %.100s not found", id)}
}

// contexts are what is known here of contexts: those in which the setup has run, and how much code has run in each.
type contexts struct {
	mu  sync.Mutex
	all map[contextName]*contextState
}

type contextName struct{ session, id string }

type contextState struct {
	ready bool // the setup has run
	count int  // of executions
	turn  chan struct{}
}

// alone has the code of a context that is a process wait for its turn. leave ends that.
func (c *contexts) alone(ctx context.Context, name contextName) (leave func(), err error) {
	var turn chan struct{}
	c.with(name, func(state *contextState) {
		if state.turn == nil {
			state.turn = make(chan struct{}, 1)
		}
		turn = state.turn
	})
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *contexts) with(name contextName, use func(*contextState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) > 100*mostContexts {
		c.all = map[contextName]*contextState{} // the setup runs once more
	}
	state := c.all[name]
	if state == nil {
		state = &contextState{}
		c.all[name] = state
	}
	use(state)
}

// forget is for a context whose interpreter begins anew.
func (c *contexts) forget(session, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, contextName{session, id})
}

// forgetAll is for a sandbox whose interpreters all begin anew.
func (c *contexts) forgetAll(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.all, func(name contextName, _ *contextState) bool { return name.session == session })
}

// toInterpreter serves what is for the code interpreter of a sandbox. Its errors are plain text.
func (s *server) toInterpreter(w http.ResponseWriter, r *http.Request, b sandbox) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.URL.Path == "/health" {
		reply(w, http.StatusOK, "OK")
		return
	}
	if err := holds(r, s.trafficToken(b.id), s.token(b.id)); err != nil {
		http.Error(w, "the access token of the sandbox is missing or wrong", http.StatusUnauthorized)
		return
	}
	var err error
	switch at := r.Method + " " + strings.Join(append(slices.Clone(parts[:1]), parts[min(len(parts), 2):]...), "/"); {
	case at == "POST execute" && len(parts) == 1:
		err = s.execute(w, r, b)
	case at == "GET contexts" && len(parts) == 1:
		reply(w, http.StatusOK, b.record.contexts())
	case at == "POST contexts" && len(parts) == 1:
		err = s.addContext(w, r, b)
	case at == "POST contexts/restart" && len(parts) == 3:
		err = s.restartContext(w, r, b, parts[1])
	case at == "DELETE contexts" && len(parts) == 2:
		err = s.removeContext(w, r, b, parts[1])
	default:
		err = &fault{http.StatusNotFound, "Not Found"}
	}
	if err == nil {
		return
	}
	code, message := said(err)
	http.Error(w, message, code)
}

func readJSON(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	text, err := io.ReadAll(bodybudget.Bounded(w, r.Body, most))
	if err != nil {
		return &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes, or did not come whole", most)}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &fault{http.StatusUnprocessableEntity, "the request is not the JSON that is expected: " + bodybudget.WhyNotJSON(err)}
	}
	return nil
}

func (s *server) addContext(w http.ResponseWriter, r *http.Request, b sandbox) error {
	var in struct {
		Language string `json:"language"`
		Dir      string `json:"cwd"`
	}
	if err := readJSON(w, r, mostBody, &in); err != nil {
		return err
	}
	language, err := languageOf(in.Language)
	if err != nil {
		return err
	}
	dir, err := absolute("user", in.Dir)
	if err != nil {
		return &fault{http.StatusBadRequest, "cwd is a path in the sandbox"}
	}
	code, _ := auth.RandomCode()
	made := codeContext{ID: code, Language: standing(language).Language, Dir: dir}
	if language == python {
		_, err = s.Hub.StartKernel(r.Context(), b.who, b.id, made.ID)
	}
	if err != nil {
		return err
	}
	_, err = s.prolong(r.Context(), b.who, b.id, func(r *record) { r.Contexts = append(r.Contexts, made) })
	if err != nil {
		_ = s.end(context.WithoutCancel(r.Context()), b, made) // it ends with the session otherwise
		return err
	}
	reply(w, http.StatusOK, made)
	return nil
}

// end ends the interpreter of a context.
func (s *server) end(ctx context.Context, b sandbox, which codeContext) error {
	if which.Language == python {
		return s.Hub.StopKernel(ctx, b.who, b.id, which.ID)
	}
	return s.endWorker(ctx, b, which)
}

func (s *server) restartContext(w http.ResponseWriter, r *http.Request, b sandbox, id string) error {
	which, err := b.record.contextOf(id)
	if err != nil {
		return err
	}
	s.contexts.forget(b.id, id)
	if which.Language == python {
		_, err = s.Hub.RestartKernel(r.Context(), b.who, b.id, id)
	} else {
		err = s.endWorker(r.Context(), b, which) // the next code begins a new one
	}
	if err != nil {
		return err
	}
	s.contexts.forget(b.id, id)
	reply(w, http.StatusOK, nil)
	return nil
}

func (s *server) removeContext(w http.ResponseWriter, r *http.Request, b sandbox, id string) error {
	which, err := b.record.contextOf(id)
	if err != nil {
		return err
	}
	if which.ID == standing(which.Language).ID {
		return &fault{http.StatusBadRequest, "a context that every sandbox has cannot be removed; restart it"}
	}
	if err := s.end(r.Context(), b, which); err != nil {
		return err
	}
	s.contexts.forget(b.id, id)
	_, err = s.prolong(r.Context(), b.who, b.id, func(r *record) {
		r.Contexts = slices.DeleteFunc(slices.Clone(r.Contexts), func(c codeContext) bool { return c.ID == id })
	})
	if err == nil {
		reply(w, http.StatusOK, nil)
	}
	return err
}
