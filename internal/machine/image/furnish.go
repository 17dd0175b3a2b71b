package image

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"cove/internal/machine/rootfs"
	"cove/internal/machine/wire"
)

// User of sandboxed code in every image, and its home.
const (
	sandboxUser = 1000
	userName    = "user"
	userHome    = "home/user"
)

// mostTable bounds the tables of users and groups of an image that are kept, in bytes.
const mostTable = 1 << 20

// furnish puts into an unpacked image what sandboxes need there: the user of code, names and addresses, and the authorities that this machine trusts where the image trusts none.
func (u *unpacking) furnish() error {
	shell := "/bin/sh"
	if u.isFile("bin/bash") {
		shell = "/bin/bash"
	}
	t := rootfs.Tree{}
	t.Network()
	t.Users(sandboxUser, "/"+userHome, shell, u.lines("etc/passwd", "root", userName), u.lines("etc/group", "root", userName))
	users := t["/etc/passwd"]
	users.Text = strings.Replace(users.Text, "/"+userHome+":/bin/bash", "/"+userHome+":"+shell, 1)
	t["/etc/passwd"] = users
	for p, e := range t {
		if err := u.put(strings.TrimPrefix(p, "/"), e.Text); err != nil {
			return err
		}
	}
	certificates := strings.TrimPrefix(wire.SystemCertificates, "/")
	if u.isFile(certificates) {
		return nil
	}
	text, err := os.ReadFile(wire.SystemCertificates)
	if err != nil {
		return nil //nolint:nilerr // this machine has none
	}
	return u.put(certificates, string(text))
}

// put writes a file, in the place of what the image has there.
func (u *unpacking) put(p, text string) error {
	folder, base := path.Split(p)
	above, err := u.open(strings.TrimSuffix(folder, "/"), true)
	if err != nil {
		return u.fault(p, err)
	}
	if err := above.RemoveAll(base); err != nil {
		return err
	}
	f, err := above.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Chmod(0o644), f.Close())
}

// lines are those of a table of the image whose names are others, without what is no line of such a table.
func (u *unpacking) lines(table string, names ...string) string {
	f, err := u.lookUp(table)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostTable))
	if err != nil {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if name, _, ok := strings.Cut(line, ":"); ok && !slices.Contains(append(names, "nobody", "nogroup"), name) {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// lookUp opens a file of the image, where its links lead within it. It is a regular file.
func (u *unpacking) lookUp(p string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(u.root, strings.TrimPrefix(p, "/"), &how)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), p)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid, f.Close())
	}
	return f, nil
}

func (u *unpacking) isFile(p string) bool {
	f, err := u.lookUp(p)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// usualPath is where programs are looked for in an image that does not say so.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var pythonName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^python3\.(\d{1,2})$`) })

// python finds the image's interpreter: what python3, or python, is by its PATH. Which version that is says the name of the file that it leads to.
func (u *unpacking) python(searched string) Python {
	if searched == "" {
		searched = usualPath
	}
	for _, name := range []string{"python3", "python"} {
		for folder := range strings.SplitSeq(searched, ":") {
			if !path.IsAbs(folder) {
				continue
			}
			at := path.Join(folder, name)
			f, err := u.lookUp(at)
			if err != nil {
				continue
			}
			info, statErr := f.Stat()
			leads, linkErr := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
			_ = f.Close()
			found := pythonName().FindStringSubmatch(path.Base(leads))
			if errors.Join(statErr, linkErr) != nil || info.Mode()&0o111 == 0 || found == nil {
				continue
			}
			minor, _ := strconv.Atoi(found[1]) // digits
			return Python{Path: at, Minor: minor}
		}
	}
	return Python{}
}

// Table returns the table passwd or group of an image, with another number for the user of sandboxed code.
func Table(root, name string, user int) (string, error) {
	text, err := os.ReadFile(path.Join(root, "etc", name)) // as furnish has made it
	if err != nil {
		return "", err
	}
	was, now := strconv.Itoa(sandboxUser)+":", strconv.Itoa(user)+":"
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, userName+":x:"+was); is {
			line = userName + ":x:" + now + strings.Replace(rest, was, now, 1)
		}
		out.WriteString(line)
	}
	return out.String(), nil
}
