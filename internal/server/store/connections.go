package store

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

func connectionFields(c *hub.Connection) []field {
	return []field{
		{"provider", textOf(&c.Provider)}, {"address", textOf(&c.Address)}, content(field{"secret", textOf(&c.Key)}), {"models", documentOf(&c.Models)},
		{"usual", textOf(&c.Default)}, {"changed", moment{&c.Changed}},
	}
}

// Connections implements hub.ConnectionStore. The one changed last comes first.
func (s *Store) Connections(ctx context.Context) ([]hub.Connection, error) {
	return all(ctx, s, connectionFields, "FROM connections ORDER BY changed DESC, provider")
}

// SetConnection implements hub.ConnectionStore.
func (s *Store) SetConnection(ctx context.Context, provider string, change func(*hub.Connection) error) (c hub.Connection, err error) {
	err = s.base.write(ctx, func(ctx context.Context, q queryer) error {
		// The row is made first, so that two who set it wait for each other.
		c = hub.Connection{Provider: provider}
		if err := insert(ctx, q, "connections", connectionFields(&c), "ON CONFLICT (provider) DO NOTHING"); err != nil {
			return err
		}
		if c, err = one(ctx, q, connectionFields, "FROM connections WHERE provider = $1"+s.dialect.forUpdate, clean(provider)); err != nil {
			return err
		}
		if err := change(&c); err != nil {
			return err
		}
		var where filter
		where.add("provider = ?", clean(provider))
		_, err := update(ctx, q, "connections", connectionFields(&c), where)
		return err
	})
	return c, err
}

// DeleteConnection implements hub.ConnectionStore.
func (s *Store) DeleteConnection(ctx context.Context, provider string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		done, err := q.ExecContext(ctx, "DELETE FROM connections WHERE provider = $1", clean(provider))
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err == nil && n == 0 {
			return missing(problem.ConnectionNotFound)
		}
		return err
	})
}
