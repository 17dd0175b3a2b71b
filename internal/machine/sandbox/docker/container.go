package docker

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"cove/internal/machine/image"
	"cove/internal/machine/rootfs"
	"cove/internal/machine/sandbox"
)

// Where things are inside a container.
const (
	workspace  = "/home/user"
	sharedDir  = "/opt/cove/shared"
	socketDir  = "/opt/cove/host"
	socketName = "guest"
	tmpPath    = "/tmp"
	runPath    = "/run"
)

const (
	// guestTasks is how many processes and threads a container may have beyond those of code: the guest's.
	guestTasks = 128
	// sentryTasks bounds host threads under gVisor, which uses some for each of code's, and dies when it cannot have them.
	sentryTasks = 16384
	// sentryMemory is what gVisor takes beyond the limit of code, in bytes.
	sentryMemory = 128 << 20
)

// The users of sandboxed code. Each container has two, of which the second parses code (see guest); with the numbers of no other container, so that the limit of processes, which
// the kernel counts by user, is a container's own. Where the daemon has the host's users, they are from those that nobody uses (https://systemd.io/UIDS-GIDS/).
const (
	firstUser      = 0x7000_0000
	userPairs      = 0x0800_0000
	firstOwnUser   = 10_000 // where the daemon has 65,536 users of its own
	ownUserPairs   = 25_000
	usersOfOneFile = 2
)

// userOf returns the user of code for a sandbox. Folders that are there at the same time have different numbers.
func (d *daemon) userOf(f *sandbox.Folder) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat(f.Path, &st); err != nil {
		return 0, fmt.Errorf("look at the sandbox's folder: %w", err)
	}
	if d.ownUsers() {
		return firstOwnUser + usersOfOneFile*int(st.Ino%ownUserPairs), nil
	}
	return firstUser + usersOfOneFile*int(st.Ino%userPairs), nil
}

// createFolder makes the folder of a sandbox, with the files that its container is shown.
func (d *daemon) createFolder(state string, spec sandbox.Spec) (f *sandbox.Folder, user int, err error) {
	if f, err = sandbox.CreateFolder(state, spec.ID); err != nil {
		return nil, 0, err
	}
	// The folder is closed to others. What is mounted from it has rights of its own, since the guest has no capability that goes beyond them.
	for _, dir := range []string{"socket", "etc"} {
		if err := os.Mkdir(f.Join(dir), 0o711); err != nil {
			return f, 0, err
		}
		if err := os.Chmod(f.Join(dir), 0o711); err != nil { //nolint:gosec // whatever the umask
			return f, 0, err
		}
	}
	if user, err = d.userOf(f); err != nil {
		return f, 0, err
	}
	t := rootfs.Tree{}
	t.Configuration("")
	t.Users(user, workspace, "/usr/sbin/nologin", "", "")
	files := map[string]string{hostName: d.host + "\n", "etc/meminfo": meminfo(spec.Limits.Memory)}
	for _, name := range ownFiles {
		files["etc/"+name] = t["/etc/"+name].Text
	}
	if spec.Root != "" { // whose users are there besides
		for _, name := range []string{"passwd", "group"} {
			if files["etc/"+name], err = image.Table(spec.Root, name, user); err != nil {
				return f, 0, err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(f.Join(name), []byte(text), 0o600); err != nil {
			return f, 0, err
		}
		if err := os.Chmod(f.Join(name), 0o644); err != nil { //nolint:gosec // sandboxed code reads them
			return f, 0, err
		}
	}
	return f, user, nil
}

// ownFiles are those of /etc that each container has for itself: with its user, and in the place of what Docker would put there.
var ownFiles = []string{"passwd", "group", "resolv.conf", "hosts", "hostname"}

// meminfo is what /proc/meminfo says in a container that shares the host's kernel: what the container may have, and not what the machine has and uses, by which programs would
// choose how much they take, and by which the guest would end them. The limit itself is the control group's to enforce.
func meminfo(memory int64) string {
	var out strings.Builder
	for _, line := range []struct {
		name  string
		bytes int64
	}{
		{"MemTotal", memory}, {"MemFree", memory}, {"MemAvailable", memory}, {"Buffers", 0}, {"Cached", 0}, {"SwapCached", 0}, {"Active", 0}, {"Inactive", 0},
		{"SwapTotal", 0}, {"SwapFree", 0}, {"Dirty", 0}, {"Writeback", 0}, {"AnonPages", 0}, {"Mapped", 0}, {"Shmem", 0}, {"Slab", 0},
	} {
		fmt.Fprintf(&out, "%-15s %8d kB\n", line.name+":", line.bytes>>10)
	}
	return out.String()
}

// listen opens the socket that the guest connects to. It goes through /proc/self/fd because a socket path is limited to 107 bytes and data folders are not.
func listen(f *sandbox.Folder) (*net.UnixListener, error) {
	dir, err := os.Open(f.Join("socket"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the guest's socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	// The guest may be another user on the host. It has connected, and the socket is gone, before any code runs.
	return l, os.Chmod(f.Join("socket", socketName), 0o666) //nolint:gosec // the folder above is closed
}

// create makes the container, which does not run yet, and returns its id.
func (d *daemon) create(ctx context.Context, f *sandbox.Folder, state, guest string, user int, spec sandbox.Spec, base ground, mounts []sandbox.HostMount) (id string, err error) {
	name := strconv.Itoa(user)
	made, err := d.api.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name: containerName(f.ID),
		Config: &container.Config{
			Image:      base.name,
			Hostname:   "sandbox",
			User:       "0:0", // the guest's; code is another user without any capability
			WorkingDir: "/",
			Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
			Entrypoint: []string{sharedDir + "/" + filepath.Base(guest), "--connect=" + socketDir + "/" + socketName, "--once", "--workspace=" + workspace, "--user=" + name},
			StopSignal: "SIGKILL", // for who stops the daemon: the guest ends for no other
			Labels:     map[string]string{labelState: state, labelSandbox: f.ID},
		},
		HostConfig: d.hostConfig(f, guest, name, spec.Limits, base, mounts),
	})
	return made.ID, err
}

// hostConfig is the whole of what holds a container: no network, nothing of the host's that it can write to, no capability but the guest's, and its limits.
func (d *daemon) hostConfig(f *sandbox.Folder, guest, user string, l sandbox.Limits, base ground, mounts []sandbox.HostMount) *container.HostConfig {
	tmpfs := func(size int64, options string) string {
		return "rw,nosuid,nodev,exec,size=" + strconv.FormatInt(size, 10) + "," + options
	}
	h := &container.HostConfig{
		NetworkMode:    "none",
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		// What the guest needs to start processes as another user, to signal them, and to have what they send come to it. It gives up the bounding set before it runs anything.
		CapAdd:      []string{"SETUID", "SETGID", "SETPCAP", "KILL", "NET_ADMIN", "NET_RAW"},
		SecurityOpt: []string{"no-new-privileges"},
		IpcMode:     "private",
		ShmSize:     l.Tmp,
		// What the guest says when it cannot go on; what code says comes through the guest.
		LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "64k", "max-file": "1"}},
		Runtime:   d.runtime,
		Tmpfs: map[string]string{
			workspace: tmpfs(l.Workspace, "mode=0755,uid="+user+",gid="+user),
			tmpPath:   tmpfs(l.Tmp, "mode=1777"),
			runPath:   tmpfs(16<<20, "mode=0755"),
		},
		Mounts:    d.mounts(f, guest, base, mounts),
		Resources: d.resources(l),
	}
	if !d.podman {
		return h
	}
	h.LogConfig = container.LogConfig{Type: "k8s-file", Config: map[string]string{"max-size": "64k"}}
	if !d.asked {
		h.Runtime = "" // Podman's own choice; it does not take the name that it gives
	}
	h.Tmpfs[workspace] = tmpfs(l.Workspace, "mode=0755") // it knows no owner there, so the guest gives it to its user
	h.CapAdd = append(h.CapAdd, "CHOWN")
	return h
}

