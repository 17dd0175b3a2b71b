package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweepWait is how long a sweep waits for others to finish what they put together; what it does not remove, the next one does.
const sweepWait = 5 * time.Second

// Sweep removes what killed makers left behind, and layers and wheels that nobody has used for keep, but for the layers that are needed
// and their wheels. What a living process makes stays. The store does not know which layers living sandboxes have: they are needed, or keep is longer than
// any sandbox lives. Uses are noted to the hour, so keep should be several.
func (s *Store) Sweep(needed []string, keep time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), sweepWait)
	defer cancel()
	guard, err := acquire(ctx, filepath.Join(s.dir, "lock"), unix.LOCK_EX, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clear away packages: %w", err)
	}
	w := &sweep{store: s, needed: needed, before: time.Now().Add(-keep)}
	err = w.collect()
	guard.Close()
	for _, d := range w.removable { // out of everybody's sight by now
		err = errors.Join(err, d.remove())
	}
	if err != nil {
		return fmt.Errorf("clear away packages: %w", err)
	}
	return nil
}

// sweep is one sweep. Its owner holds the store's lock alone while it collects.
type sweep struct {
	store     *Store
	needed    []string
	before    time.Time
	removable []*workspace
	attic     *workspace // where things go that are removed
	moved     int
}

func (w *sweep) collect() error {
	if err := w.collectWork(); err != nil {
		return err
	}
	var err error
	if w.attic, err = w.store.newWorkspace(); err != nil {
		return err
	}
	w.removable = append(w.removable, w.attic)
	used, err := w.collectLayers()
	if err != nil {
		return err
	}
	if err := w.collectWheels(used); err != nil {
		return err
	}
	return w.collectLocks()
}

// collectWork takes the folders whose owners are dead.
func (w *sweep) collectWork() error {
	names, err := w.store.list("work")
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(w.store.dir, "work", name)
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if !info.IsDir() { // a secret that was never used
			if time.Since(info.ModTime()) > time.Hour {
				_ = os.Remove(path) // the next sweep tries again
			}
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if lockFile(f, unix.LOCK_EX) != nil {
			f.Close()
			continue
		}
		w.removable = append(w.removable, &workspace{dir: path, lock: f})
	}
	return nil
}

// collectLayers takes the layers that are not used and returns the keys of the wheels of the others.
func (w *sweep) collectLayers() (used map[string]bool, err error) {
	used = map[string]bool{}
	names, err := w.store.list("manifests")
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		name := strings.TrimSuffix(file, ".json")
		m, last, err := w.store.read(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errDamaged) {
			return nil, fmt.Errorf("read the manifest of layer %s: %w", name, err) // it may be in use, as may what it is made of
		}
		if slices.Contains(w.needed, name) || err == nil && (!last.Before(w.before) || w.busy(name)) {
			for _, wheel := range m.Wheels {
				used[wheelKey(wheel, m.Tag)] = true
			}
			continue
		}
		if err := w.take(w.store.layerPath(name)); err != nil {
			return nil, err
		}
		if err := w.take(filepath.Join(w.store.dir, "manifests", file)); err != nil {
			return nil, err
		}
	}
	return used, w.collectNameless()
}

// collectNameless takes folders of layers that no manifest is about.
func (w *sweep) collectNameless() error {
	names, err := w.store.list("layers")
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := os.Lstat(w.store.manifestPath(name)); !errors.Is(err, os.ErrNotExist) || slices.Contains(w.needed, name) {
			continue
		}
		if err := w.take(w.store.layerPath(name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *sweep) collectWheels(used map[string]bool) error {
	names, err := w.store.list("wheels")
	if err != nil {
		return err
	}
	for _, key := range names {
		info, err := os.Stat(filepath.Join(w.store.wheelPath(key), contentsName))
		unknown := err != nil && !errors.Is(err, os.ErrNotExist)
		if unknown || err == nil && isWheelKey(key) && (used[key] || !info.ModTime().Before(w.before)) || w.busy(key) {
			continue
		}
		if err := w.take(w.store.wheelPath(key)); err != nil {
			return err
		}
	}
	return nil
}

// collectLocks removes the lock files that no process holds. A process that waits for one notices, see tryLock.
func (w *sweep) collectLocks() error {
	names, err := w.store.list("locks")
	if err != nil {
		return err
	}
	for _, name := range names {
		path := w.store.lockPath(name)
		if f, err := tryLock(path, unix.LOCK_EX); err == nil {
			_ = os.Remove(path) // the next sweep tries again
			f.Close()
		}
	}
	return nil
}

// busy says that somebody is making the layer or wheel of that name.
func (w *sweep) busy(name string) bool {
	if _, err := os.Lstat(w.store.lockPath(name)); err != nil {
		return false
	}
	f, err := tryLock(w.store.lockPath(name), unix.LOCK_EX)
	if err != nil {
		return true
	}
	f.Close()
	return false
}

// take moves something out of the way.
func (w *sweep) take(path string) error {
	w.moved++
	err := os.Rename(path, w.attic.path(fmt.Sprintf("%d", w.moved)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
