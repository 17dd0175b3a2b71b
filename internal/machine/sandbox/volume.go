package sandbox

import (
	"fmt"

	"cove/internal/core/problem"
)

// VolumeMount is a folder of this host that sandboxes write to, several at the same time, and that outlives them. What is in it belongs to the user of sandboxed code.
type VolumeMount struct {
	Folder string // absolute; VolumeKeeper.OwnVolume has had it, or what it is in
	Sub    string // a folder in it, that is shown alone: a path without links, ".." and slashes around it; "": all of it
	Target string // where it is inside
	Most   int64  // bytes that may be in it; 0: no bound. A sandbox that has it and is there when it comes to hold more ends, with a problem with code "volume_full"
}

// VolumeKeeper is an Engine whose sandboxes can have volumes.
type VolumeKeeper interface {
	Engine
	// WithoutVolumes returns why sandboxes cannot have volumes here; "" means that they can.
	WithoutVolumes() string
	// OwnVolume gives an empty folder to whom the content of volumes in it shall belong. All volumes of a sandbox have the same owner.
	OwnVolume(folder string) error
}

// VolumesOf returns an engine as one whose sandboxes can have volumes, or a problem with code "volumes_absent".
func VolumesOf(e Engine) (VolumeKeeper, error) {
	k, ok := e.(VolumeKeeper)
	why := "the engine " + e.Name() + " has none"
	if ok {
		why = k.WithoutVolumes()
	}
	if why == "" {
		return k, nil
	}
	return nil, problem.New(problem.VolumesAbsent, "there are no volumes on this server: "+why).WithHint("put files into a session instead; the operator can run cove serve as root")
}

// PlainMounts returns what a sandbox of an engine is shown that has no root of sessions; rootless says why, in a sentence. Problems: root_absent, and those of VolumesOf and HostMounts.
func PlainMounts(e Engine, spec Spec, rootless string) ([]HostMount, error) {
	if spec.Limits.System > 0 {
		return nil, problem.New(problem.RootAbsent, rootless).WithHint("use --engine gvisor")
	}
	if len(spec.Volumes) > 0 {
		if _, err := VolumesOf(e); err != nil {
			return nil, err
		}
	}
	mounts, err := HostMounts(spec.Mounts)
	if err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	return mounts, nil
}