// resources are the limits, as far as the daemon has them.
func (d *daemon) resources(l sandbox.Limits) container.Resources {
	r := container.Resources{Ulimits: []*container.Ulimit{
		{Name: "nofile", Soft: int64(l.OpenFiles), Hard: int64(l.OpenFiles)}, {Name: "core", Soft: 0, Hard: 0},
	}}
	tasks := int64(l.Processes + guestTasks)
	switch {
	case d.isolates():
		tasks = sentryTasks
		fallthrough
	case !d.ownUsers():
		// In a daemon with users of its own, the guest's user has all that the daemon runs, and could not start anything.
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "nproc", Soft: int64(l.Processes), Hard: int64(l.Processes)})
	}
	if d.info.PidsLimit {
		r.PidsLimit = &tasks
	}
	if d.info.MemoryLimit {
		r.Memory = l.Memory
		if d.isolates() {
			r.Memory += sentryMemory
		}
		if d.info.SwapLimit {
			r.MemorySwap = r.Memory
		}
	}
	if d.info.CPUCfsQuota {
		r.NanoCPUs = int64(l.CPUs * 1e9)
	}
	return r
}

// mounts are the folders and files of the host that a container sees.
func (d *daemon) mounts(f *sandbox.Folder, guest string, base ground, mounts []sandbox.HostMount) (all []mount.Mount) {
	show := func(source, target string) {
		all = append(all, mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: true, BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate}})
	}
	for _, part := range base.shown {
		show(part.From, part.At)
	}
	for _, name := range ownFiles {
		show(f.Join("etc", name), "/etc/"+name)
	}
	if !d.isolates() {
		show(f.Join("etc", "meminfo"), "/proc/meminfo")
	}
	show(filepath.Dir(guest), sharedDir)
	show(f.Join("socket"), socketDir)
	for _, m := range mounts {
		if base.ofHost && isOfUsr(m) {
			continue
		}
		show(m.Folder, m.Target)
	}
	return all
}
