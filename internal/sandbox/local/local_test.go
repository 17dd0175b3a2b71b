package local_test

import (
	"testing"

	"cove/internal/sandbox"
	"cove/internal/sandbox/local"
	"cove/internal/sandbox/sandboxtest"
	"cove/internal/testneeds"
)

func TestContract(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.AskedForParts(t, testneeds.Sandboxes)
	sandboxtest.Run(t, func(t *testing.T) sandbox.Engine {
		return local.New(local.Options{State: t.TempDir()})
	})
}
