package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/server/hub"
)

// mostPairs bounds a filter.
const mostPairs = 16

// longestNameKey bounds what names are found by; PostgreSQL takes no index entries of several kilobytes.
const longestNameKey = 256

func sessionRecord() record[hub.Session] {
	return record[hub.Session]{problem.SessionNotFound, "sessions", sessionFields}
}

func nameKey(name string) []byte {
	key := []byte(clean(name))
	return key[:min(len(key), longestNameKey)]
}

// after is the least text of bytes that is above all that begin with prefix; nil when there is none.
func after(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return end
}

// pairKey is what a name and value of metadata are found by.
func pairKey(sealer *seal.Sealer, name, value string) []byte {
	return sealer.Sum("metadata", fmt.Sprintf("%d:%s%s", len(clean(name)), clean(name), clean(value)))[:16]
}

// AddSession implements hub.SessionStore.
func (s *Store) AddSession(ctx context.Context, n hub.Session) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		for _, m := range n.Volumes {
			if err := s.holdVolume(ctx, q, n.Project, m.Volume); err != nil {
				return err
			}
		}
		if err := insert(ctx, q, "sessions", sessionFields(&n), ""); err != nil {
			return err
		}
		return addPairs(ctx, q, &n)
	})
}

func addPairs(ctx context.Context, q queryer, n *hub.Session) error {
	for _, name := range slices.Sorted(maps.Keys(n.Metadata)) {
		_, err := q.ExecContext(ctx, "INSERT INTO session_pairs (session_id, project, pair) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
			n.ID, n.Project, pairKey(sealerOf(q), name, n.Metadata[name]))
		if err != nil {
			return err
		}
	}
	return nil
}

// Session implements hub.SessionStore.
func (s *Store) Session(ctx context.Context, project, id string) (hub.Session, error) {
	return get(ctx, s, problem.SessionNotFound, sessionFields, "FROM sessions WHERE id = $1 AND project = $2", clean(id), project)
}

// Sessions implements hub.SessionStore.
func (s *Store) Sessions(ctx context.Context, project string, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error) {
	if len(f.Meta) > mostPairs {
		return hub.Listing[hub.Session]{}, problem.New(problem.BadFilter, "a filter names at most "+strconv.Itoa(mostPairs)+" pairs of metadata").
			WithHint("ask for fewer")
	}
	w, err := s.sessionFilter(ctx, project, f)
	if err != nil {
		return hub.Listing[hub.Session]{}, err
	}
	return list(ctx, s, order[hub.Session]{
		table: "sessions", fields: sessionFields, by: "created",
		at: func(n *hub.Session) (time.Time, string) { return n.Created, n.ID },
	}, w, p)
}

// sessionFilter is the conditions of a list. Names that are sealed are found by reading all of the project's.
func (s *Store) sessionFilter(ctx context.Context, project string, f hub.SessionFilter) (filter, error) {
	if s.sealer == nil || f.Name == "" {
		return sessionFilter(s.sealer, project, f), nil
	}
	name := clean(f.Name)
	f.Name = ""
	w := sessionFilter(s.sealer, project, f)
	type named struct{ id, name string }
	some, err := all(ctx, s, func(n *named) []field {
		return []field{{"id", textOf(&n.id)}, content(field{"name", textOf(&n.name)})}
	}, "FROM sessions"+w.where(), w.args...)
	ids := []string{""}
	for _, n := range some {
		if strings.HasPrefix(n.name, name) && len(ids) < mostNamed {
			ids = append(ids, n.id)
		}
	}
	w.among("id", ids)
	return w, err
}

// mostNamed bounds how many sessions of a name are found where names are sealed.
const mostNamed = 10_000

