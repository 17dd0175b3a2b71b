package store

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

func shareFields(s *hub.Share) []field {
	return []field{
		{"id", textOf(&s.ID)}, {"hash", textOf(&s.Hash)}, {"project", textOf(&s.Project)}, {"user_id", textOf(&s.User)}, {"conversation", textOf(&s.Conversation)},
		{"turn_id", textOf(&s.Turn)}, content(field{"title", textOf(&s.Title)}), {"turns", countOf(&s.Turns)}, {"code", flag{&s.Code}}, {"size", countOf(&s.Size)},
		{"created", moment{&s.Created}}, {"expires", moment{&s.Expires}},
	}
}

// shown is a share with its document.
type shown struct {
	share    hub.Share
	document []byte
}

func shownFields(s *shown) []field {
	return append(shareFields(&s.share), content(field{"document", blob{&s.document}}))
}

// AddShare implements hub.ShareStore. Those of one conversation wait for each other.
func (s *Store) AddShare(ctx context.Context, share hub.Share, document []byte, most int, room int64) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if _, err := one(ctx, q, conversationFields, "FROM conversations WHERE id = $1 AND project = $2"+s.dialect.forUpdate, clean(share.Conversation), share.Project); err != nil {
			return found(err, problem.ConversationNotFound)
		}
		var have int
		var size int64
		err := q.QueryRowContext(ctx, "SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM shares WHERE project = $1 AND (expires = 0 OR expires > $2)",
			share.Project, micros(share.Created)).Scan(&have, &size)
		if err != nil {
			return err
		}
		if have >= most || size+share.Size > room {
			return problem.New(problem.TooManyShares, "the project has as many links to conversations as it can have").WithHint("withdraw some first")
		}
		return insert(ctx, q, "shares", shownFields(&shown{share, document}), "")
	})
}

// Shares implements hub.ShareStore.
func (s *Store) Shares(ctx context.Context, project string, p hub.Page) (hub.Listing[hub.Share], error) {
	var w filter
	w.add("project = ?", project)
	w.add("(expires = 0 OR expires > ?)", micros(time.Now()))
	return list(ctx, s, order[hub.Share]{
		table: "shares", fields: shareFields, by: "created",
		at: func(s *hub.Share) (time.Time, string) { return s.Created, s.ID },
	}, w, p)
}

// DeleteShare implements hub.ShareStore.
func (s *Store) DeleteShare(ctx context.Context, project, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		done, err := q.ExecContext(ctx, "DELETE FROM shares WHERE id = $1 AND project = $2", clean(id), project)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); n > 0 || err != nil {
			return err
		}
		return missing(problem.ShareNotFound)
	})
}

// SharedDocument implements hub.ShareStore.
func (s *Store) SharedDocument(ctx context.Context, hash string) (hub.Share, []byte, error) {
	got, err := get(ctx, s, problem.ShareNotFound, shownFields, "FROM shares WHERE hash = $1", clean(hash))
	return got.share, got.document, err
}
