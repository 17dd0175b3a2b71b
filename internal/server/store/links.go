package store

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func linkFields(l *hub.SessionLink) []field {
	return []field{
		{"id", textOf(&l.ID)}, {"hash", textOf(&l.Hash)}, {"project", textOf(&l.Project)}, {"user_id", textOf(&l.User)}, {"key_id", textOf(&l.Key)}, {"session_id", textOf(&l.Session)},
		{"purpose", textOf(&l.Purpose)}, content(field{"path", textOf(&l.Path)}), {"port", countOf(&l.Port)}, {"open", flag{&l.Open}}, {"wakes", flag{&l.Wakes}},
		{"created", moment{&l.Created}}, {"expires", moment{&l.Expires}},
	}
}

// AddLink implements hub.LinkStore. Those of one session wait for each other.
func (s *Store) AddLink(ctx context.Context, l hub.SessionLink, most int) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if _, err := one(ctx, q, sessionFields, "FROM sessions WHERE id = $1 AND project = $2 AND gone = 0"+s.dialect.forUpdate, clean(l.Session), l.Project); err != nil {
			return found(err, problem.SessionNotFound)
		}
		var have int
		err := q.QueryRowContext(ctx, "SELECT COUNT(*) FROM session_links WHERE session_id = $1 AND (expires = 0 OR expires > $2)", clean(l.Session), micros(l.Created)).Scan(&have)
		if err != nil {
			return err
		}
		if have >= most {
			return problem.New(problem.TooManyLinks, "the session has as many links as it can have").WithHint("withdraw some first")
		}
		return insert(ctx, q, "session_links", linkFields(&l), "")
	})
}

// Links implements hub.LinkStore.
func (s *Store) Links(ctx context.Context, project, session string) ([]hub.SessionLink, error) {
	return all(ctx, s, linkFields, "FROM session_links WHERE session_id = $1 AND project = $2 AND (expires = 0 OR expires > $3) ORDER BY created DESC, id DESC", clean(session), project, micros(time.Now()))
}

// DeleteLink implements hub.LinkStore.
func (s *Store) DeleteLink(ctx context.Context, project, session, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		done, err := q.ExecContext(ctx, "DELETE FROM session_links WHERE id = $1 AND session_id = $2 AND project = $3", clean(id), clean(session), project)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); n > 0 || err != nil {
			return err
		}
		return missing(problem.LinkNotFound)
	})
}

// alive narrows links to those whose maker is still a member of the project, by a key that is still good.
const alive = ` AND EXISTS (SELECT 1 FROM members m WHERE m.project = session_links.project AND m.user_id = session_links.user_id)
	AND (key_id = '' OR EXISTS (SELECT 1 FROM access_keys k WHERE k.id = session_links.key_id AND k.revoked = 0 AND (k.expires = 0 OR k.expires > $1)))
	AND (expires = 0 OR expires > $1)`

// LinkOf implements hub.LinkStore.
func (s *Store) LinkOf(ctx context.Context, hash string, now time.Time) (hub.SessionLink, auth.Role, error) {
	return s.link(ctx, "hash = $2"+alive, micros(now), clean(hash))
}

// OpenPort implements hub.LinkStore.
func (s *Store) OpenPort(ctx context.Context, session string, port int, now time.Time) (hub.SessionLink, auth.Role, error) {
	return s.link(ctx, "session_id = $2 AND port = $3 AND open = 1"+alive+" ORDER BY wakes DESC, created DESC, id LIMIT 1", micros(now), clean(session), port)
}

func (s *Store) link(ctx context.Context, where string, args ...any) (l hub.SessionLink, role auth.Role, err error) {
	if l, err = get(ctx, s, problem.LinkNotFound, linkFields, "FROM session_links WHERE "+where, args...); err != nil {
		return l, "", err
	}
	m, err := get(ctx, s, problem.LinkNotFound, memberFields, "FROM members WHERE project = $1 AND user_id = $2", l.Project, l.User)
	return l, m.Role, err
}