func sessionFilter(sealer *seal.Sealer, project string, f hub.SessionFilter) filter {
	var w filter
	key := nameKey(f.Name)
	column, gone := func(name string) string { return name }, "gone"
	if len(key) > 0 || len(f.Meta) > 0 {
		// Few sessions have the name or the metadata. SQLite would still go through all of the project's, because an index has those in order, if the
		// other conditions were ones that an index can answer.
		column, gone = func(name string) string { return name + " || ''" }, "gone + 0"
	}
	w.add(column("project")+" = ?", project)
	if f.State == "" {
		w.add(gone + " = 0")
	} else {
		w.add(column("state")+" = ?", clean(string(f.State)))
	}
	w.is(column("user_id"), clean(f.User))
	if len(key) > 0 {
		w.add("id IN (SELECT id FROM sessions WHERE project = ? AND name_key >= ? AND name_key < ?)", project, key, after(key))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Meta)) {
		w.add("id IN (SELECT session_id FROM session_pairs WHERE project = ? AND pair = ?)", project, pairKey(sealer, name, f.Meta[name]))
	}
	return w
}

// UpdateSession implements hub.SessionStore.
func (s *Store) UpdateSession(ctx context.Context, project, id string, change func(*hub.Session) error) (hub.Session, error) {
	var had map[string]string
	return modify(ctx, s, sessionRecord(), owned(project, id), func(n *hub.Session) error {
		had = maps.Clone(n.Metadata)
		return change(n)
	}, func(ctx context.Context, q queryer, n *hub.Session) error {
		if maps.Equal(had, n.Metadata) {
			return nil
		}
		if _, err := q.ExecContext(ctx, "DELETE FROM session_pairs WHERE session_id = $1", n.ID); err != nil {
			return err
		}
		return addPairs(ctx, q, n)
	})
}

func owned(project, id string) filter {
	var f filter
	f.add("id = ?", clean(id))
	f.add("project = ?", project)
	return f
}

// SessionsWhere implements hub.SessionStore. The longest unused come first.
func (s *Store) SessionsWhere(ctx context.Context, w hub.Where, limit int) ([]hub.Session, error) {
	if len(w.States) == 0 {
		w.States = []hub.SessionState{hub.SessionActive, hub.SessionPaused, hub.SessionLost}
	}
	states := make([]any, len(w.States))
	for i, state := range w.States {
		states[i] = string(state)
	}
	var f filter
	f.add("state IN (?"+strings.Repeat(", ?", len(states)-1)+")", states...)
	if w.Home != "" {
		f.add("(home = ? OR home = '')", w.Home)
	}
	if w.Reach != "" {
		f.add("(home = ? OR home = '' OR NOT EXISTS (SELECT 1 FROM owners WHERE owners.home = sessions.home))", w.Reach)
	}
	if w.Free {
		f.add("(owner = ? OR "+ownerDead("sessions")+")", w.By)
	}
	if w.InMemory {
		f.add("owner = ?", w.By)
	}
	if !w.UsedUntil.IsZero() {
		f.add("used <= ?", micros(w.UsedUntil))
	}
	if !w.ExpiredBy.IsZero() {
		f.add("expires > 0 AND expires <= ?", micros(w.ExpiredBy))
	}
	return all(ctx, s, sessionFields, "FROM sessions"+f.where()+" ORDER BY used, id LIMIT "+strconv.Itoa(max(limit, 0)), f.args...)
}

// AbandonedSessions implements hub.SessionStore.
func (s *Store) AbandonedSessions(ctx context.Context, home string, limit int) ([]hub.Session, error) {
	return all(ctx, s, sessionFields, "FROM sessions WHERE owner <> '' AND gone = 0 AND (home IN ('', $1) OR state = $2) AND "+ownerDead("sessions")+
		" ORDER BY used, id LIMIT "+strconv.Itoa(max(limit, 0)), home, string(hub.SessionActive))
}

// HeldDisk implements hub.SessionStore.
func (s *Store) HeldDisk(ctx context.Context, project string) (int64, error) {
	var sum int64
	err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
		return q.QueryRowContext(ctx, `SELECT CAST(COALESCE((SELECT SUM(disk) FROM sessions WHERE project = $1 AND gone = 0), 0)
			+ COALESCE((SELECT SUM(size) FROM volumes WHERE project = $1), 0)
			+ COALESCE((SELECT SUM(size) FROM files WHERE project = $1), 0)
			+ COALESCE((SELECT SUM(size) FROM uploads WHERE project = $1 AND file = ''), 0) AS BIGINT)`, project).Scan(&sum)
	})
	return sum, err
}
