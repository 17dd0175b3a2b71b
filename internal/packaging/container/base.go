package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"cove/internal/packaging/gobuild"
)

// distributions are what the image has of Debian beside cove, with what they depend on: a Python, and the programs that code in sandboxes, which see this system's, is used to.
func distributions() []string {
	return []string{
		"base-files", "base-passwd", "netbase", "tzdata", "ca-certificates", "openssl",
		"bash", "dash", "coreutils", "findutils", "grep", "sed", "mawk", "diffutils", "patch", "file", "less", "procps", "util-linux",
		"tar", "gzip", "bzip2", "xz-utils", "zip", "unzip", "curl", "git", "jq", "sqlite3", "libc-bin", "libgomp1", "libstdc++6",
		"python3", "python3-venv",
	}
}

// user is who cove runs as in the image, and owns what it writes to.
const user = 1000

func ownArchitecture() string { return runtime.GOARCH }

// base unpacks the packages into root. No script of a package is run, so that neither the machine that builds nor its architecture matter: what their scripts would make is made here.
func (m maker) base(ctx context.Context, arch, dir, root string) error {
	debs, err := m.download(ctx, arch, filepath.Join(dir, "apt"))
	if err != nil {
		return err
	}
	for _, name := range []string{"bin", "sbin", "lib"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "usr", name), 0o755), os.Symlink("usr/"+name, filepath.Join(root, name))); err != nil {
			return err
		}
	}
	if arch == "amd64" {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "usr/lib64"), 0o755), os.Symlink("usr/lib64", filepath.Join(root, "lib64"))); err != nil {
			return err
		}
	}
	for _, deb := range debs {
		if err := gobuild.Run(exec.CommandContext(ctx, "dpkg-deb", "-x", deb, root)); err != nil {
			return err
		}
	}
	if err := configure(root); err != nil {
		return err
	}
	// The linker's cache is of the machine that writes it; without one the linker looks into the folders themselves.
	if arch == ownArchitecture() {
		return gobuild.Run(exec.CommandContext(ctx, "ldconfig", "-r", root, "-X"))
	}
	return nil
}

// download returns the archives of the packages and of what they depend on, from the sources that the machine's apt has, which checks their signatures.
func (m maker) download(ctx context.Context, arch, dir string) ([]string, error) {
	for _, name := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "status"), nil, 0o644); err != nil {
		return nil, err
	}
	apt := func(args ...string) error {
		return gobuild.Run(exec.CommandContext(ctx, "apt-get", append([]string{
			"-qq", "-o", "Dir::State=" + dir + "/state", "-o", "Dir::State::status=" + dir + "/status", "-o", "Dir::Cache=" + dir + "/cache", "-o", "APT::Architecture=" + arch,
			"-o", "APT::Architectures=" + arch, "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=true", "-o", "Dir::Etc::sourceparts=" + dir + "/sources", "-o", "Dir::Etc::sourcelist=/dev/null",
		}, args...)...))
	}
	if err := debianSources(filepath.Join(dir, "sources")); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "Downloading Debian's packages for %s.\n", arch)
	if err := apt("update"); err != nil {
		return nil, err
	}
	if err := apt(append([]string{"install", "-y", "--no-install-recommends", "--download-only"}, distributions()...)...); err != nil {
		return nil, err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "cache/archives/*.deb"))
	slices.Sort(debs)
	return debs, err
}

// debianSources copies those of the machine's sources that are Debian's own. Others, as of a newer Node.js, are of this machine alone.
func debianSources(to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	found := 0
	for _, pattern := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources"} {
		files, _ := filepath.Glob(pattern) // the patterns are well-formed
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if !strings.Contains(string(text), "/debian") {
				continue
			}
			found++
			name := filepath.Base(file)
			if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
				return err
			}
		}
	}
	if found == 0 {
		return errors.New("this machine's apt has no source of Debian's packages; build the image on Debian, or in a container of it")
	}
	return nil
}

// configure makes what the scripts of the packages would have made.
func configure(root string) error {
	at := func(path string) string { return filepath.Join(root, path) }
	tables := map[string]string{"passwd": fmt.Sprintf("cove:x:%d:%d:cove:/data:/usr/sbin/nologin\n", user, user), "group": fmt.Sprintf("cove:x:%d:\n", user)}
	for name, line := range tables {
		text, err := os.ReadFile(at("usr/share/base-passwd/" + name + ".master"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(at("etc/"+name), []byte(strings.ReplaceAll(string(text), ":*:", ":x:")+line), 0o644); err != nil {
			return err
		}
	}
	certificates, err := filepath.Glob(at("usr/share/ca-certificates/mozilla/*.crt"))
	if err != nil {
		return err
	}
	var all []byte
	slices.Sort(certificates)
	for _, file := range certificates {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all = append(all, text...)
	}
	if len(all) == 0 {
		return errors.New("the package ca-certificates has none")
	}
	err = errors.Join(os.MkdirAll(at("etc/ssl/certs"), 0o755), os.WriteFile(at("etc/ssl/certs/ca-certificates.crt"), all, 0o644))
	for link, target := range map[string]string{"usr/bin/awk": "mawk", "usr/bin/pager": "less", "etc/localtime": "/usr/share/zoneinfo/Etc/UTC"} {
		err = errors.Join(err, os.Symlink(target, at(link)))
	}
	if _, missing := os.Lstat(at("bin/sh")); missing != nil {
		err = errors.Join(err, os.Symlink("dash", at("usr/bin/sh")))
	}
	// What cove reads is root's; what it writes to are its data folder, a volume, and /tmp.
	for _, name := range []string{"data", aheadFolder[1:], "proc", "sys", "dev", "run"} {
		err = errors.Join(err, os.MkdirAll(at(name), 0o755))
	}
	if err == nil && os.Geteuid() == 0 {
		err = errors.Join(os.Chown(at("data"), user, user), os.Chown(at(aheadFolder), user, user))
	}
	return errors.Join(err, thin(root))
}

// thin removes what nobody reads in a container, but for the licences.
func thin(root string) error {
	var err error
	for _, pattern := range []string{"doc/*/*", "man/*", "info/*", "locale/*"} {
		found, _ := filepath.Glob(filepath.Join(root, "usr/share", pattern)) // the patterns are well-formed
		for _, path := range found {
			if filepath.Base(path) != "copyright" {
				err = errors.Join(err, os.RemoveAll(path))
			}
		}
	}
	return err
}
