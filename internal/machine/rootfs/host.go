package rootfs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// largestCopied bounds one file that is copied of the host's /etc, in bytes.
const largestCopied = 1 << 20

// Programs adds the links at the root that lead into /usr, and returns the folders of the host with programs and libraries, each of which is to be shown at its own path.
func (t Tree) Programs() (shown []string) {
	shown = []string{"/usr"}
	for _, p := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		fi, err := os.Lstat(p)
		if err != nil {
			continue
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			if target, err := os.Readlink(p); err == nil {
				t.Link(target, p)
			}
			continue
		}
		shown = append(shown, p)
	}
	return shown
}

// Tables returns the folders of the host's /etc that programs read, each of which is to be shown at its own path where it is not copied.
func Tables() (shown []string) {
	for _, p := range []string{"/etc/alternatives", "/etc/fonts", "/etc/ssl"} {
		if fi, err := os.Stat(p); err == nil && fi.IsDir() {
			shown = append(shown, p)
		}
	}
	return shown
}

// Configuration adds the little of /etc that is the same in every sandbox with that layer of system packages ("": none).
func (t Tree) Configuration(layer string) {
	maps.Copy(t, Settings())
	for _, root := range []string{"/", layer} {
		if libraries, err := os.ReadFile(filepath.Join(root, "/etc/ld.so.cache")); err == nil && root != "" {
			t.File("/etc/ld.so.cache", string(libraries))
		}
	}
	t.Network()
}

// Network adds what programs read of names and addresses, which is the same in every sandbox.
func (t Tree) Network() {
	t.File("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n")
	// An address that leads nowhere. In a session with a network, the guest answers for it.
	t.File("/etc/resolv.conf", "nameserver 198.18.0.1\n")
	t.File("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
	t.File("/etc/hostname", "sandbox\n")
}

// Users adds the tables of users and groups: root with this shell, and the user of sandboxed code with that number and that home. more and moreGroups are further lines.
func (t Tree) Users(number int, home, shell, more, moreGroups string) {
	user := strconv.Itoa(number)
	t.File("/etc/passwd", "root:x:0:0:root:/root:"+shell+"\nuser:x:"+user+":"+user+":user:"+home+":/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"+more)
	t.File("/etc/group", "root:x:0:\nuser:x:"+user+":\nnogroup:x:65534:\n"+moreGroups)
}

// Settings are what of the host's /etc programs in /usr do not start without, since Debian has links there in their folders: R's, and those of its Java runtimes. They are read once, and what is large
// is left out (lists for browsers): every sandbox that is made has them in its root file system.
var Settings = sync.OnceValue(func() Tree {
	const most, large = 1 << 20, 60 << 10                   // bytes
	folders, _ := filepath.Glob("/etc/java-[0-9]*-openjdk") // the pattern is well-formed
	read, left := Tree{}, int64(most)
	for _, p := range append(folders, "/etc/R") {
		left = read.CopyOf(p, left)
	}
	maps.DeleteFunc(read, func(p string, e Entry) bool { return len(e.Text) > large || strings.Contains(p, "/jfr") })
	return read
})

// CopyOf copies what everybody on the host may read of a file or a folder, and returns how many more bytes may be copied. The addresses of apt's sources lose their passwords.
func (t Tree) CopyOf(path string, left int64) int64 { return t.CopyIn("/", path, left) }

// CopyIn is CopyOf for a path in a folder of the host that stands for the root.
func (t Tree) CopyIn(root, path string, left int64) int64 {
	_ = filepath.WalkDir(filepath.Join(root, path), func(from string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is left out
		}
		p := filepath.Join("/", strings.TrimPrefix(from, root))
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // it has just gone
		}
		switch {
		case e.IsDir():
			if info.Mode().Perm()&0o005 != 0o005 {
				return filepath.SkipDir
			}
			t.Dir(p)
		case info.Mode()&fs.ModeSymlink != 0:
			if target, err := os.Readlink(from); err == nil {
				t.Link(target, p)
			}
		case info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 && info.Size() <= min(largestCopied, left):
			text, err := os.ReadFile(from)
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			left -= info.Size()
			if strings.HasPrefix(p, "/etc/apt/sources.list") {
				text = []byte(withoutPasswords(string(text)))
			}
			t[p] = Entry{Kind: "file", Text: string(text), Program: info.Mode().Perm()&0o001 != 0}
		}
		return nil
	})
	return left
}

// SystemLines are those of the host's /etc/passwd or /etc/group about what is no person's and no password's: packages refer to these by name.
func SystemLines(path string) string {
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
