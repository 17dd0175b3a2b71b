package gvisor

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// rootCapabilities are what root has in a sandbox with Limits.System: to install and to configure, for which every file has to be writable and every owner possible.
// None of them opens a part of gVisor that code of any user cannot reach: no mounts, no networks, no devices, no tracing, no namespaces.
var rootCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_AUDIT_WRITE", "CAP_SETFCAP",
}

// Bounds of what is copied of the host's /etc into the root file system of sandboxes.
const (
	largestCopied = 1 << 20 // bytes of one file
	mostCopied    = 16 << 20
)

// changeable makes the system one that root may change. What is mounted of the host gets a layer of the sandbox's own on top, one for each mount, which gVisor keeps in files
// of the instance. So there are few mounts: what is small is copied into the root file system.
func (b *bundle) changeable() {
	b.layered = true
	b.dir("/root")
	b.dir("/var/tmp")
	b.dir("/var/cache/apt/archives/partial")
	b.dir("/var/lib/apt/lists/partial")
	b.dir("/var/log/apt")
	b.dir("/opt")
	b.dir("/srv")
	left := int64(mostCopied)
	for _, p := range []string{
		"/etc/alternatives", "/etc/fonts", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/os-release", "/etc/debian_version",
		"/etc/login.defs", "/etc/adduser.conf", "/etc/deluser.conf", "/etc/debconf.conf", "/etc/default", "/etc/skel", "/etc/shells", "/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/services",
		"/etc/protocols", "/etc/mime.types", "/etc/magic", "/etc/locale.alias", "/etc/dpkg", "/etc/apt/trusted.gpg.d", "/etc/apt/keyrings", "/etc/apt/preferences.d",
		"/etc/apt/sources.list", "/etc/apt/sources.list.d", "/etc/update-motd.d", "/etc/init.d", "/etc/cron.d", "/etc/cron.daily", "/etc/logrotate.d", "/etc/pam.d", "/etc/pam.conf", "/etc/security/limits.conf",
		"/etc/perl", "/etc/python3", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/gss", "/etc/libaudit.conf", "/etc/rmt", "/etc/terminfo", "/etc/xattr.conf", "/etc/X11",
	} {
		left = b.copyOf(p, left)
	}
	// apt changes to a user of its own for downloads, which has no way to the folders of an unprivileged cove.
	b.file("/etc/apt/apt.conf.d/10cove", "APT::Sandbox::User \"root\";\nAPT::Install-Recommends \"false\";\nDpkg::Use-Pty \"0\";\n")
	if fi, err := os.Stat("/var/lib/dpkg"); err == nil && fi.IsDir() {
		b.mount("/var/lib/dpkg", "/var/lib/dpkg")
	}
}

// settings are what of the host's /etc programs in /usr do not start without, since Debian has links there in their folders: R's, and those of its Java runtimes. They are read once, and what is large
// is left out (lists for browsers): every sandbox that is made has them in its root file system.
var settings = sync.OnceValue(func() map[string]entry {
	const most, large = 1 << 20, 60 << 10                   // bytes
	folders, _ := filepath.Glob("/etc/java-[0-9]*-openjdk") // the pattern is well-formed
	read, left := &bundle{entries: map[string]entry{}}, int64(most)
	for _, p := range append(folders, "/etc/R") {
		left = read.copyOf(p, left)
	}
	maps.DeleteFunc(read.entries, func(p string, e entry) bool { return len(e.Text) > large || strings.Contains(p, "/jfr") })
	return read.entries
})

// copyOf copies what everybody on the host may read of a file or a folder, and returns how many more bytes may be copied. The addresses of apt's sources lose their passwords.
func (b *bundle) copyOf(path string, left int64) int64 {
	_ = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is left out
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // it has just gone
		}
		switch {
		case e.IsDir():
			if info.Mode().Perm()&0o005 != 0o005 {
				return filepath.SkipDir
			}
			b.dir(p)
		case info.Mode()&fs.ModeSymlink != 0:
			if target, err := os.Readlink(p); err == nil {
				b.symlink(target, p)
			}
		case info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 && info.Size() <= min(largestCopied, left):
			text, err := os.ReadFile(p)
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			left -= info.Size()
			if strings.HasPrefix(p, "/etc/apt/sources.list") {
				text = []byte(withoutPasswords(string(text)))
			}
			b.entries[p] = entry{Kind: "file", Text: string(text), Program: info.Mode().Perm()&0o001 != 0}
		}
		return nil
	})
	return left
}

// systemLines are those of the host's /etc/passwd or /etc/group about what is no person's and no password's: packages refer to these by name.
func systemLines(path string) string {
	const firstPerson = 1000
	text, _ := os.ReadFile(path)
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(fields) < 4 {
			continue
		}
		if id, err := strconv.Atoi(fields[2]); err != nil || id == 0 || id >= firstPerson {
			continue
		}
		fields[1] = "x"
		if path == "/etc/group" {
			fields[3] = "" // its members
		}
		out.WriteString(strings.Join(fields, ":") + "\n")
	}
	return out.String()
}

// withoutPasswords takes NAME:PASSWORD@ out of the addresses in a text.
func withoutPasswords(text string) string {
	var out strings.Builder
	for {
		head, rest, found := strings.Cut(text, "://")
		out.WriteString(head)
		if !found {
			return out.String()
		}
		out.WriteString("://")
		host := rest
		if end := strings.IndexAny(rest, "/ \t\r\n"); end >= 0 {
			host = rest[:end]
		}
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		text = rest
	}
}
