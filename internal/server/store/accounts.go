package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// Alone implements auth.Store.
func (s *Store) Alone(ctx context.Context, do func(context.Context, auth.Store) error) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if s.dialect.alone != "" {
			if _, err := q.ExecContext(ctx, s.dialect.alone); err != nil {
				return err
			}
		}
		return do(ctx, &Store{base: within{q}, dialect: s.dialect, sealer: s.sealer})
	})
}

// AddKey implements auth.Store.
func (s *Store) AddKey(ctx context.Context, k auth.Key) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error { return insert(ctx, q, "access_keys", keyFields(&k), "") })
}

// Key implements auth.Store.
func (s *Store) Key(ctx context.Context, id string) (auth.Key, error) {
	return get(ctx, s, problem.KeyNotFound, keyFields, "FROM access_keys WHERE id = $1", clean(id))
}

// KeyOf implements auth.Store.
func (s *Store) KeyOf(ctx context.Context, subject string) (auth.Key, error) {
	if subject == "" { // of all keys that have a text
		return auth.Key{}, problem.New(problem.KeyNotFound, "there is no such key")
	}
	return get(ctx, s, problem.KeyNotFound, keyFields, "FROM access_keys WHERE subject = $1 ORDER BY CASE WHEN revoked = 0 THEN 0 ELSE 1 END, created DESC, id LIMIT 1", clean(subject))
}

// Keys implements auth.Store. The oldest come first; "" is all projects.
func (s *Store) Keys(ctx context.Context, project string) ([]auth.Key, error) {
	var f filter
	f.is("project", project)
	return all(ctx, s, keyFields, "FROM access_keys"+f.where()+" ORDER BY created, id", f.args...)
}

// ChangeKey implements auth.Store.
func (s *Store) ChangeKey(ctx context.Context, id string, change func(*auth.Key) error) (auth.Key, error) {
	return modify(ctx, s, record[auth.Key]{problem.KeyNotFound, "access_keys", keyFields}, byID(id), change, nil)
}

func byID(id string) filter {
	var f filter
	f.add("id = ?", clean(id))
	return f
}

// taken says of what there is one already.
func taken(err error, code problem.InvalidCode, name string) error {
	if problem.Has(err, problem.AlreadyExists) {
		return problem.New(code, "there is a "+strings.TrimSuffix(string(code), "_exists")+" named "+name+" already").WithHint("take another name")
	}
	return err
}

// AddUser implements auth.Store. Problems: user_exists.
func (s *Store) AddUser(ctx context.Context, u auth.User) error {
	err := s.base.write(ctx, func(ctx context.Context, q queryer) error { return insert(ctx, q, "users", userFields(&u), "") })
	return taken(err, problem.UserExists, u.Name)
}

// byIDOrName finds by id first: nobody takes another's place with a name that is an id.
const byIDOrName = " WHERE id = $1 OR name = $1 ORDER BY CASE WHEN id = $1 THEN 0 ELSE 1 END LIMIT 1"

// User implements auth.Store.
func (s *Store) User(ctx context.Context, idOrName string) (auth.User, error) {
	return get(ctx, s, problem.UserNotFound, userFields, "FROM users"+byIDOrName, clean(idOrName))
}

// Users implements auth.Store.
func (s *Store) Users(ctx context.Context) ([]auth.User, error) {
	return all(ctx, s, userFields, "FROM users ORDER BY created, id")
}

// ChangeUser implements auth.Store. Problems: user_exists.
func (s *Store) ChangeUser(ctx context.Context, id string, change func(*auth.User) error) (auth.User, error) {
	u, err := modify(ctx, s, record[auth.User]{problem.UserNotFound, "users", userFields}, byID(id), change, nil)
	return u, taken(err, problem.UserExists, u.Name)
}

// DeleteUser implements auth.Store.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if _, err := one(ctx, q, userFields, "FROM users WHERE id = $1"+s.dialect.forUpdate, clean(id)); err != nil {
			return found(err, problem.UserNotFound)
		}
		return each(ctx, q, clean(id), "DELETE FROM access_keys WHERE user_id = $1", "DELETE FROM members WHERE user_id = $1",
			"DELETE FROM browsers WHERE user_id = $1", "DELETE FROM sign_in_codes WHERE user_id = $1", "DELETE FROM passwords WHERE user_id = $1",
			"DELETE FROM invitations WHERE user_id = $1 OR maker = $1",
			"DELETE FROM users WHERE id = $1")
	})
}

// AddProject implements auth.Store. Problems: project_exists.
func (s *Store) AddProject(ctx context.Context, p auth.Project) error {
	err := s.base.write(ctx, func(ctx context.Context, q queryer) error { return insert(ctx, q, "projects", projectFields(&p), "") })
	return taken(err, problem.ProjectExists, p.Name)
}

// Project implements auth.Store.
func (s *Store) Project(ctx context.Context, idOrName string) (auth.Project, error) {
	return get(ctx, s, problem.ProjectNotFound, projectFields, "FROM projects"+byIDOrName, clean(idOrName))
}

// Projects implements auth.Store.
func (s *Store) Projects(ctx context.Context) ([]auth.Project, error) {
	return all(ctx, s, projectFields, "FROM projects ORDER BY created, id")
}

// ChangeProject implements auth.Store. Problems: project_exists.
func (s *Store) ChangeProject(ctx context.Context, id string, change func(*auth.Project) error) (auth.Project, error) {
	p, err := modify(ctx, s, record[auth.Project]{problem.ProjectNotFound, "projects", projectFields}, byID(id), change, nil)
	return p, taken(err, problem.ProjectExists, p.Name)
}

// SetMember implements auth.Store. Problems: user_not_found, project_not_found.
func (s *Store) SetMember(ctx context.Context, m auth.Membership) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if m.Role == "" {
			_, err := q.ExecContext(ctx, "DELETE FROM members WHERE project = $1 AND user_id = $2", clean(m.Project), clean(m.User))
			return err
		}
		if _, err := one(ctx, q, userFields, "FROM users WHERE id = $1", clean(m.User)); err != nil {
			return found(err, problem.UserNotFound)
		}
		if _, err := one(ctx, q, projectFields, "FROM projects WHERE id = $1", clean(m.Project)); err != nil {
			return found(err, problem.ProjectNotFound)
		}
		return insert(ctx, q, "members", memberFields(&m), "ON CONFLICT (project, user_id) DO UPDATE SET role = excluded.role")
	})
}

// Role implements auth.Store.
func (s *Store) Role(ctx context.Context, project, user string) (auth.Role, error) {
	var role auth.Role
	err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
		m, err := one(ctx, q, memberFields, "FROM members WHERE project = $1 AND user_id = $2", clean(project), clean(user))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		role = m.Role
		return err
	})
	return role, err
}

// Members implements auth.Store.
func (s *Store) Members(ctx context.Context, project string) ([]auth.Membership, error) {
	return all(ctx, s, memberFields, "FROM members WHERE project = $1 ORDER BY user_id", clean(project))
}
