package gvisor

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"cove/internal/machine/rootfs"
	"cove/internal/machine/sandbox"
)

// guestCapabilities are what the guest needs to start processes as the sandboxed user and to signal them, and to have what they send to other machines come to it (the two for
// the network, which is the sandbox's own and has nothing but a loopback interface). It gives up the bounding set before it runs anything, so nothing it starts can have one of them,
// and by then also the last, with which it mounts two files when it starts.
var guestCapabilities = []string{"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"}

// configName is the file of a bundle that says what its container is.
const configName = "config.json"

// writeBundle writes the OCI bundle: config.json beside a root file system of mount points and a few generated files.
// What a checkpoint must find unchanged when it is restored is in config.json; the memory limit may change and is apart.
func writeBundle(in *instance, spec sandbox.Spec, guest string) error {
	mounts, err := sandbox.HostMounts(spec.Mounts)
	if err != nil {
		return err
	}
	shared := filepath.Dir(guest)
	if spec.Limits.System > 0 {
		if err := in.openView(guest); err != nil {
			return fmt.Errorf("make a view of what sandboxes share: %w", err)
		}
		shared = in.Join(ownShared)
		if mounts, err = in.conceal(mounts, spec.Shown); err != nil {
			return fmt.Errorf("make a view of what sandboxes share: %w", err)
		}
	}
	b, err := newBundle(mounts, shared, spec)
	if err != nil {
		return err
	}
	b.bind(in.Join("socket"), socketDir)
	for _, v := range spec.Volumes {
		b.volume(v)
	}
	if spec.Root != "" {
		if err := b.image(spec.Root); err != nil {
			return err
		}
	}
	root, err := b.rootOf(in, len(spec.Volumes) > 0)
	if err != nil {
		return fmt.Errorf("build root file system: %w", err)
	}
	config, err := json.Marshal(b.spec(in, root, guest, spec))
	if err != nil {
		return err
	}
	if err := os.WriteFile(in.Join(memoryName), []byte(strconv.FormatInt(spec.Limits.Memory, 10)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(in.Join(configName), config, 0o600)
}

// newBundle lists what a sandbox sees, but for what is its own; shared is the folder of the guest. That cannot be listed from inside by who is not root: what else is there is seen by who
// knows its name.
func newBundle(mounts []sandbox.HostMount, shared string, spec sandbox.Spec) (*bundle, error) {
	changeable := spec.Limits.System > 0
	b := &bundle{entries: rootfs.Tree{}, layered: changeable}
	if spec.Root == "" {
		if changeable {
			b.changeable(spec.Layer)
		}
		b.system(spec.Layer)
	}
	b.readOnly(shared, sharedDir)
	b.entries.Dir(socketDir)
	for _, m := range mounts {
		if spec.Root == "" && m.Folder == m.Target && strings.HasPrefix(m.Target, "/usr/") {
			continue
		}
		if m.Secret {
			b.readOnly(m.Folder, m.Target)
			if changeable {
				b.growing = append(b.growing, b.mounts[len(b.mounts)-1])
			}
		} else {
			b.mount(m.Folder, m.Target)
		}
	}
	b.entries.Dir(Workspace)
	if spec.Root == "" {
		b.entries.Aliases(Workspace)
	} else {
		b.entries.Link(Workspace, "/mnt/data") // an image may have the others itself
	}
	for _, d := range []string{"/proc", tmpPath, runPath, "/dev", "/sys"} {
		b.entries.Dir(d)
	}
	if !changeable {
		b.openFolders(spec.Root != "")
	}
	if spec.Layer != "" {
		shown, err := b.entries.Layer(spec.Layer, changeable, mostCopied)
		if err != nil {
			return nil, err
		}
		b.below(shown)
	}
	return b, nil
}

// openFolders has code without a root make folders where programs expect some of their own, as /code or /opt/x. Of an image that is only the highest level: the others are its own.
func (b *bundle) openFolders(image bool) {
	b.entries.Open("/")
	if !image {
		for _, d := range []string{"/home", "/mnt", "/opt", "/srv"} {
			b.entries.Open(d)
		}
	}
}

// image shows the file system of an image around everything else.
func (b *bundle) image(root string) error {
	shown, err := b.entries.Image(root, slices.Collect(maps.Keys(b.entries)))
	if err != nil {
		return err
	}
	b.below(shown)
	return nil
}

// below shows parts of a file system below everything else.
func (b *bundle) below(shown []rootfs.Shown) {
	others := b.mounts
	b.mounts = nil
	for _, s := range shown {
		b.bind(s.From, s.At)
		if b.layered {
			b.mounts[len(b.mounts)-1].Options[1] = "rw"
		}
	}
	b.mounts = append(b.mounts, others...)
}

// bundle is the root file system of a sandbox, which holds nothing but mount points and a few small files, and what is mounted there.
type bundle struct {
	entries rootfs.Tree
	mounts  []specs.Mount
	layered bool          // what is mounted can be changed; see changeable
	volumes []specs.Mount // last of all, since they may be in other mounts
	growing []specs.Mount // of mounts and volumes, those in which something appears after it may have been looked for
}

// The names of root file systems in the engine's folder, whole and in the making.
const (
	rootPrefix    = ".roots-"
	rootTmpPrefix = ".tmp-root-"
)

// rootFolder returns a folder with the entries. Sandboxes cannot write to it, so those with the same entries share one, which stays. Users of the host cannot either: its name is in a folder that
// they may pass through and not list, and cannot be guessed.
func (b *bundle) rootFolder(state string) (string, error) {
	text, err := json.Marshal(b.entries)
	if err != nil {
		return "", err
	}
	shared := filepath.Join(state, rootPrefix+digest(string(text)))
	if root, err := onlyEntry(shared); err == nil {
		return root, nil
	}
	tmp, err := os.MkdirTemp(state, rootTmpPrefix)
	if err != nil {
		return "", err
	}
	if err := b.buildRoot(tmp); err != nil {
		return "", errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, shared); err != nil {
		_ = os.RemoveAll(tmp) // another process may have been quicker
	}
	return onlyEntry(shared)
}

// buildRoot makes the entries in a folder of one that has nothing else.
func (b *bundle) buildRoot(shared string) error {
	root := filepath.Join(shared, rand.Text())
	if err := os.Mkdir(root, 0o755); err != nil { //nolint:gosec // sandboxed code passes through it
		return err
	}
	if err := b.entries.Build(root); err != nil {
		return err
	}
	return os.Chmod(shared, 0o711) //nolint:gosec // the host's users of sandboxes pass through it
}

func onlyEntry(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 {
		return "", fmt.Errorf("%s has %d entries, not one", dir, len(entries))
	}
	return filepath.Join(dir, entries[0].Name()), nil
}

// sweepRoots removes root file systems that nobody finished.
func sweepRoots(state string) {
	const grace = time.Minute
	unfinished, _ := filepath.Glob(filepath.Join(state, rootTmpPrefix+"*"))
	for _, dir := range unfinished {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > grace {
			_ = os.RemoveAll(dir) // what cannot be removed now is tried again next time
		}
	}
}

// mount shows a folder of the host. What is changed there stays inside.
func (b *bundle) mount(source, target string) {
	b.readOnly(source, target)
	if b.layered {
		b.mounts[len(b.mounts)-1].Options[1] = "rw"
	}
}

func (b *bundle) readOnly(source, target string) {
	b.entries.Dir(target)
	b.bind(source, target)
}

func (b *bundle) bind(source, target string) {
	b.mounts = append(b.mounts, specs.Mount{
		Type: "bind", Source: source, Destination: target, Options: []string{"rbind", "ro", "nosuid", "nodev"},
	})
}

// system shows the host's programs and libraries and generates the little of /etc that they need.
func (b *bundle) system(layer string) {
	for _, p := range b.entries.Programs() {
		b.mount(p, rootfs.SystemPlace(layer, p))
	}
	for _, p := range rootfs.Tables() {
		if at := rootfs.SystemPlace(layer, p); at != p || !b.layered {
			b.mount(p, at)
		}
	}
	b.entries.Configuration(layer)
	users, groups, shell := "", "", "/usr/sbin/nologin"
	if b.layered {
		users, groups, shell = rootfs.SystemLines("/etc/passwd"), rootfs.SystemLines("/etc/group"), "/bin/bash"
	}
	b.entries.Users(sandboxUser, Workspace, shell, users, groups)
}

func (b *bundle) spec(in *instance, root, guest string, spec sandbox.Spec) *specs.Spec {
	l := spec.Limits
	rlimit := func(name string, n uint64) specs.POSIXRlimit {
		return specs.POSIXRlimit{Type: name, Soft: n, Hard: n}
	}
	args := []string{sharedDir + "/" + filepath.Base(guest), "--connect=" + socketDir + "/" + socketName, "--workspace=" + Workspace, "--user=" + strconv.Itoa(sandboxUser)}
	capabilities := &specs.LinuxCapabilities{Bounding: guestCapabilities, Effective: guestCapabilities, Permitted: guestCapabilities}
	if l.System > 0 {
		args = append(args, "--root")
		all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(guestCapabilities, rootCapabilities))))
		// What is inheritable is all that root keeps when the guest has given up the bounding set.
		capabilities = &specs.LinuxCapabilities{Bounding: all, Effective: all, Permitted: all, Inheritable: rootCapabilities}
	}
	s := &specs.Spec{
		Version:  specs.Version,
		Hostname: "sandbox",
		Root:     &specs.Root{Path: root},
		Mounts:   slices.Concat(b.mounts, internalMounts(in, l), b.volumes),
		Process: &specs.Process{
			Args:            args,
			Env:             []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
			Cwd:             "/",
			Capabilities:    capabilities,
			NoNewPrivileges: true,
			Rlimits: []specs.POSIXRlimit{
				rlimit("RLIMIT_NPROC", uint64(l.Processes)),
				rlimit("RLIMIT_NOFILE", uint64(l.OpenFiles)),
				rlimit("RLIMIT_CORE", 0),
			},
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}},
		},
		// The workspace is a tmpfs inside the sandbox that keeps its pages in a file on the host's disk. So it has a
		// quota, does not eat the memory limit, and no name, symlink or mode made inside ever exists on the host.
		Annotations: map[string]string{
			"dev.gvisor.spec.mount.workspace.source":  in.Join("workspace"),
			"dev.gvisor.spec.mount.workspace.type":    "tmpfs",
			"dev.gvisor.spec.mount.workspace.share":   "container",
			"dev.gvisor.spec.mount.workspace.options": fmt.Sprintf("rw,nosuid,nodev,size=%d,mode=0755,uid=%d,gid=%d", l.Workspace, sandboxUser, sandboxUser),
		},
	}
	for i, m := range b.growing {
		// gVisor remembers what a folder of the host has, and what it has not, unless it is told that others write there.
		name := fmt.Sprintf("dev.gvisor.spec.mount.growing%d.", i)
		s.Annotations[name+"source"], s.Annotations[name+"type"], s.Annotations[name+"share"] = m.Source, "bind", "shared"
	}
	return s
}

func internalMounts(in *instance, l sandbox.Limits) []specs.Mount {
	tmpfs := func(target string, options ...string) specs.Mount {
		return specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: target, Options: append([]string{"nosuid", "nodev"}, options...)}
	}
	size := "size=" + strconv.FormatInt(l.Tmp, 10)
	return []specs.Mount{
		{Type: "proc", Source: "proc", Destination: "/proc"},
		tmpfs(tmpPath, size, "mode=1777"),
		tmpfs("/dev/shm", size, "mode=1777"),
		tmpfs(runPath, "size=16777216", "mode=0755"),
		{Type: "bind", Source: in.Join("workspace"), Destination: Workspace, Options: []string{"rw", "nosuid", "nodev"}},
	}
}
