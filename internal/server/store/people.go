package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

func passwordFields(p *auth.Password) []field {
	return []field{{"user_id", textOf(&p.User)}, {"login", textOf(&p.Login)}, {"hash", textOf(&p.Hash)}, {"changed", moment{&p.Changed}}}
}

func invitationFields(i *auth.Invitation) []field {
	return []field{
		{"id", textOf(&i.ID)}, {"hash", textOf(&i.Hash)}, {"project", textOf(&i.Project)}, {"user_id", textOf(&i.User)}, {"role", textOf(&i.Role)},
		{"name", textOf(&i.Name)}, {"maker", textOf(&i.Maker)}, {"created", moment{&i.Created}}, {"expires", moment{&i.Expires}}, {"used", moment{&i.Used}},
	}
}

// SetPassword implements auth.Store. Problems: user_exists.
func (s *Store) SetPassword(ctx context.Context, p auth.Password) error {
	err := s.base.write(ctx, func(ctx context.Context, q queryer) error {
		return insert(ctx, q, "passwords", passwordFields(&p), "ON CONFLICT (user_id) DO UPDATE SET login = excluded.login, hash = excluded.hash, changed = excluded.changed")
	})
	return taken(err, problem.UserExists, p.Login)
}

// Password implements auth.Store.
func (s *Store) Password(ctx context.Context, user string) (auth.Password, error) {
	return orNone(ctx, s, passwordFields, "FROM passwords WHERE user_id = $1", clean(user))
}

// PasswordOf implements auth.Store.
func (s *Store) PasswordOf(ctx context.Context, login string) (auth.Password, error) {
	return orNone(ctx, s, passwordFields, "FROM passwords WHERE login = $1", clean(login))
}

// orNone reads a record; the zero value where there is none.
func orNone[T any](ctx context.Context, s *Store, fields func(*T) []field, from string, args ...any) (t T, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) (err error) {
		t, err = one(ctx, q, fields, from, args...)
		if errors.Is(err, sql.ErrNoRows) {
			var none T
			t, err = none, nil
		}
		return err
	})
	return t, err
}

// AddInvitation implements auth.Store.
func (s *Store) AddInvitation(ctx context.Context, i auth.Invitation) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		return insert(ctx, q, "invitations", invitationFields(&i), "")
	})
}

// Invitation implements auth.Store.
func (s *Store) Invitation(ctx context.Context, id string) (auth.Invitation, error) {
	return get(ctx, s, problem.InvitationNotFound, invitationFields, "FROM invitations WHERE id = $1", clean(id))
}

// InvitationOf implements auth.Store.
func (s *Store) InvitationOf(ctx context.Context, hash string) (auth.Invitation, error) {
	return orNone(ctx, s, invitationFields, "FROM invitations WHERE hash = $1", clean(hash))
}

// Invitations implements auth.Store. The oldest come first.
func (s *Store) Invitations(ctx context.Context, project string) ([]auth.Invitation, error) {
	return all(ctx, s, invitationFields, "FROM invitations WHERE project = $1 ORDER BY created, id", clean(project))
}

// UseInvitation implements auth.Store.
func (s *Store) UseInvitation(ctx context.Context, id string, at time.Time) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, "UPDATE invitations SET used = $1 WHERE id = $2", micros(at), clean(id))
		return err
	})
}

// DeleteInvitation implements auth.Store.
func (s *Store) DeleteInvitation(ctx context.Context, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		return each(ctx, q, clean(id), "DELETE FROM invitations WHERE id = $1")
	})
}

// Memberships implements auth.Store.
func (s *Store) Memberships(ctx context.Context, user string) ([]auth.Membership, error) {
	return all(ctx, s, memberFields, "FROM members WHERE user_id = $1 ORDER BY (SELECT created FROM projects WHERE projects.id = members.project), project", clean(user))
}
