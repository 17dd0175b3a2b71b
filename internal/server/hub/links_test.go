package hub_test

import (
	"testing"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestLinksOfUnknownPurposes: a link that a newer server has made stands for nobody here, and not for all that its maker may do.
func TestLinksOfUnknownPurposes(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	_ = l.store.AddProject(t.Context(), auth.Project{ID: who.Project, Name: "lab"}) // it may be there
	_ = l.store.AddUser(t.Context(), auth.User{ID: who.User, Name: "ada"})
	if err := l.store.SetMember(t.Context(), auth.Membership{Project: who.Project, User: who.User, Role: auth.Owner}); err != nil {
		t.Fatal(err)
	}
	for purpose, code := range map[string]string{hub.LinkRead: "", "rule": "link_not_found"} {
		text, hash := auth.RandomCode()
		if err := l.store.AddLink(t.Context(), hub.SessionLink{ID: "lnk_" + purpose, Hash: hash, Project: who.Project, User: who.User, Session: s.ID, Purpose: purpose, Path: "a"}, 9); err != nil {
			t.Fatal(err)
		}
		_, stands, err := l.LinkOf(t.Context(), text)
		if code != "" {
			fails(t, err, code)
		} else if err != nil || len(stands.Scopes) != 1 {
			t.Errorf("%s: %+v, %v", purpose, stands, err)
		}
	}
}
