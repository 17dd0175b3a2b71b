package store

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

func browserFields(b *auth.Browser) []field {
	return []field{
		{"id", textOf(&b.ID)}, {"project", textOf(&b.Project)}, {"user_id", textOf(&b.User)}, {"key_id", textOf(&b.Key)}, {"hash", blob{&b.Hash}},
		{"created", moment{&b.Created}}, {"used", moment{&b.Used}}, {"expires", moment{&b.Expires}}, {"revoked", moment{&b.Revoked}},
		{"agent", textOf(&b.Agent)}, {"ip", textOf(&b.IP)},
	}
}

func codeFields(c *auth.Code) []field {
	return []field{
		{"id", textOf(&c.ID)}, {"project", textOf(&c.Project)}, {"user_id", textOf(&c.User)}, {"created", moment{&c.Created}},
		{"expires", moment{&c.Expires}}, {"used", moment{&c.Used}},
	}
}

// AddBrowser implements auth.Store.
func (s *Store) AddBrowser(ctx context.Context, b auth.Browser) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error { return insert(ctx, q, "browsers", browserFields(&b), "") })
}

// Browser implements auth.Store.
func (s *Store) Browser(ctx context.Context, id string) (auth.Browser, error) {
	return get(ctx, s, problem.BrowserNotFound, browserFields, "FROM browsers WHERE id = $1", clean(id))
}

// Browsers implements auth.Store. The oldest come first.
func (s *Store) Browsers(ctx context.Context, project, user string) ([]auth.Browser, error) {
	var f filter
	f.add("user_id = ?", clean(user))
	f.is("project", clean(project))
	return all(ctx, s, browserFields, "FROM browsers"+f.where()+" ORDER BY created, id", f.args...)
}

// ChangeBrowser implements auth.Store.
func (s *Store) ChangeBrowser(ctx context.Context, id string, change func(*auth.Browser) error) (auth.Browser, error) {
	return modify(ctx, s, record[auth.Browser]{problem.BrowserNotFound, "browsers", browserFields}, byID(id), change, nil)
}

// DeleteBrowser implements auth.Store.
func (s *Store) DeleteBrowser(ctx context.Context, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		return each(ctx, q, clean(id), "DELETE FROM browsers WHERE id = $1")
	})
}

// AddCode implements auth.Store.
func (s *Store) AddCode(ctx context.Context, c auth.Code) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error { return insert(ctx, q, "sign_in_codes", codeFields(&c), "") })
}

// Code implements auth.Store.
func (s *Store) Code(ctx context.Context, id string) (auth.Code, error) {
	return orNone(ctx, s, codeFields, "FROM sign_in_codes WHERE id = $1", clean(id))
}

// UseCode implements auth.Store.
func (s *Store) UseCode(ctx context.Context, id string, at time.Time) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, "UPDATE sign_in_codes SET used = $1 WHERE id = $2", micros(at), clean(id))
		return err
	})
}

// forgetSignIns deletes what has passed: browsers and shares at once, and codes and invitations a day later, so that their users are told what became of them.
func (s *Store) forgetSignIns(ctx context.Context) error {
	now := time.Now()
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if _, err := q.ExecContext(ctx, "DELETE FROM browsers WHERE expires <= $1", micros(now)); err != nil {
			return err
		}
		if _, err := q.ExecContext(ctx, "DELETE FROM shares WHERE expires > 0 AND expires <= $1", micros(now)); err != nil {
			return err
		}
		if _, err := q.ExecContext(ctx, "DELETE FROM session_links WHERE expires > 0 AND expires <= $1 OR session_id IN (SELECT id FROM sessions WHERE gone <> 0)", micros(now)); err != nil {
			return err
		}
		if _, err := q.ExecContext(ctx, "DELETE FROM invitations WHERE expires <= $1", micros(now.Add(-24*time.Hour))); err != nil {
			return err
		}
		_, err := q.ExecContext(ctx, "DELETE FROM sign_in_codes WHERE expires <= $1", micros(now.Add(-24*time.Hour)))
		return err
	})
}
