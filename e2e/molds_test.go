package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/machine/snapshot"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// TestSoakMolds makes the memory of interpreters common to sessions, one after the other, with one to eight threads of the numerical libraries. The sessions compute what they should.
func TestSoakMolds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	env := testneeds.Environment(t, pyenv.Standard)
	e := gvisor.New(gvisor.Options{State: t.TempDir(), Shared: filepath.Join(t.TempDir(), "shared"), Executable: sandboxtest.Binary(t)})
	const values = `(bool((a @ a).trace() == sum(int(x) * int(y) for x, y in zip(a.ravel(), a.T.ravel()))),
 df.groupby("k").v.sum().tolist() == [sum(i // 5 for i in range(k, 200000, 10)) for k in range(10)],
 pc.sum(pa.array(range(100000))).as_py(), sorted(df.k.astype(str).unique()) == list("0123456789"))`
	const want = "(True, True, 4999950000, True)"
	for round := range cycles(t, 2, 20) {
		threads := 1 << (round % 4)
		mold, err := session.Open(t.Context(), session.Options{Engine: e, Env: env, Mold: true})
		if err != nil {
			t.Fatalf("%+v", err)
		}
		t.Cleanup(func() { _ = mold.Close(context.Background()) })
		evaluate(t, mold, fmt.Sprintf("import os; os.environ.update(OMP_NUM_THREADS='%[1]d', OPENBLAS_NUM_THREADS='%[1]d')", threads))
		evaluate(t, mold, `import numpy as np, pandas as pd, pyarrow as pa, pyarrow.compute as pc
a = (np.arange(300 * 300) % 7).reshape(300, 300).astype(float)
df = pd.DataFrame({"k": np.arange(200000) % 10, "v": np.arange(200000) // 5})`)
		if got := evaluate(t, mold, values); got != want {
			t.Fatalf("before: %s", got)
		}
		if err := mold.ShareMemory(t.Context(), func(context.Context) error {
			evaluate(t, mold, values)
			return nil
		}); err != nil {
			t.Fatalf("round %d with %d threads: %+v", round, threads, err)
		}
		pids := mold.KernelPIDs()
		made, err := snapshot.Create(t.Context(), filepath.Join(t.TempDir(), "snp"), snapshot.Manifest{}, func(ctx context.Context, folder string) (sandbox.Checkpoint, error) {
			return mold.Save(ctx, folder, false)
		})
		if err != nil {
			t.Fatalf("round %d with %d threads: %+v", round, threads, err)
		}
		for range 2 {
			s, err := session.Open(t.Context(), session.Options{Engine: e, Env: env, Checkpoint: made.Checkpoint(), Kernels: pids})
			if err != nil {
				t.Fatalf("%+v", err)
			}
			if got := evaluate(t, s, values); got != want {
				t.Errorf("round %d with %d threads: %s", round, threads, got)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
