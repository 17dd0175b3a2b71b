package store

import (
	"context"
	"slices"
	"strconv"

	"cove/internal/server/hub"
)

// firstTurns is how many of a conversation's turns are looked at for the files that its questions brought.
const firstTurns = 3

// SessionUses implements hub.SessionUseStore.
func (s *Store) SessionUses(ctx context.Context, project string, sessions []string, most int) (map[string][]hub.SessionUse, error) {
	uses := map[string][]hub.SessionUse{}
	for part := range slices.Chunk(sessions, rowsAtOnce) {
		err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
			conversations, err := conversationsOf(ctx, q, project, part, most)
			if err != nil {
				return err
			}
			files, err := firstFiles(ctx, q, conversations)
			if err != nil {
				return err
			}
			for _, id := range part {
				delete(uses, id) // of an attempt before
			}
			for _, c := range conversations {
				uses[c.Session] = append(uses[c.Session], hub.SessionUse{Conversation: c.ID, Title: c.Title, Files: files[c.ID]})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return uses, nil
}

// conversationsOf returns ID, Session and Title of the conversations of each session that were used last.
func conversationsOf(ctx context.Context, q queryer, project string, sessions []string, most int) ([]hub.Conversation, error) {
	fields := func(c *hub.Conversation) []field {
		return []field{{"id", textOf(&c.ID)}, {"session_id", textOf(&c.Session)}, content(field{"title", textOf(&c.Title)})}
	}
	var f filter
	f.add("project = ?", project)
	f.among("session_id", sessions)
	return many(ctx, q, fields, "FROM (SELECT id, session_id, title, used, ROW_NUMBER() OVER (PARTITION BY session_id ORDER BY used DESC, id DESC) AS nth FROM conversations"+f.where()+
		") AS ranked WHERE nth <= "+strconv.Itoa(most)+" ORDER BY used DESC, id DESC", f.args...)
}

// firstFiles returns the names of the files that the first questions of conversations brought, by conversation.
func firstFiles(ctx context.Context, q queryer, conversations []hub.Conversation) (map[string][]string, error) {
	if len(conversations) == 0 {
		return nil, nil
	}
	ids := make([]string, len(conversations))
	for i, c := range conversations {
		ids[i] = c.ID
	}
	var f filter
	f.add("hidden = 0")
	f.among("conversation", ids)
	fields := func(t *hub.Turn) []field {
		return []field{{"id", textOf(&t.ID)}, {"conversation", textOf(&t.Conversation)}, content(field{"files", documentOf(&t.Files)})}
	}
	turns, err := many(ctx, q, fields, "FROM (SELECT id, conversation, files, created, ROW_NUMBER() OVER (PARTITION BY conversation ORDER BY created, id) AS nth FROM turns"+f.where()+
		") AS ranked WHERE nth <= "+strconv.Itoa(firstTurns)+" ORDER BY created, id", f.args...)
	if err != nil {
		return nil, err
	}
	files := map[string][]string{}
	for _, t := range turns {
		for _, file := range t.Files {
			if names := files[t.Conversation]; !slices.Contains(names, file.Name) { // the tries of a question have its files
				files[t.Conversation] = append(names, file.Name)
			}
		}
	}
	return files, nil
}
