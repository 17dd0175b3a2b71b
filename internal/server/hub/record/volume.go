package record

import (
	"context"
	"time"

	"cove/internal/machine/volume"
	"cove/internal/sessions/ondisk"
)

// Volume is a folder of a project that outlives sessions, and that several can have at the same time. It is on the disk of one home, and only sessions there can have it.
type Volume struct {
	ID      string // ident.Volume
	Project string
	User    string
	Key     string // that made it
	Name    string // unique in the project
	Created time.Time
	Size    int64 // bytes, as it was counted last
	Home    string
}

// VolumeMount says where a session has a volume.
type VolumeMount struct {
	Volume string `json:"volume"` // its id; of a NewSession, or its name
	Path   string `json:"path"`   // absolute
	Sub    string `json:"sub,omitempty"`
}

// VolumeStore keeps volumes. Not found: "volume_not_found".
type VolumeStore interface {
	// AddVolume adds a volume unless the project has as many as most already. Problems: too_many_volumes, volume_exists.
	AddVolume(ctx context.Context, v Volume, most int) error
	Volume(ctx context.Context, project, name string) (Volume, error) // by its id or its name
	Volumes(ctx context.Context, project string) ([]Volume, error)    // the oldest first
	SizeVolume(ctx context.Context, project, id string, size int64) error
	// DeleteVolume deletes a volume that no session has. Problems: volume_used. AddSession refuses a session with a volume that is not there.
	DeleteVolume(ctx context.Context, project, id string) error
}

// VolumesOf are a session's volumes as a named session has them.
func (s Session) VolumesOf() (all []ondisk.Volume) {
	for _, m := range s.Volumes {
		all = append(all, ondisk.Volume{Folder: volume.Path(s.Project, m.Volume), Sub: m.Sub, Path: m.Path})
	}
	return all
}
