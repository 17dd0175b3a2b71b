package layer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Remove removes a layer and keeps its wheels, for measuring how long making it again takes. It does not ask whether a sandbox has it.
func (s *Store) Remove(ctx context.Context, name string) error {
	if filepath.Base(name) != name || name == "." || name == ".." {
		return fmt.Errorf("remove layer %q: not a layer's name", name)
	}
	guard, err := acquire(ctx, filepath.Join(s.dir, "lock"), unix.LOCK_EX, nil)
	if err != nil {
		return fmt.Errorf("remove layer %s: %w", name, err)
	}
	defer guard.Close()
	if err := os.Remove(s.manifestPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove layer %s: %w", name, err)
	}
	if err := os.RemoveAll(s.layerPath(name)); err != nil {
		return fmt.Errorf("remove layer %s: %w", name, err)
	}
	return nil
}
