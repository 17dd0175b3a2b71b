package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/auth"
	"cove/internal/hub"
	"cove/internal/problem"
)

// Found is a place where a search matched.
type Found struct {
	Conversation string    `json:"conversation,omitempty"`
	Turn         string    `json:"turn,omitempty"`
	Execution    string    `json:"execution,omitempty"`
	Session      string    `json:"session,omitempty"`
	At           time.Time `json:"at"`
	Field        string    `json:"field" enum:"prompt,answer,code,output"`
	Snippet      string    `json:"snippet"`
}

func foundOf(f hub.Found) Found { f.At = f.At.UTC(); return Found(f) }

// Model is a model that can be asked.
type Model struct {
	ID       string `json:"id" doc:"As a turn's model takes it"`
	Provider string `json:"provider"`
	Default  bool   `json:"default"`
}

type searchQuery struct {
	After string `query:"after" maxLength:"500" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Query string `query:"q" required:"true" minLength:"1" maxLength:"500" doc:"Words that must all be there; the last may be the beginning of one"`
}

func (s *server) addSearch() {
	add(s, operation{id: "search", method: http.MethodGet, path: "/search", tag: "search", action: auth.ConversationsRead, summary: "Search the history",
		about: "In what was asked, answered, run and printed; the newest first.", errors: []problem.Code{problem.SearchTooBroad},
		example: `curl -G -H "Authorization: Bearer $KEY" $COVE/search --data-urlencode "q=churn 流失"`},
		func(ctx context.Context, who auth.Principal, in *searchQuery) (List[Found], error) {
			out, err := s.o.Hub.Search(ctx, who, in.Query, hub.Page{After: in.After, Limit: in.Limit})
			return listOf(out, foundOf), err
		})
	add(s, operation{id: "model.list", method: http.MethodGet, path: "/models", tag: "models", action: auth.ModelsRead, summary: "List the models that can be asked",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/models`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (List[Model], error) {
			out, err := s.o.Hub.Models(ctx, who)
			return List[Model]{Items: each(out, func(m hub.ModelInfo) Model { return Model(m) })}, err
		})
}
