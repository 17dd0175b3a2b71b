package deps_test

import (
	"strings"
	"testing"

	"cove/internal/python/deps/indextest"
)

// TestOldVersionsAreNoWayOut has a package whose newest version needs another numpy than the one that is imported, while an older one does not.
func TestOldVersionsAreNoWayOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		age     int // days between the old version and the newest
		version string
		restart bool
	}{
		"years":  {3000, "4.0", true},
		"months": {200, "3.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain("numpy", "2.3"))
			w.index.Add(indextest.Wheel{Name: "numpy", Version: "1.26"},
				indextest.Wheel{Name: "gensim", Version: "4.0", Require: []string{"numpy<2"}, Listed: indextest.Listed{Uploaded: ago(100 * day)}},
				indextest.Wheel{Name: "gensim", Version: "3.0", Listed: indextest.Listed{Uploaded: ago((100+1)*day).AddDate(0, 0, -tt.age)}})
			r := code("gensim")
			r.Loaded = []string{"numpy"}
			for range 2 { // the second answer is remembered
				p := w.provide(r)
				if got := brought(p); !strings.HasPrefix(got, "gensim "+tt.version) || (p.Restart != "") != tt.restart {
					t.Errorf("got %s: %+v", got, p)
				}
				if tt.restart && !strings.HasPrefix(p.Restart, "numpy 2.3 is imported") {
					t.Errorf("the reason is %q", p.Restart)
				}
			}
		})
	}
}
