package local_test

import (
	"testing"

	"cove/internal/sandbox"
	"cove/internal/sandbox/local"
	"cove/internal/sandbox/sandboxtest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(t *testing.T) sandbox.Engine {
		return local.New(local.Options{State: t.TempDir()})
	})
}
