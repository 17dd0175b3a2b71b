package store

import (
	"context"

	"cove/internal/hub"
)

// firstTurns are those of a conversation whose files it is known by.
const firstTurns = 3

// SessionUses implements hub.SessionStore.
func (s *Store) SessionUses(ctx context.Context, project, session string, most int) (uses []hub.SessionUse, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		conversations, err := many(ctx, q, func(c *hub.Conversation) []field {
			return []field{{"id", textOf(&c.ID)}, content(field{"title", textOf(&c.Title)})}
		}, "FROM conversations WHERE project = $1 AND session_id = $2 ORDER BY used DESC, id DESC LIMIT $3", project, clean(session), most)
		if err != nil {
			return err
		}
		uses = nil // of an attempt before
		for _, c := range conversations {
			use := hub.SessionUse{Conversation: c.ID, Title: c.Title}
			turns, err := many(ctx, q, func(t *hub.Turn) []field {
				return []field{{"id", textOf(&t.ID)}, content(field{"files", documentOf(&t.Files)})}
			}, "FROM turns WHERE conversation = $1 ORDER BY created, id LIMIT $2", c.ID, firstTurns)
			if err != nil {
				return err
			}
			for _, t := range turns {
				for _, f := range t.Files {
					use.Files = append(use.Files, f.Name)
				}
			}
			uses = append(uses, use)
		}
		return nil
	})
	return uses, err
}
