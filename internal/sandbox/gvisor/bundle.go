package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"cove/internal/sandbox"
)

// guestCapabilities are what the guest needs to start processes as the sandboxed user and to signal them. It gives up the bounding set before it runs anything, so nothing it starts can have one of them.
var guestCapabilities = []string{"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL"}

// writeBundle writes the OCI bundle: config.json and a root file system of mount points and a few generated files.
// What a checkpoint must find unchanged when it is restored is in config.json; the memory limit may change and is apart.
func writeBundle(in *instance, spec sandbox.Spec, exe string) error {
	b := &bundle{root: in.Join("rootfs")}
	b.system()
	b.mountFile(exe, guestPath)
	b.mount(in.Join("socket"), socketDir)
	for _, m := range spec.Mounts {
		if m.Source == m.Target && strings.HasPrefix(m.Target, "/usr/") {
			continue
		}
		b.mount(m.Source, m.Target)
	}
	b.dir(Workspace)
	b.symlink("/home/user", "/mnt/data")
	for _, d := range []string{"/proc", tmpPath, runPath, "/dev", "/sys"} {
		b.dir(d)
	}
	b.open()
	if b.err != nil {
		return fmt.Errorf("build root file system: %w", b.err)
	}
	config, err := json.Marshal(b.spec(in, spec))
	if err != nil {
		return err
	}
	if err := os.WriteFile(in.Join(memoryName), []byte(strconv.FormatInt(spec.Limits.Memory, 10)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(in.Join("config.json"), config, 0o600)
}

type bundle struct {
	root   string
	mounts []specs.Mount
	err    error
}

func (b *bundle) fail(err error) {
	if b.err == nil && err != nil && !errors.Is(err, fs.ErrExist) {
		b.err = err
	}
}

func (b *bundle) dir(path string) {
	b.fail(os.MkdirAll(filepath.Join(b.root, path), 0o755))
}

// open lets the sandboxed user see the root file system, whatever the host's umask.
func (b *bundle) open() {
	b.fail(filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o755)
		case d.Type().IsRegular():
			return os.Chmod(path, 0o644)
		}
		return nil
	}))
}

func (b *bundle) symlink(target, path string) {
	b.dir(filepath.Dir(path))
	b.fail(os.Symlink(target, filepath.Join(b.root, path)))
}

func (b *bundle) file(path, text string) {
	b.dir(filepath.Dir(path))
	b.fail(os.WriteFile(filepath.Join(b.root, path), []byte(text), 0o644))
}

func (b *bundle) mount(source, target string) {
	b.dir(target)
	b.bind(source, target)
}

func (b *bundle) mountFile(source, target string) {
	b.file(target, "")
	b.bind(source, target)
}

func (b *bundle) bind(source, target string) {
	b.mounts = append(b.mounts, specs.Mount{
		Type: "bind", Source: source, Destination: target, Options: []string{"rbind", "ro", "nosuid", "nodev"},
	})
}

// system shows the host's programs and libraries and generates the little of /etc that they need.
func (b *bundle) system() {
	b.mount("/usr", "/usr")
	for _, p := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		fi, err := os.Lstat(p)
		if err != nil {
			continue
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			b.fail(err)
			b.symlink(target, p)
			continue
		}
		b.mount(p, p)
	}
	for _, p := range []string{"/etc/alternatives", "/etc/fonts", "/etc/ssl"} {
		if fi, err := os.Stat(p); err == nil && fi.IsDir() {
			b.mount(p, p)
		}
	}
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		b.file("/etc/ld.so.cache", string(cache))
	}
	user := strconv.Itoa(sandboxUser)
	b.file("/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:"+user+":"+user+":user:"+Workspace+":/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
	b.file("/etc/group", "root:x:0:\nuser:x:"+user+":\nnogroup:x:65534:\n")
	b.file("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n")
	b.file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
	b.file("/etc/hostname", "sandbox\n")
}

func (b *bundle) spec(in *instance, spec sandbox.Spec) *specs.Spec {
	l := spec.Limits
	rlimit := func(name string, n uint64) specs.POSIXRlimit {
		return specs.POSIXRlimit{Type: name, Soft: n, Hard: n}
	}
	s := &specs.Spec{
		Version:  specs.Version,
		Hostname: "sandbox",
		Root:     &specs.Root{Path: "rootfs", Readonly: true},
		Mounts:   append(b.mounts, internalMounts(in, l)...),
		Process: &specs.Process{
			Args: []string{guestPath, "--connect=" + socketDir + "/" + socketName, "--workspace=" + Workspace, "--user=" + strconv.Itoa(sandboxUser)},
			Env:  []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
			Cwd:  "/",
			Capabilities: &specs.LinuxCapabilities{
				Bounding: guestCapabilities, Effective: guestCapabilities, Permitted: guestCapabilities,
			},
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
