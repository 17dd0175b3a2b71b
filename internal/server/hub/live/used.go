package live

import (
	"context"
	"time"

	"cove/internal/server/auth"
	"cove/internal/sessions/ondisk"
)

// Used is what a session uses at a moment.
type Used struct {
	CPU    time.Duration // since it was loaded into memory, on all processors together, with the engine's own work for it
	Memory int64         // bytes that only this session takes
	Known  bool          // false of a session that is not in memory here, or whose engine does not tell
}

// Used returns what a session uses now. It does not load the session, nor count as a use. Needs auth.SessionsRead.
func (m *Manager) Used(ctx context.Context, who auth.Principal, id string) (Used, error) {
	row, err := m.Session(ctx, who, id)
	if err != nil {
		return Used{}, err
	}
	m.mu.Lock()
	var live Live
	if s := m.seats[id]; s != nil {
		live = s.Live
	}
	m.mu.Unlock()
	u := Used{Memory: row.Taken}
	if m, ok := live.(ondisk.Meter); ok { // without mu: the system is asked
		u.CPU, u.Known = m.CPU()
	}
	return u, nil
}
