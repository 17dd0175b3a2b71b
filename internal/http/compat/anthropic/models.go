package anthropic

import (
	"cove/internal/server/hub"
)

func shownModel(m hub.ModelInfo) object {
	// Anthropic, too, says the beginning of time where it does not know when a model was released.
	return object{"type": "model", "id": m.ID, "display_name": m.ID, "created_at": "1970-01-01T00:00:00Z"}
}

func (s *server) listModels(c *call) error {
	models, err := s.Hub.Models(c.Context(), c.who)
	if err != nil {
		return err
	}
	all := []object{}
	for _, m := range models {
		all = append(all, shownModel(m))
	}
	return c.reply(page(all, ""))
}

func (s *server) getModel(c *call) error {
	models, err := s.Hub.Models(c.Context(), c.who)
	if err != nil {
		return err
	}
	id := c.PathValue("id")
	for _, m := range models { // a request may leave the provider out, and so may this one
		if m.ID == id || m.ID == m.Provider+"/"+id {
			return c.reply(shownModel(m))
		}
	}
	return noModel(id)
}

// page is a list. Lists have had two forms; this one is both.
func page(all []object, next string) object {
	p := object{"data": all, "has_more": next != "", "first_id": nil, "last_id": nil, "next_page": orNull(next)}
	if len(all) > 0 {
		p["first_id"], p["last_id"] = all[0]["id"], all[len(all)-1]["id"]
	}
	return p
}
