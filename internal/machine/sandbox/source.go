package sandbox

import "cove/internal/core/problem"

// Mount shows a folder at the path Target inside, read-only.
type Mount struct {
	Source Source
	Target string
}

// Source says which folder a mount shows. Only what provides the folder makes a Source, and only an engine looks into one: everything between hands it on, since the folder
// need not be on this host.
type Source struct {
	folder string
	volume string
	secret bool
}

// HostFolder is a folder of this host, by its absolute path.
func HostFolder(path string) Source { return Source{folder: path} }

// SecretFolder is a folder of this host in which a sandbox may use only the folders whose names it was told. Who may list any folder inside, as root may, is shown no
// others; see Spec.Shown.
func SecretFolder(path string) Source { return Source{folder: path, secret: true} }

// Volume is a folder that the engine has under a name.
func Volume(name string) Source { return Source{volume: name} }

// HostFolder returns the path of a folder of this host, and false for any other source.
func (s Source) HostFolder() (path string, ok bool) { return s.folder, s.folder != "" }

// Volume returns the name of a volume, and false for any other source.
func (s Source) Volume() (name string, ok bool) { return s.volume, s.volume != "" }

func (s Source) String() string {
	if s.volume != "" {
		return "the volume " + s.volume
	}
	return s.folder
}

// HostMount is a mount of a folder of this host. Secret says that its source is a SecretFolder.
type HostMount struct {
	Folder, Target string
	Secret         bool
}

// HostMounts returns mounts for an engine that can show folders of this host alone. A mount of anything else is a problem with code "mount_unusable".
func HostMounts(mounts []Mount) ([]HostMount, error) {
	out := make([]HostMount, 0, len(mounts))
	for _, m := range mounts {
		folder, ok := m.Source.HostFolder()
		if !ok {
			return nil, problem.New(problem.MountUnusable, "the engine can show folders of this machine only, and not "+m.Source.String()+" at "+m.Target).
				WithHint("use an engine that has it")
		}
		out = append(out, HostMount{Folder: folder, Target: m.Target, Secret: m.Source.secret})
	}
	return out, nil
}
