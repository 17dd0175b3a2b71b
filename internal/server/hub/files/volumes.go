package files

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/volume"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// VolumeFolders are the volumes on the disk. *volume.Folders has it.
type VolumeFolders interface {
	Make(project, id string) error
	MakeSub(project, id, sub string) error
	Remove(project, id string) error
	Open(project, id string) (*volume.Content, error)
	Measure(project, id string) (volume.Taken, error)
	Sweep(keep func(project, id string) (bool, error)) error
}

const (
	mostVolumes       = 100 // of a project
	mostMounts        = 10  // of a session
	longestVolumeName = 100
	longestMountPath  = 500
)

// HasVolumes says whether there can be volumes.
func (l *Library) HasVolumes() bool { return l.o.Volumes != nil }

// volumeFolders returns the volumes on the disk, or why there are none.
func (l *Library) volumeFolders() (VolumeFolders, error) {
	if l.o.Volumes == nil {
		why := l.o.NoVolumes
		if why == "" {
			why = "it was started without them"
		}
		return nil, problem.New(problem.VolumesAbsent, "there are no volumes on this server: "+why).WithHint("put files into sessions instead; the operator can run cove serve as root")
	}
	return l.o.Volumes, nil
}

// AddVolume makes a volume. Needs auth.FilesWrite. Problems: volumes_absent, volume_invalid, volume_exists, too_many_volumes, quota_disk.
func (l *Library) AddVolume(ctx context.Context, who auth.Principal, name string) (record.Volume, error) {
	v := record.Volume{ID: ident.New(ident.Volume), Project: who.Project, User: who.User, Key: who.Key, Name: name, Created: l.work.Now(), Home: l.work.HomeID()}
	err := who.Require(auth.FilesWrite)
	folders := VolumeFolders(nil)
	if err == nil {
		folders, err = l.volumeFolders()
	}
	if err == nil {
		err = volumeName(name)
	}
	if err == nil {
		err = l.meter.MayStore(ctx, who.Project, who.Key, 0)
	}
	if err == nil {
		err = l.work.Store.AddVolume(ctx, v, mostVolumes)
	}
	if err == nil { // a record without a folder is deleted with it, a folder without a record by the sweep
		if err = folders.Make(v.Project, v.ID); err != nil {
			l.work.RunInBackground(func(ctx context.Context) {
				if err := l.work.WriteUntilStored(ctx, func(ctx context.Context) error { return l.work.Store.DeleteVolume(ctx, v.Project, v.ID) }); err != nil {
					l.work.Log.WarnContext(ctx, "a volume that could not be made is still recorded", "volume", v.ID, "error", err)
				}
			})
		}
	}
	l.work.WriteAudit(ctx, who, "volume.create", v.ID, name, err)
	if err != nil {
		return record.Volume{}, err
	}
	return v, nil
}

// volumeName returns why a name cannot be a volume's, or nil.
func volumeName(name string) error {
	bad := func(r rune) bool { return !unicode.IsGraphic(r) || r == '/' || r == '"' || r == '\\' }
	if name == "" || len(name) > longestVolumeName || !utf8.ValidString(name) || strings.ContainsFunc(name, bad) || strings.TrimSpace(name) != name || ident.Valid(ident.Volume, name) {
		return problem.New(problem.VolumeInvalid, fmt.Sprintf("the name of a volume has 1 to %d bytes, without slashes and quotes", longestVolumeName))
	}
	return nil
}

// Volumes lists the volumes of the caller's project, the oldest first. Needs auth.FilesRead.
func (l *Library) Volumes(ctx context.Context, who auth.Principal) ([]record.Volume, error) {
	if err := who.Require(auth.FilesRead); err != nil {
		return nil, err
	}
	return l.work.Store.Volumes(ctx, who.Project)
}

// Volume returns a volume by its id or its name. Needs auth.FilesRead. Problems: volume_not_found.
func (l *Library) Volume(ctx context.Context, who auth.Principal, name string) (record.Volume, error) {
	if err := who.Require(auth.FilesRead); err != nil {
		return record.Volume{}, err
	}
	return l.work.Store.Volume(ctx, who.Project, name)
}

// DeleteVolume deletes a volume with all that is in it. Needs auth.FilesWrite. Problems: volume_not_found, volume_used, volume_elsewhere.
func (l *Library) DeleteVolume(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.FilesWrite)
	folders, v := VolumeFolders(nil), record.Volume{}
	if err == nil {
		folders, err = l.volumeFolders()
	}
	if err == nil {
		v, err = l.work.Store.Volume(ctx, who.Project, id)
	}
	if err == nil {
		err = l.volumeHere(v)
	}
	if err == nil {
		err = l.work.Store.DeleteVolume(ctx, who.Project, v.ID)
	}
	if err == nil {
		l.work.RunInBackground(func(ctx context.Context) {
			if err := folders.Remove(v.Project, v.ID); err != nil {
				l.work.Log.WarnContext(ctx, "what is left of a deleted volume was not removed", "volume", v.ID, "error", err)
			}
		})
	}
	l.work.WriteAudit(ctx, who, "volume.delete", id, "", err)
	return err
}

