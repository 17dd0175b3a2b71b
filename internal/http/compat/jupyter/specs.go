package jupyter

import (
	"encoding/json"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

const (
	// serverVersion is the release of jupyter_server whose interface this is.
	serverVersion = "2.14.0"
	// specName is what the one kind of kernel is called everywhere.
	specName = "python3"
)

type kernelSpec struct {
	Name      string            `json:"name"`
	Spec      specContent       `json:"spec"`
	Resources map[string]string `json:"resources"`
}

type specContent struct {
	Argv          []string          `json:"argv"`
	Env           map[string]string `json:"env"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Metadata      map[string]any    `json:"metadata"`
}

func pythonSpec() kernelSpec {
	return kernelSpec{Name: specName, Resources: map[string]string{}, Spec: specContent{
		Argv: []string{"python3"}, Env: map[string]string{}, DisplayName: "Python 3 (cove)", Language: "python", InterruptMode: "signal", Metadata: map[string]any{},
	}}
}

func (s *server) specs(c *call) error {
	return c.reply(http.StatusOK, map[string]any{"default": specName, "kernelspecs": map[string]kernelSpec{specName: pythonSpec()}})
}

func (s *server) spec(c *call) error {
	if c.PathValue("name") != specName {
		return problem.New(problem.RouteNotFound, "there is no such kernel specification").WithHint("the only one is python3")
	}
	return c.reply(http.StatusOK, pythonSpec())
}

// known returns a problem for the name of kernels that are not here. Clients without a choice say "python" or nothing.
func known(name string) error {
	switch name {
	case "", "python", specName:
		return nil
	}
	return problem.New(problem.KernelSpecUnknown, "there are no kernels of that name").WithHint("ask for python3")
}

func (s *server) version(c *call) error {
	return c.reply(http.StatusOK, map[string]string{"version": serverVersion})
}

// me says who the caller is, and which of the actions that it asks for it may take.
func (s *server) me(c *call) error {
	wrong := problem.New(problem.InvalidRequest, `permissions should be a JSON dict of {"resource": ["action",]}`)
	var asked map[string][]string
	if text := c.URL.Query().Get("permissions"); text != "" && (json.Unmarshal([]byte(text), &asked) != nil || asked == nil) {
		return wrong
	}
	permissions := map[string]any{"updatable_fields": []string{}}
	for resource, actions := range asked {
		allowed := []string{}
		for _, action := range actions {
			if needs, ok := rights[resource][action]; ok && c.who.Require(needs) == nil {
				allowed = append(allowed, action)
			}
		}
		permissions[resource] = allowed
	}
	identity := map[string]any{"username": c.who.User, "name": c.who.User, "display_name": c.who.User, "initials": nil, "avatar_url": nil, "color": nil}
	return c.reply(http.StatusOK, map[string]any{"identity": identity, "permissions": permissions})
}

// rights are what the actions need that a Jupyter server knows, by their resources.
var rights = map[string]map[string]auth.Action{
	"api":         {"read": auth.SessionsRead},
	"contents":    {"read": auth.FilesRead, "write": auth.FilesWrite},
	"kernels":     {"read": auth.SessionsRead, "write": auth.SessionsWrite, "execute": auth.SessionsExecute},
	"kernelspecs": {"read": auth.SessionsRead},
	"sessions":    {"read": auth.SessionsRead, "write": auth.SessionsWrite},
	"terminals":   {"read": auth.SessionsRead, "write": auth.SessionsExecute, "execute": auth.SessionsExecute},
}

func (s *server) status(c *call) error {
	kernels, err := s.kernelsOf(c)
	if err != nil {
		return err
	}
	last, connections := s.began, 0
	for _, k := range kernels {
		connections += k.Connections
		if at, err := time.Parse(timeForm, k.LastActivity); err == nil && at.After(last) {
			last = at
		}
	}
	return c.reply(http.StatusOK, map[string]any{"started": moment(s.began), "last_activity": moment(last), "connections": connections, "kernels": len(kernels)})
}

// nothing answers what JupyterLab asks for when it begins, and takes no 404 for: this server converts no notebooks, and stores no settings.
func (s *server) nothing(c *call) error { return c.reply(http.StatusOK, struct{}{}) }

// timeForm is how Jupyter writes times. Some clients take no other form.
const timeForm = "2006-01-02T15:04:05.000000Z"

func moment(t time.Time) string { return t.UTC().Format(timeForm) }
