package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// aheadFolder is the folder of the image with what was made ahead; see the setting folders.ahead.
const aheadFolder = "/opt/cove/ahead"

// uv is what installs packages, where cove looks for it first.
const uv = "usr/local/bin/uv"

// inside is the first argument of this program when it has started itself to run a command in the root of an image: inside ROOT COMMAND...
const inside = "inside"

// compileLibrary compiles Python's own library, as the packages' scripts do. The hash of a source is not looked at when its module is imported, so that the bytes are the same on every day.
func compileLibrary(ctx context.Context, root string) error {
	return runIn(ctx, root, "", "/bin/sh", "-c", "exec /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3.*")
}

// makeAhead has cove, in the image's own root file system and as the image's user, make what a first session needs, and leaves below aheadFolder only that.
func (m maker) makeAhead(ctx context.Context, root, data string) error {
	fmt.Fprintln(os.Stderr, "Making the Python environment, which downloads some 220 MB.")
	at := filepath.Join(root, aheadFolder)
	if err := runIn(ctx, root, at, "/usr/local/bin/cove", "run", "--engine", "local", "--quiet", "-c", "pass"); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(at, "tools/uv/bin/uv"), filepath.Join(root, uv)); err != nil {
		return err
	}
	if err := keepOnly(at, "pyenv"); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "Making the warm interpreter.")
	if err := errors.Join(os.Mkdir(data, 0o755), os.Chown(data, user, user)); err != nil {
		return err
	}
	if err := runIn(ctx, root, data, "/usr/local/bin/cove", "run", "--quiet", "-c", "import pandas; print(pandas.__version__)"); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(data, "templates"), filepath.Join(at, "templates")); err != nil {
		return err
	}
	var err error
	for _, pattern := range []string{"pyenv/.*", "pyenv/*.chosen", "templates/.*", "templates/*/verified.json"} { // of this machine alone
		found, _ := filepath.Glob(filepath.Join(at, pattern)) // the patterns are well-formed
		for _, path := range found {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// keepOnly removes everything in a folder but one entry.
func keepOnly(folder, kept string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if e.Name() != kept {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
		}
	}
	return err
}

// runIn runs a command with the folder root as its root and data at /data, in namespaces of its own for mounts and processes: as the image's user, or with data "" as root. That is not chroot's: who is in a
// changed root may make no user namespace, which cove needs as an ordinary user. With a data folder outside of it the root is an overlay, as that of a container is, of which nothing is kept: gVisor
// remembers in a checkpoint what kind of file system its mounts are on, and restores it on no other.
func runIn(ctx context.Context, root, data string, command ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{inside, root, data}, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// runInside is what this program does when runIn has started it.
func runInside(ctx context.Context, root string, args []string) error {
	if len(args) < 2 {
		return errors.New("no command")
	}
	data, command := args[0], args[1:]
	if err := enter(root, data); err != nil {
		return fmt.Errorf("enter %s: %w", root, err)
	}
	home, running := "/data", "/data/run"
	if strings.HasPrefix(data, root) {
		home, running = strings.TrimPrefix(data, root), "/tmp/run"
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", os.Stdout, os.Stderr
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "COVE_HOME=" + home, "COVE_RUNTIME=" + running, "COVE_AHEAD=" + aheadFolder,
	}
	for _, v := range os.Environ() { // where packages come from
		if name, _, _ := strings.Cut(v, "="); (strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "UV_") || strings.HasSuffix(strings.ToLower(name), "_proxy")) && name != "PIP_FIND_LINKS" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if data != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	return cmd.Run()
}

// enter makes root the root of this process, with what programs expect beside files, and data; see runIn. Nothing of it is seen outside, or stays.
func enter(root, data string) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := mountRoot(root, data); err != nil {
		return err
	}
	for _, name := range []string{"/tmp", "/.former"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return err
		}
	}
	err := errors.Join(
		unix.Mount("proc", filepath.Join(root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
		unix.Mount("/dev", filepath.Join(root, "dev"), "", unix.MS_BIND|unix.MS_REC, ""),
		unix.Mount("/sys", filepath.Join(root, "sys"), "", unix.MS_BIND|unix.MS_REC, ""),
		unix.Mount("tmp", filepath.Join(root, "tmp"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
	)
	for _, file := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"} {
		if _, missing := os.Stat(file); missing != nil {
			continue
		}
		f, create := os.OpenFile(filepath.Join(root, file), os.O_CREATE|os.O_RDONLY, 0o644)
		if create == nil {
			create = f.Close()
		}
		err = errors.Join(err, create, unix.Mount(file, filepath.Join(root, file), "", unix.MS_BIND, ""))
	}
	if err != nil {
		return err
	}
	if err := unix.PivotRoot(root, filepath.Join(root, ".former")); err != nil {
		return err
	}
	return errors.Join(os.Chdir("/"), unix.Unmount("/.former", unix.MNT_DETACH))
}

// mountRoot mounts at root what becomes the root: the folder itself, or an overlay of it with data at /data.
func mountRoot(root, data string) error {
	if data == "" || strings.HasPrefix(data, root) {
		return unix.Mount(root, root, "", unix.MS_BIND, "")
	}
	upper, work := data+".upper", data+".work" // beside data, on the same disk
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("overlay", root, "overlay", 0, "lowerdir="+root+",upperdir="+upper+",workdir="+work); err != nil {
		return err
	}
	return unix.Mount(data, filepath.Join(root, "data"), "", unix.MS_BIND, "")
}
