package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"cove/internal/machine/wire"
)

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

// describeEntry describes an entry of the file system.
func describeEntry(asked, full string, fi fs.FileInfo, who *names) wire.Entry {
	n := wire.Entry{Path: spell(asked), Full: spell(full), Kind: kindOf(fi), Mode: uint32(fi.Mode().Perm()), Modified: fi.ModTime().UnixMicro(), Stamp: stamp(fi)}
	if fi.Mode().IsRegular() {
		n.Size = fi.Size()
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		n.Mode = st.Mode & 0o7777
		n.UID, n.GID = int(st.Uid), int(st.Gid)
		n.Owner, n.Group = who.user(n.UID), who.group(n.GID)
		n.Accessed, n.Changed = microsOf(st.Atim), microsOf(st.Ctim)
	}
	if n.Kind != wire.EntryLink {
		n.Attributes = attributes(full)
		return n
	}
	target, err := os.Readlink(full)
	if err != nil {
		return n
	}
	n.Target = spell(target)
	if to, err := filepath.EvalSymlinks(full); err == nil {
		n.Resolved = spell(to)
		if fi, err := os.Stat(to); err == nil {
			n.To = kindOf(fi)
		}
	}
	return n
}

func microsOf(t syscall.Timespec) int64 {
	return time.Unix(t.Unix()).UnixMicro()
}

func kindOf(fi fs.FileInfo) string {
	switch {
	case fi.Mode().IsRegular():
		return wire.EntryFile
	case fi.IsDir():
		return wire.EntryFolder
	case fi.Mode()&fs.ModeSymlink != 0:
		return wire.EntryLink
	}
	return wire.EntryOther
}

// names are the users and groups of the sandbox, as they are when they are first asked for.
type names struct{ users, groups map[int]string }

func (n *names) user(id int) string {
	if n.users == nil {
		n.users = namesIn("/etc/passwd")
	}
	return n.users[id]
}

func (n *names) group(id int) string {
	if n.groups == nil {
		n.groups = namesIn("/etc/group")
	}
	return n.groups[id]
}

// longestNames bounds how much of such a file is read, in bytes: where code may change it, it can be of any size.
const longestNames = 1 << 20

// namesIn reads the names of a file with lines NAME:PASSWORD:ID:...
func namesIn(file string) map[int]string {
	found := map[int]string{}
	f, err := os.Open(file)
	if err != nil {
		return found
	}
	defer func() { _ = f.Close() }()
	text := make([]byte, longestNames)
	n, _ := f.Read(text)
	for line := range strings.Lines(string(text[:n])) {
		fields := strings.Split(line, ":")
		if len(fields) < 3 || !utf8.ValidString(fields[0]) {
			continue
		}
		if id, err := strconv.Atoi(strings.TrimSpace(fields[2])); err == nil && found[id] == "" {
			found[id] = fields[0]
		}
	}
	return found
}

// idOf is the id of a name, or of a number.
func idOf(name, file string) (int, error) {
	if name == "" {
		return -1, nil // unchanged
	}
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(id), nil
	}
	for id, n := range namesIn(file) {
		if n == name {
			return id, nil
		}
	}
	return 0, fault{wire.FaultInvalid, fmt.Sprintf("there is no user or group %.100q in the sandbox", name)}
}

// attributePrefix begins the names of the extended attributes that programs may set.
const attributePrefix = "user."

// attributes returns a file's extended attributes, without their prefix: those that are text, as far as they are within bounds.
func attributes(full string) map[string]string {
	list := make([]byte, 4<<10)
	n, err := syscall.Listxattr(full, list)
	if err != nil || n <= 0 {
		return nil
	}
	var found map[string]string
	left := wire.AttributeLimit
	for raw := range bytes.SplitSeq(list[:n], []byte{0}) {
		name, ok := strings.CutPrefix(string(raw), attributePrefix)
		if !ok || !utf8.ValidString(name) {
			continue
		}
		value := make([]byte, wire.AttributeLimit)
		n, err := syscall.Getxattr(full, string(raw), value)
		if err != nil || len(name)+n > left || !utf8.Valid(value[:n]) {
			continue
		}
		left -= len(name) + n
		if found == nil {
			found = map[string]string{}
		}
		found[name] = string(value[:n])
	}
	return found
}

// setter changes files as a wire.EntrySet says.
type setter struct {
	wire.EntrySet
	uid, gid int // -1: as it is
}

func newSetter(set wire.EntrySet) (s setter, err error) {
	s.EntrySet = set
	if s.uid, err = idOf(set.Owner, "/etc/passwd"); err != nil {
		return s, err
	}
	if s.gid, err = idOf(set.Group, "/etc/group"); err != nil {
		return s, err
	}
	if set.Mode != nil && *set.Mode > 0o7777 {
		return s, fault{wire.FaultInvalid, "a mode has at most the bits 7777 (octal)"}
	}
	size := 0
	for name, value := range set.Attributes {
		size += len(name)
		if value != nil {
			size += len(*value)
		}
		if name == "" || strings.ContainsRune(name, 0) || len(name) > longestName-len(attributePrefix) {
			return s, fault{wire.FaultInvalid, fmt.Sprintf("%.100q cannot be the name of an attribute", name)}
		}
	}
	if size > wire.AttributeLimit {
		return s, fault{wire.FaultInvalid, fmt.Sprintf("the attributes have more than %d bytes", wire.AttributeLimit)}
	}
	return s, nil
}

// apply changes one file. The mode comes last, for it may forbid the rest.
func (s setter) apply(full string, link bool) error {
	for name, value := range s.Attributes {
		var err error
		if value != nil {
			err = syscall.Setxattr(full, attributePrefix+name, []byte(*value), 0)
		} else if err = syscall.Removexattr(full, attributePrefix+name); errors.Is(err, syscall.ENODATA) {
			err = nil
		}
		if errors.Is(err, syscall.ENOTSUP) {
			return fault{wire.FaultDenied, fmt.Sprintf("files at %.300q cannot have attributes", full)}
		}
		if err != nil {
			return &os.PathError{Op: "set an attribute of", Path: full, Err: err}
		}
	}
	if s.uid >= 0 || s.gid >= 0 {
		change := os.Chown
		if link {
			change = os.Lchown
		}
		if err := change(full, s.uid, s.gid); err != nil {
			return err
		}
	}
	if s.Modified != nil {
		if err := os.Chtimes(full, time.Time{}, time.UnixMicro(*s.Modified)); err != nil {
			return err
		}
	}
	if s.Mode != nil {
		return syscall.Chmod(full, *s.Mode)
	}
	return nil
}