func (l *Library) volumeHere(v record.Volume) error {
	if v.Home != "" && v.Home != l.work.HomeID() {
		return problem.New(problem.VolumeElsewhere, "the volume is on another server's disk").WithHint("ask the server that made it")
	}
	return nil
}

// reservedPlaces are places of a sandbox in which, and above which, no volume is shown.
var reservedPlaces = []string{"/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt/cove", "/run", "/root", "/mnt/data"}

// isWithin says whether a path is another one, or below it.
func isWithin(p, of string) bool { return p == of || strings.HasPrefix(p, of+"/") }

// mountFault is what is wrong with the place of a volume, or "".
func mountFault(p string) string {
	if !path.IsAbs(p) || path.Clean(p) != p || len(p) > longestMountPath || !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) || p == "/" {
		return "it has to be an absolute path, without . and .., and not /"
	}
	for _, r := range reservedPlaces {
		if isWithin(p, r) || isWithin(r, p) {
			first, _, _ := strings.Cut(r[1:], "/")
			return "the sandbox has something else in /" + first
		}
	}
	for _, r := range []string{"/home/user", "/tmp"} {
		if isWithin(r, p) {
			return "there is something already; take a folder below it"
		}
	}
	return ""
}

// MountsFor completes what a new session says of volumes. Problems: volumes_absent, volume_invalid, volume_not_found, volume_elsewhere.
func (l *Library) MountsFor(ctx context.Context, who auth.Principal, row record.Session, asked []record.VolumeMount) ([]record.VolumeMount, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	folders, err := l.volumeFolders()
	for _, action := range []auth.Action{auth.FilesRead, auth.FilesWrite} {
		if err == nil {
			err = who.Require(action)
		}
	}
	if err != nil {
		return nil, err
	}
	bad := func(m record.VolumeMount, what string) *problem.Error {
		return problem.New(problem.VolumeInvalid, fmt.Sprintf("the session cannot have the volume %.100q there: %s", m.Volume, what))
	}
	if len(asked) > mostMounts {
		return nil, problem.New(problem.VolumeInvalid, fmt.Sprintf("a session has at most %d volumes", mostMounts))
	}
	if row.System > 0 {
		return nil, problem.New(problem.VolumeInvalid, "a session with a root cannot have volumes").WithHint("leave the root out, or the volumes")
	}
	var out []record.VolumeMount
	for _, m := range asked {
		if fault := mountFault(m.Path); fault != "" {
			return nil, bad(m, fault)
		}
		if m.Sub != "" && (!fs.ValidPath(m.Sub) || m.Sub == "." || len(m.Sub) > longestMountPath || strings.ContainsFunc(m.Sub, unicode.IsControl)) {
			return nil, bad(m, "the folder in it has to be a relative path, without . and ..")
		}
		v, err := l.work.Store.Volume(ctx, who.Project, m.Volume)
		if err == nil {
			err = l.volumeHere(v)
		}
		if err != nil {
			return nil, err
		}
		m.Volume = v.ID
		for _, other := range out {
			switch {
			case isWithin(m.Path, other.Path) || isWithin(other.Path, m.Path):
				return nil, bad(m, "another volume is there already, in it or around it")
			case m.Volume == other.Volume && m.Sub == other.Sub:
				return nil, bad(m, "the session has the volume at another place already")
			}
		}
		if m.Sub != "" {
			if err := folders.MakeSub(v.Project, v.ID, m.Sub); err != nil {
				return nil, bad(m, "the folder in it cannot be made: something else is there").WithCause(err)
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// MeasureVolumes counts the volumes of sessions that are in memory, or were when it was called last: inMemory has the projects and the ids of the former, and
// belongs to MeasureVolumes then.
func (l *Library) MeasureVolumes(ctx context.Context, inMemory map[[2]string]bool) {
	l.mu.Lock()
	used := maps.Clone(inMemory)
	maps.Copy(used, l.mounted)
	l.mounted = inMemory
	l.mu.Unlock()
	for v := range used {
		taken, err := l.o.Volumes.Measure(v[0], v[1])
		if err == nil {
			err = l.work.Store.SizeVolume(ctx, v[0], v[1], taken.Bytes)
		}
		if err != nil && ctx.Err() == nil {
			l.work.Log.DebugContext(ctx, "a volume was not counted", "volume", v[1], "error", err)
		}
	}
}

// SweepVolumes removes folders of volumes that have no record, as after a server was killed.
func (l *Library) SweepVolumes(ctx context.Context) error {
	if l.o.Volumes == nil {
		return nil
	}
	return l.o.Volumes.Sweep(func(project, id string) (bool, error) {
		_, err := l.work.Store.Volume(ctx, project, id)
		if problem.Has(err, problem.VolumeNotFound) {
			return false, nil
		}
		return true, err
	})
}
