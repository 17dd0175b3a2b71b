package local_test

import (
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/local"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

func TestContract(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.AskedForParts(t, testneeds.Sandboxes)
	sandboxtest.Run(t, func(t *testing.T) sandbox.Engine {
		return local.New(local.Options{State: t.TempDir()})
	})
}
