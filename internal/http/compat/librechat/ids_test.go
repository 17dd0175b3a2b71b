package librechat

import (
	"regexp"
	"testing"

	"cove/internal/core/ident"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`)
	seen := map[string]bool{}
	for range 10_000 {
		id := ident.New(ident.Session)
		theirs := foreign(id)
		back, ok := own(ident.Session, theirs)
		if !ok || back != id || !form.MatchString(theirs) || seen[theirs] {
			t.Fatalf("%s is %s, which is %s", id, theirs, back)
		}
		seen[theirs] = true
	}
	for _, bad := range []string{"", "short", "ses_06h1r0380w7w9ny974em5rcsq4", "aaaaaaaaaaaaaaaaaaaa\n", "aaaaaaaaaaaaaaaaaaaa/", "aaaaaaaaaaaaaaaaaaaaaa"} {
		if id, ok := own(ident.Session, bad); ok {
			t.Errorf("%q is %s", bad, id)
		}
	}
	if a, b := objectID("a", "b"), objectID("a", "c"); a == b || !form.MatchString(a) || !form.MatchString(newID()) {
		t.Errorf("%s, %s", a, b)
	}
}
