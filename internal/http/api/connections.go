package api

import (
	"context"
	"net/http"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Connection is a service of models. Its key is never shown.
type Connection struct {
	Provider string   `json:"provider" enum:"openai,anthropic,ollama"`
	Address  string   `json:"address" doc:"The provider's own when empty"`
	KeyEnd   string   `json:"key_end,omitempty" doc:"The last 4 characters of its key"`
	Models   []string `json:"models" doc:"That clients may ask. Of settings without models.serve: empty, which is what GET /models lists"`
	Default  string   `json:"default,omitempty" doc:"That is asked when none is named"`
	From     string   `json:"from" enum:"settings,api"`
}

func connectionOf(c hub.Connection) Connection {
	from := "api"
	if c.Settings {
		from = "settings"
	}
	return Connection{Provider: c.Provider, Address: c.Address, KeyEnd: c.KeyEnd(), Models: append([]string{}, c.Models...), Default: c.Default, From: from}
}

// ConnectionChange says how a service of models is reached.
type ConnectionChange struct {
	Address string   `json:"address,omitempty" maxLength:"500" doc:"http:// or https://, without a password; the provider's own when left out. OpenAI's protocol: up to /v1"`
	Key     *string  `json:"key,omitempty" maxLength:"1000" doc:"Left out: the one that is there, for the same address"`
	Models  []string `json:"models,omitempty" maxItems:"100" doc:"Names as the service has them"`
	Default string   `json:"default,omitempty" maxLength:"200" doc:"One of the models, which is asked when none is named"`
}

func (c ConnectionChange) hub(provider string) hub.ConnectionChange {
	return hub.ConnectionChange{Provider: provider, Address: c.Address, Key: c.Key, Models: c.Models, Default: c.Default}
}

// Trial is what a service of models said.
type Trial struct {
	Models  []string      `json:"models" doc:"That the service lists"`
	Answer  string        `json:"answer,omitempty" doc:"What the default, or the first of the models, said to a short question"`
	Seconds float64       `json:"seconds"`
	Problem *TrialProblem `json:"problem,omitempty" doc:"Why it failed"`
}

// TrialProblem is why a trial failed.
type TrialProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func trialOf(t hub.Trial) Trial {
	out := Trial{Models: append([]string{}, t.Models...), Answer: t.Answer, Seconds: t.Took.Seconds()}
	if p := t.Problem; p != nil {
		out.Problem = &TrialProblem{Code: p.Code, Message: p.Message, Hint: p.Hint}
	}
	return out
}

type (
	// ConnectionPath names a connection in an address.
	ConnectionPath struct {
		Provider string `path:"provider" maxLength:"64" doc:"openai, anthropic or ollama" example:"openai"`
	}
	setConnection struct {
		ConnectionPath
		Body ConnectionChange
	}
	tryConnection struct {
		Body struct {
			Provider string `json:"provider" maxLength:"64" doc:"openai, anthropic or ollama"`
			ConnectionChange
		}
	}
)

func (s *server) addConnections() {
	const tag = "models"
	add(s, operation{id: "connection.list", method: http.MethodGet, path: "/connections", tag: tag, action: auth.ServerManage, summary: "List the connected services of models",
		about:   "Those that were set here, and those of the settings whose provider none of them has.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/connections`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (List[Connection], error) {
			out, err := s.o.Hub.Connections(ctx, who)
			return List[Connection]{Items: each(out, connectionOf)}, err
		})
	add(s, operation{id: "connection.set", method: http.MethodPut, path: "/connections/{provider}", tag: tag, action: auth.ServerManage, summary: "Connect a service of models",
		about:  "New turns use it at once, on all servers of the database, and after a restart. It takes the place of the settings' address, key and models of that provider. The key is kept in the database and never shown.",
		errors: []problem.Code{problem.ConnectionInvalid, problem.ConnectionNotFound}, example: `curl -X PUT -H "Authorization: Bearer $KEY" $COVE/connections/ollama \
  -d '{"address":"http://127.0.0.1:11434","models":["qwen3"]}'`},
		func(ctx context.Context, who auth.Principal, in *setConnection) (Connection, error) {
			if !slices.Contains([]string{"openai", "anthropic", "ollama"}, in.Provider) {
				return Connection{}, problem.New(problem.ConnectionNotFound, "there is no such provider").
					WithHint("the providers are openai, anthropic and ollama; a server that speaks OpenAI's protocol is openai with its address")
			}
			out, err := s.o.Hub.SetConnection(ctx, who, in.Body.hub(in.Provider))
			return connectionOf(out), err
		})
	addSilent(s, operation{id: "connection.delete", method: http.MethodDelete, path: "/connections/{provider}", tag: tag, action: auth.ServerManage, summary: "Disconnect a service of models",
		about: "One that was set here; the settings' of that provider counts again.", errors: []problem.Code{problem.ConnectionNotFound},
		example: `curl -X DELETE -H "Authorization: Bearer $KEY" $COVE/connections/ollama`},
		func(ctx context.Context, who auth.Principal, in *ConnectionPath) error {
			return s.o.Hub.DeleteConnection(ctx, who, in.Provider)
		})
	add(s, operation{id: "connection.try", method: http.MethodPost, path: "/connections/try", tag: tag, action: auth.ServerManage, summary: "Try a service of models",
		about:  "Nothing is kept. The answer says which models the service lists and, where one is named, what it says to a short question; or, in `problem`, why not.",
		errors: []problem.Code{problem.ConnectionInvalid}, example: `curl -H "Authorization: Bearer $KEY" $COVE/connections/try \
  -d '{"provider":"ollama","address":"http://127.0.0.1:11434"}'`},
		func(ctx context.Context, who auth.Principal, in *tryConnection) (Trial, error) {
			out, err := s.o.Hub.TryConnection(ctx, who, in.Body.hub(in.Body.Provider))
			return trialOf(out), err
		})
}
