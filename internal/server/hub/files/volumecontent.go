package files

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/machine/volume"
	"cove/internal/server/auth"
)

// UseVolume calls use with what is in a volume, without a sandbox. path is for the audit log, in which changes are. Needs auth.FilesRead, and for changes auth.FilesWrite. Problems:
// volumes_absent, volume_not_found, volume_elsewhere, volume_full, quota_disk, and what use returns.
func (l *Library) UseVolume(ctx context.Context, who auth.Principal, id, path string, changes bool, use func(c *volume.Content) error) error {
	err := who.Require(auth.FilesRead)
	if err == nil && changes {
		err = who.Require(auth.FilesWrite)
	}
	if err == nil {
		err = l.useVolume(ctx, who, id, changes, use)
	}
	if changes {
		l.work.WriteAudit(ctx, who, "volume.change", id, path, err)
	}
	return err
}

func (l *Library) useVolume(ctx context.Context, who auth.Principal, id string, changes bool, use func(c *volume.Content) error) error {
	folders, err := l.volumeFolders()
	if err != nil {
		return err
	}
	v, err := l.work.Store.Volume(ctx, who.Project, id)
	if err == nil {
		err = l.volumeHere(v)
	}
	if err == nil && changes {
		err = l.meter.MayStore(ctx, who.Project, who.Key, 0)
	}
	if err != nil {
		return err
	}
	c, err := folders.Open(v.Project, v.ID)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	err = use(c)
	if changes {
		l.mu.Lock()
		if l.mounted == nil {
			l.mounted = map[[2]string]bool{}
		}
		l.mounted[[2]string{v.Project, v.ID}] = true // it is counted soon
		l.mu.Unlock()
	}
	return err
}

// MayGrow returns how many bytes more a volume may hold, at most so many.
func (l *Library) MayGrow(ctx context.Context, who auth.Principal, id string, most int64) (int64, error) {
	folders, err := l.volumeFolders()
	if err != nil {
		return 0, err
	}
	v, err := l.work.Store.Volume(ctx, who.Project, id)
	if err != nil {
		return 0, err
	}
	taken, err := folders.Measure(v.Project, v.ID)
	if err != nil {
		return 0, err
	}
	if taken.Above(l.o.MostVolume) {
		return 0, problem.New(problem.VolumeFull, "the volume holds as much as it may").WithHint("delete files in it; the operator can raise limits.volume")
	}
	if l.o.MostVolume > 0 {
		most = min(most, l.o.MostVolume-taken.Bytes)
	}
	return min(most, l.o.MostFile), nil
}
