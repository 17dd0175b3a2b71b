package sandboxai

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/machine/process"
	"cove/internal/server/hub"
)

// What a session's metadata says of a sandbox.
const (
	placeEntry = "sandboxai.place" // its space and its name: "default/lab"
	specEntry  = "sandboxai.spec"  // as JSON

	mostSpec = 64 << 10 // bytes
)

// names are those of sandboxes and spaces. A name is a part of an address.
var names = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) })

// spec is what a client asks of a sandbox.
type spec struct {
	Image string            `json:"image,omitempty"`
	Env   map[string]string `json:"env"`
}

// sandbox is one as clients read it.
type sandbox struct {
	Name   string   `json:"name"`
	UID    string   `json:"uid"`
	Spec   spec     `json:"spec"`
	Status struct{} `json:"status"`

	session string
}

func invalid(message string) error { return problem.New(problem.InvalidRequest, message) }

// read reads a request's JSON.
func (s *server) read(c *call, v any) error {
	body, err := bodybudget.Read(c.Context(), bodybudget.Bounded(c.w, c.Body, s.MaxBody))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return problem.New(problem.RequestTooLarge, "the request is longer than this server takes")
	}
	if err == nil && json.Unmarshal(body, v) != nil {
		err = invalid("the request is not what SandboxAI's clients send")
	}
	return err
}

func (s *server) create(c *call) error {
	var in struct {
		Name string `json:"name"`
		Spec spec   `json:"spec"`
	}
	if err := s.read(c, &in); err != nil {
		return err
	}
	b := sandbox{Name: in.Name, Spec: in.Spec}
	if b.Name == "" {
		b.Name = "sbx-" + strings.ToLower(ident.Body(ident.New(ident.Session)))
	}
	if !names().MatchString(c.PathValue("space")) || !names().MatchString(b.Name) {
		return invalid("names of spaces and sandboxes have at most 100 letters, digits, dots, hyphens and underscores")
	}
	if err := b.Spec.check(); err != nil {
		return err
	}
	text, err := json.Marshal(b.Spec)
	if err == nil && len(text) > mostSpec {
		err = invalid("the variables of the sandbox are larger than 64 KiB together")
	}
	if err != nil {
		return err
	}
	leave, err := s.alone(c, b.Name)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := s.find(c, b.Name); err == nil {
		return problem.New(problem.SessionExists, "there is a sandbox of this name in the space").WithHint("choose another name, or leave the name out")
	} else if !problem.Has(err, problem.SessionNotFound) {
		return err
	}
	network, err := s.Hub.WidestNetwork(c.Context(), c.who)
	if err != nil {
		return err
	}
	made, err := s.Hub.CreateSession(c.Context(), c.who, hub.NewSession{
		Metadata: map[string]string{placeEntry: c.PathValue("space") + "/" + b.Name, specEntry: string(text)}, Network: network,
	})
	if err != nil {
		return err
	}
	b.UID = ident.Body(made.ID)
	write(c.w, http.StatusCreated, b)
	return nil
}

// alone waits until no other request makes a sandbox of this name, so that there is one. Other names wait for it seldom.
func (s *server) alone(c *call, name string) (leave func(), err error) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(c.who.Project + "/" + c.PathValue("space") + "/" + name))
	making := s.making[sum.Sum32()%uint32(len(s.making))]
	select {
	case making <- struct{}{}:
		return func() { <-making }, nil
	case <-c.Context().Done():
		return nil, c.Context().Err()
	}
}

// check refuses what a sandbox cannot have.
func (s *spec) check() error {
	if s.Image != "" && !strings.Contains(s.Image, "sandboxai-box") && s.Image != "cove" {
		return invalid("there is no image " + strings.ToValidUTF8(s.Image[:min(len(s.Image), 100)], "?") + ": a sandbox has the Python environment of this server; leave the image out")
	}
	return process.CheckEnvironment(s.Env)
}

// find returns the sandbox of a name in the space that a request is about. Problem: session_not_found.
func (s *server) find(c *call, name string) (sandbox, error) {
	place := c.PathValue("space") + "/" + name
	found, err := s.Hub.Sessions(c.Context(), c.who, hub.SessionFilter{Meta: map[string]string{placeEntry: place}}, hub.Page{Limit: 10})
	if err != nil {
		return sandbox{}, err
	}
	at := slices.IndexFunc(found.Items, func(one hub.Session) bool { return one.State != hub.SessionDeleted })
	if at < 0 {
		return sandbox{}, problem.New(problem.SessionNotFound, "there is no sandbox of this name in the space")
	}
	b := sandbox{Name: name, UID: ident.Body(found.Items[at].ID), session: found.Items[at].ID}
	return b, json.Unmarshal([]byte(found.Items[at].Metadata[specEntry]), &b.Spec)
}

func (s *server) get(c *call) error {
	b, err := s.find(c, c.PathValue("name"))
	if err != nil {
		return err
	}
	write(c.w, http.StatusOK, b)
	return nil
}

func (s *server) remove(c *call) error {
	b, err := s.find(c, c.PathValue("name"))
	if err != nil {
		return err
	}
	if err := s.Hub.DeleteSession(c.Context(), c.who, b.session); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// variables are those of the sandbox, as an execution or a program is given them.
func (b sandbox) variables() map[string]string { return maps.Clone(b.Spec.Env) }
