package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/ownership"
)

var _ ownership.Store = (*Store)(nil)

func ownerFields(r *ownership.Record) []field {
	return []field{
		{"id", textOf(&r.ID)}, {"home", textOf(&r.Home)}, {"epoch", countOf(&r.Epoch)}, {"since", moment{&r.Since}}, {"until", moment{&r.Until}},
		{"command", textOf(&r.Command)}, {"pid", countOf(&r.PID)}, {"host", textOf(&r.Host)}, {"boot", textOf(&r.Boot)},
	}
}

func homeFields(h *ownership.Home) []field {
	return []field{{"id", textOf(&h.ID)}, {"epoch", countOf(&h.Epoch)}, {"host", textOf(&h.Host)}}
}

// AddOwner implements ownership.Store.
func (s *Store) AddOwner(ctx context.Context, r ownership.Record, alone bool, dead []string) (ownership.Record, error) {
	err := s.base.write(ctx, func(ctx context.Context, q queryer) (err error) {
		for _, id := range dead {
			if _, err := q.ExecContext(ctx, "DELETE FROM owners WHERE id = $1", id); err != nil {
				return err
			}
		}
		if r.Epoch, err = enterHome(ctx, q, r, alone); err != nil {
			return err
		}
		if r.Since, err = s.clock(ctx, q); err != nil {
			return err
		}
		r.Until = r.Since.Add(ownership.Lease)
		return insert(ctx, q, "owners", ownerFields(&r), "")
	})
	return r, err
}

// enterHome writes the home of an owner and returns the owner's epoch. Those that register for one home wait for each other.
func enterHome(ctx context.Context, q queryer, r ownership.Record, alone bool) (epoch int64, err error) {
	h := ownership.Home{ID: r.Home, Host: r.Host}
	if !alone {
		return 0, insert(ctx, q, "homes", homeFields(&h), "ON CONFLICT (id) DO NOTHING")
	}
	h.Epoch = 1
	if err := insert(ctx, q, "homes", homeFields(&h), "ON CONFLICT (id) DO UPDATE SET epoch = homes.epoch + 1, host = EXCLUDED.host"); err != nil {
		return 0, err
	}
	if h, err = one(ctx, q, homeFields, "FROM homes WHERE id = $1", h.ID); err != nil {
		return 0, err
	}
	_, err = q.ExecContext(ctx, "DELETE FROM owners WHERE home = $1 AND epoch > 0", h.ID)
	return h.Epoch, err
}

// clock returns the database's time.
func (s *Store) clock(ctx context.Context, q queryer) (time.Time, error) {
	var now int64
	err := q.QueryRowContext(ctx, "SELECT "+s.dialect.clock).Scan(&now)
	return fromMicros(now), err
}

// RenewOwner implements ownership.Store.
func (s *Store) RenewOwner(ctx context.Context, id string) (now time.Time, err error) {
	err = s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if now, err = s.clock(ctx, q); err != nil {
			return err
		}
		done, err := q.ExecContext(ctx, "UPDATE owners SET until = $1 WHERE id = $2", micros(now.Add(ownership.Lease)), id)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); n > 0 || err != nil {
			return err
		}
		return ownership.ErrLost()
	})
	return now, err
}

// Owners implements ownership.Store.
func (s *Store) Owners(ctx context.Context) ([]ownership.Record, error) {
	return all(ctx, s, ownerFields, "FROM owners ORDER BY since, id")
}

// RemoveOwners implements ownership.Store.
func (s *Store) RemoveOwners(ctx context.Context, by string, dead []ownership.Record) (removed int, err error) {
	err = s.base.write(ctx, func(ctx context.Context, q queryer) error {
		removed = 0
		if err := s.alive(ctx, q, by); err != nil {
			return err
		}
		for _, r := range dead {
			done, err := q.ExecContext(ctx, "DELETE FROM owners WHERE id = $1 AND until = $2", r.ID, micros(r.Until))
			if err != nil {
				return err
			}
			n, err := done.RowsAffected()
			if err != nil {
				return err
			}
			removed += int(n)
		}
		return nil
	})
	return removed, err
}

// alive is owner_lost unless the owner lives, which it does until the transaction has ended.
func (s *Store) alive(ctx context.Context, q queryer, id string) error {
	var lives int
	err := q.QueryRowContext(ctx, "SELECT 1 FROM owners WHERE id = $1"+s.dialect.forKeyShare, id).Scan(&lives)
	if errors.Is(err, sql.ErrNoRows) {
		return ownership.ErrLost()
	}
	return err
}

// RemoveOwner implements ownership.Store.
func (s *Store) RemoveOwner(ctx context.Context, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, "DELETE FROM owners WHERE id = $1", id)
		return err
	})
}

// Owner implements hub.OwnerStore.
func (s *Store) Owner(ctx context.Context, id string) (ownership.Record, error) {
	return get(ctx, s, problem.OwnerNotFound, ownerFields, "FROM owners WHERE id = $1", clean(id))
}

// Home implements hub.OwnerStore.
func (s *Store) Home(ctx context.Context, id string) (h ownership.Home, served bool, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		if h, err = one(ctx, q, homeFields, "FROM homes WHERE id = $1", clean(id)); err != nil {
			return found(err, problem.HomeNotFound)
		}
		return q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM owners WHERE home = $1)", h.ID).Scan(&served)
	})
	return h, served, err
}

// Others implements hub.OwnerStore.
func (s *Store) Others(ctx context.Context, id string) (n int, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		return q.QueryRowContext(ctx, "SELECT COUNT(*) FROM owners WHERE id <> $1", id).Scan(&n)
	})
	return n, err
}

// Neighbours implements hub.OwnerStore.
func (s *Store) Neighbours(ctx context.Context, id, home string) (n int, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		return q.QueryRowContext(ctx, "SELECT COUNT(*) FROM owners WHERE home = $1 AND id <> $2", home, id).Scan(&n)
	})
	return n, err
}

// By returns the store as an owner may use it: as soon as the owner is dead, nothing that it writes is taken (a problem with code "owner_lost"), and told
// is called. Who declares an owner dead waits for the writes that it is about.
func (s *Store) By(id string, told func()) *Store {
	by := *s
	by.owner = id
	by.base = fenced{base: s.base, owner: id, alive: s.alive, told: told}
	return &by
}

// fenced is what an owner writes through.
type fenced struct {
	base
	owner string
	alive func(ctx context.Context, q queryer, id string) error
	told  func()
}

func (f fenced) write(ctx context.Context, do func(context.Context, queryer) error) error {
	err := f.base.write(ctx, func(ctx context.Context, q queryer) error {
		if err := f.alive(ctx, q, f.owner); err != nil {
			return err
		}
		return do(ctx, q)
	})
	if problem.Has(err, problem.OwnerLost) && f.told != nil {
		f.told()
	}
	return err
}
