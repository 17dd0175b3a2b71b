package gvisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// Sandboxes write to volumes through their gofers, and so with the host's rights of their own users. What sandboxed code makes there has to become its user's: where sandboxes have users of
// their own, another user of the host stands for that one in all sandboxes that have the volume; where they are root on the host, the user of that number is it. An ordinary user's
// cove has no second user that could be given anything.

// ownBottom is the root file system of a sandbox with volumes.
const ownBottom = "bottom"

// WithoutVolumes implements sandbox.VolumeKeeper.
func (e *Engine) WithoutVolumes() string {
	if os.Geteuid() != 0 {
		return "cove is not root, and so has no users to whom files in volumes could belong"
	}
	if err := e.prepare(); err != nil {
		return err.Error()
	}
	return ""
}

// OwnVolume implements sandbox.VolumeKeeper. The folder's number gives its user, as it does for sandboxes.
func (e *Engine) OwnVolume(folder string) error {
	if why := e.WithoutVolumes(); why != "" {
		return errors.New(why)
	}
	user := sandboxUser
	if e.withheld == "" {
		var st unix.Stat_t
		if err := unix.Lstat(folder, &st); err != nil {
			return fmt.Errorf("look at the folder of volumes: %w", err)
		}
		user = firstUser + int(st.Ino%userCount)
	}
	return os.Lchown(folder, user, user)
}

// mayHave returns why a sandbox cannot have volumes, or nil.
func (e *Engine) mayHave(volumes []sandbox.VolumeMount, l sandbox.Limits) error {
	if len(volumes) == 0 {
		return nil
	}
	if l.System > 0 { // gVisor puts a layer for changes over everything in it, volumes too
		return problem.New(problem.VolumesAbsent, "a sandbox with a root cannot have volumes").WithHint("leave the root out")
	}
	if _, err := sandbox.VolumesOf(e); err != nil {
		return err
	}
	for _, v := range volumes {
		if v.Sub != "" && e.withheld != "" {
			return problem.New(problem.VolumesAbsent, "a folder of a volume cannot be shown alone on this server: "+e.withheld).WithHint("show the whole volume")
		}
	}
	return nil
}

// volume shows a volume. gVisor is told that others write there.
func (b *bundle) volume(v sandbox.VolumeMount) {
	b.entries.Dir(v.Target)
	m := specs.Mount{Type: "bind", Source: volumeSource(v), Destination: v.Target, Options: []string{"rbind", "rw", "nosuid", "nodev"}}
	b.volumes, b.growing = append(b.volumes, m), append(b.growing, m)
}

// volumeSource is what the bundle calls a volume, until the warden has looked where that is. It leads nowhere that could be meant by it: what is in a volume is its users', who can put links there.
func volumeSource(v sandbox.VolumeMount) string {
	if v.Sub == "" {
		return v.Folder
	}
	return filepath.Join("/dev/null", v.Folder, v.Sub)
}

// rootOf returns the root file system: one of the sandbox's own where its places are nobody else's.
func (b *bundle) rootOf(in *instance, own bool) (string, error) {
	if !own {
		return b.rootFolder(filepath.Dir(in.Path))
	}
	root := in.Join(ownBottom)
	if err := os.Mkdir(root, 0o755); err != nil { //nolint:gosec // sandboxed code passes through it
		return "", err
	}
	return root, b.entries.Build(root)
}

// ownersOf returns the user and the group of the host to whom the content of volumes belongs; 0 without volumes.
func ownersOf(volumes []sandbox.VolumeMount) (user int, err error) {
	for _, v := range volumes {
		var st unix.Stat_t
		if err := unix.Lstat(v.Folder, &st); err != nil {
			return 0, problem.New(problem.VolumeNotFound, "a volume of the session is not on the disk any more").WithHint("make a new session").WithCause(err)
		}
		owner := int(st.Uid)
		switch {
		case st.Mode&unix.S_IFMT != unix.S_IFDIR || owner == 0:
			return 0, errors.New("a volume is no folder that was given to users of sandboxes")
		case user != 0 && user != owner:
			return 0, errors.New("volumes of one sandbox belong to different users")
		}
		user = owner
	}
	return user, nil
}

// VolumeArgs name a volume of a container.
type VolumeArgs struct{ Source, Folder, Sub string }

func volumeArgs(volumes []sandbox.VolumeMount) (all []VolumeArgs) {
	for _, v := range volumes {
		all = append(all, VolumeArgs{volumeSource(v), v.Folder, v.Sub})
	}
	return all
}

// showVolumes returns where a container finds its volumes, by their sources. Folders in volumes are looked up without following a link, and nothing is in between until they are shown.
func (r *ownRoot) showVolumes(id string, volumes []VolumeArgs) (shown map[string]string, err error) {
	shown = map[string]string{}
	for i, v := range volumes {
		target := shownFolder + "/v-" + id + "-" + strconv.Itoa(i)
		if err := r.showVolume(v, target); err != nil {
			unshow(shown)
			return nil, fmt.Errorf("show a volume: %w", err)
		}
		shown[v.Source] = target
	}
	return shown, nil
}

func (r *ownRoot) showVolume(v VolumeArgs, target string) error {
	folder, err := r.find(v.Folder)
	if err != nil {
		return err
	}
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if v.Sub != "" {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV}
		sub, err := unix.Openat2(fd, v.Sub, &how)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(sub) }()
		fd = sub
	}
	if err := makeOpen(target); err != nil {
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), target, "", unix.MS_BIND, ""); err != nil {
		return errors.Join(err, os.Remove(target))
	}
	return nil
}

// unshow takes back what showVolumes has shown. A container has what it found.
func unshow(shown map[string]string) {
	for _, target := range shown {
		_ = unix.Unmount(target, unix.MNT_DETACH)
		_ = os.Remove(target)
	}
}

// unwalked is what gVisor says of a file that a process of a checkpoint has open, and that it does not find again.
var unwalked = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`failed to walk (".*?") of type \S+ in mount ".*?:(/.*?)": no such file or directory`)
})

// volumeChanged is the problem of a restore that fails because of what others have deleted in a volume; nil: it fails for something else.
func (s *running) volumeChanged(err error) error {
	found := unwalked().FindStringSubmatch(err.Error())
	if found == nil {
		return nil
	}
	for _, v := range s.spec.Volumes {
		if v.Target == found[2] {
			return problem.New(problem.VolumeChanged, fmt.Sprintf("programs of the session have %s of a volume open, which is not there any more; put something of that name there, and try again", found[1])).WithCause(err)
		}
	}
	return nil
}
