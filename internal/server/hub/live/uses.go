package live

import (
	"context"

	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// MostUses bounds how many of a session's conversations are told with it.
const MostUses = 4

// SessionsInUse lists sessions as Sessions does, each with the conversations that use it: those used last, MostUses at most. Who may not read conversations gets
// the sessions alone.
func (m *Manager) SessionsInUse(ctx context.Context, who auth.Principal, f record.SessionFilter, p record.Page) (record.Listing[record.Session], error) {
	list, err := m.Sessions(ctx, who, f, p)
	if err != nil || who.Require(auth.ConversationsRead) != nil {
		return list, err
	}
	ids := make([]string, len(list.Items))
	for i, s := range list.Items {
		ids[i] = s.ID
	}
	uses, err := m.work.Store.SessionUses(ctx, who.Project, ids, MostUses)
	if err != nil {
		return record.Listing[record.Session]{}, err
	}
	for i, id := range ids {
		list.Items[i].Uses = uses[id]
	}
	return list, nil
}
