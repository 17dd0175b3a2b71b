package session

import (
	"testing"
	"time"
)

// HurryVariables gives variables that are taken along little time. No other test of that may run at the same time.
func HurryVariables(t *testing.T) {
	was := variablesTime
	variablesTime = 10 * time.Second
	t.Cleanup(func() { variablesTime = was })
}
