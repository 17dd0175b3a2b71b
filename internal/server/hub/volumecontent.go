package hub

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/machine/volume"
	"cove/internal/server/auth"
)

// UseVolume calls use with what is in a volume, without a sandbox. path is for the audit log, in which changes are. Needs auth.FilesRead, and for changes auth.FilesWrite. Problems:
// volumes_absent, volume_not_found, volume_elsewhere, volume_full, quota_disk, and what use returns.
func (h *Hub) UseVolume(ctx context.Context, who auth.Principal, id, path string, changes bool, use func(c *volume.Content) error) error {
	err := who.Require(auth.FilesRead)
	if err == nil && changes {
		err = who.Require(auth.FilesWrite)
	}
	if err == nil {
		err = h.useVolume(ctx, who, id, changes, use)
	}
	if changes {
		h.work.WriteAudit(ctx, who, "volume.change", id, path, err)
	}
	return err
}

func (h *Hub) useVolume(ctx context.Context, who auth.Principal, id string, changes bool, use func(c *volume.Content) error) error {
	folders, err := h.volumeFolders()
	if err != nil {
		return err
	}
	v, err := h.work.Store.Volume(ctx, who.Project, id)
	if err == nil {
		err = h.volumeHere(v)
	}
	if err == nil && changes {
		err = h.MayStore(ctx, who.Project, who.Key, 0)
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
		h.mu.Lock()
		if h.mounted == nil {
			h.mounted = map[[2]string]bool{}
		}
		h.mounted[[2]string{v.Project, v.ID}] = true // it is counted soon
		h.mu.Unlock()
	}
	return err
}

// MayGrow returns how many bytes more a volume may hold, at most so many.
func (h *Hub) MayGrow(ctx context.Context, who auth.Principal, id string, most int64) (int64, error) {
	folders, err := h.volumeFolders()
	if err != nil {
		return 0, err
	}
	v, err := h.work.Store.Volume(ctx, who.Project, id)
	if err != nil {
		return 0, err
	}
	taken, err := folders.Measure(v.Project, v.ID)
	if err != nil {
		return 0, err
	}
	if taken.Above(h.o.Limits.Volume) {
		return 0, problem.New(problem.VolumeFull, "the volume holds as much as it may").WithHint("delete files in it; the operator can raise limits.volume")
	}
	if h.o.Limits.Volume > 0 {
		most = min(most, h.o.Limits.Volume-taken.Bytes)
	}
	return min(most, h.o.Limits.File), nil
}
