package sandbox

import "cove/internal/problem"

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
