package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
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

	Context int64  `json:"context_tokens,omitempty" doc:"That it takes at once, as far as the operator says"`
	Vision  *bool  `json:"vision,omitempty" doc:"Whether it sees images; left out where that is not known"`
	Price   *Price `json:"price,omitempty"`
}

// Price is what a million tokens cost, as the operator says.
type Price struct {
	Input    float64  `json:"input"`
	Output   float64  `json:"output"`
	Cached   *float64 `json:"cached_input,omitempty" doc:"Of input that the provider had read before; like other input when left out"`
	Currency string   `json:"currency" example:"USD"`
}

// ModelOf is a model as the interface tells of it.
func ModelOf(m hub.ModelInfo) Model {
	out := Model{ID: m.ID, Provider: m.Provider, Default: m.Default, Context: m.About.Context, Vision: m.About.Vision}
	if p := m.About.Price; p != nil {
		out.Price = &Price{Input: amount(p.Input), Output: amount(p.Output), Currency: p.Currency}
		if p.Cached != nil {
			out.Price.Cached = new(amount(*p.Cached))
		}
	}
	return out
}

func amount(millionths int64) float64 { return float64(millionths) / 1e6 }

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
			return List[Model]{Items: each(out, ModelOf)}, err
		})
}
