package gvisor

import (
	"os"

	"cove/internal/machine/rootfs"
)

// rootCapabilities are what root has in a sandbox with Limits.System: to install and to configure, for which every file has to be writable and every owner possible.
// None of them opens a part of gVisor that code of any user cannot reach: no mounts, no networks, no devices, no tracing, no namespaces.
var rootCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_AUDIT_WRITE", "CAP_SETFCAP",
}

// mostCopied bounds what is copied of the host's /etc into the root file system of sandboxes, in bytes.
const mostCopied = 16 << 20

// profile is what login shells read (`sh -l`). Unlike Debian's it leaves the PATH that a shell was given, which has the session's Python.
const profile = `: "${PATH:=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
export PATH
if [ -n "$PS1" ] && [ -n "$BASH" ] && [ "$BASH" != /bin/sh ] && [ -r /etc/bash.bashrc ]; then
	. /etc/bash.bashrc
fi
for i in /etc/profile.d/*.sh; do
	if [ -r "$i" ]; then
		. "$i"
	fi
done
unset i
`

// changeable makes the system one that root may change. What is mounted of the host gets a layer of the sandbox's own on top, one for each mount, which gVisor keeps in files
// of the instance. So there are few mounts: what is small is copied into the root file system.
func (b *bundle) changeable(layer string) {
	b.entries.Dir("/root")
	b.entries.Dir("/var/tmp")
	b.entries.Dir("/var/cache/apt/archives/partial")
	b.entries.Dir("/var/lib/apt/lists/partial")
	b.entries.Dir("/var/log/apt")
	b.entries.Dir("/opt")
	b.entries.Dir("/srv")
	left := int64(mostCopied)
	for _, p := range []string{
		"/etc/alternatives", "/etc/fonts", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/os-release", "/etc/debian_version",
		"/etc/login.defs", "/etc/adduser.conf", "/etc/deluser.conf", "/etc/debconf.conf", "/etc/default", "/etc/skel", "/etc/shells", "/etc/profile.d", "/etc/bash.bashrc", "/etc/services",
		"/etc/protocols", "/etc/mime.types", "/etc/magic", "/etc/locale.alias", "/etc/dpkg", "/etc/apt/trusted.gpg.d", "/etc/apt/keyrings", "/etc/apt/preferences.d",
		"/etc/apt/sources.list", "/etc/apt/sources.list.d", "/etc/update-motd.d", "/etc/init.d", "/etc/cron.d", "/etc/cron.daily", "/etc/logrotate.d", "/etc/pam.d", "/etc/pam.conf", "/etc/security/limits.conf",
		"/etc/perl", "/etc/python3", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/gss", "/etc/libaudit.conf", "/etc/rmt", "/etc/terminfo", "/etc/xattr.conf", "/etc/X11",
	} {
		left = b.entries.CopyOf(p, left)
	}
	// apt changes to a user of its own for downloads, which has no way to the folders of an unprivileged cove.
	b.entries.File("/etc/apt/apt.conf.d/10cove", "APT::Sandbox::User \"root\";\nAPT::Install-Recommends \"false\";\nDpkg::Use-Pty \"0\";\n")
	b.entries.File("/etc/profile", profile)
	if fi, err := os.Stat("/var/lib/dpkg"); err == nil && fi.IsDir() {
		b.mount("/var/lib/dpkg", rootfs.SystemPlace(layer, "/var/lib/dpkg"))
	}
}
