package daytona

import (
	"sync"
	"time"

	"cove/internal/server/auth"
)

// farewells are sandboxes that were deleted by clients that look at what they have deleted once more and take it for a failure that it is not there: those from 0.27 to 0.103.
// Each is shown once.
type farewells struct {
	mu  sync.Mutex
	all map[string]farewell
}

type farewell struct {
	at    time.Time
	shown map[string]any
}

const (
	mostFarewells = 1000
	farewellTime  = time.Minute
)

func farewellKey(who auth.Principal, id string) string { return who.Project + " " + id }

func (f *farewells) add(who auth.Principal, id string, shown map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil || len(f.all) >= mostFarewells {
		f.all = map[string]farewell{}
	}
	f.all[farewellKey(who, id)] = farewell{time.Now(), shown}
}

// take returns a sandbox that was deleted a moment ago, once; nil: there is none.
func (f *farewells) take(who auth.Principal, id string) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := farewellKey(who, id)
	one, ok := f.all[key]
	delete(f.all, key)
	if !ok || time.Since(one.at) > farewellTime {
		return nil
	}
	return one.shown
}
