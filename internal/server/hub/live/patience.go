package live

import (
	"context"
	"time"

	"cove/internal/core/problem"
)

// fullPatience is how long something waits for room that its caller's other work takes.
const fullPatience = 2 * time.Minute

// Patiently does something, and does it again, for two minutes, as long as it fails with one of the given problems, which say that there is no room for it now. It returns the last error.
func Patiently(ctx context.Context, do func() error, full ...problem.Code) error {
	began := time.Now()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := do()
		if !problem.Has(err, full...) || time.Since(began) > fullPatience {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}
