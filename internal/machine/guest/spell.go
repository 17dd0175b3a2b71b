package guest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"cove/internal/machine/wire"
)

// spell returns a path as the host is told it, which is text: in names that are not UTF-8, as unzip makes of archives of other systems, each byte that is of no
// character is %XX, and so is a percent sign.
func spell(p string) string {
	if utf8.ValidString(p) {
		return p
	}
	names := strings.Split(p, "/")
	for i, name := range names {
		if utf8.ValidString(name) {
			continue
		}
		var b strings.Builder
		for len(name) > 0 {
			r, size := utf8.DecodeRuneInString(name)
			if r == '%' || r == utf8.RuneError && size == 1 {
				fmt.Fprintf(&b, "%%%02X", name[0])
			} else {
				b.WriteString(name[:size])
			}
			name = name[size:]
		}
		names[i] = b.String()
	}
	return strings.Join(names, "/")
}

// unspell returns the name that spell has made into another, if there is one.
func unspell(name string) (raw string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if c, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	raw = b.String()
	return raw, raw != name && spell(raw) == name
}

// meant returns the path that the host means, with the names that spell has changed as they are. What is there under the name as the host says it comes first.
func (g *guest) meant(p string) string {
	if !strings.Contains(p, "%") {
		return p
	}
	at, names := g.workspace, strings.Split(p, "/")
	if path.IsAbs(p) {
		at = "/"
	}
	for i, name := range names {
		if raw, ok := unspell(name); ok && !isThere(path.Join(at, name)) && isThere(path.Join(at, raw)) {
			names[i] = raw
		}
		at = path.Join(at, names[i])
	}
	return strings.Join(names, "/")
}

func isThere(full string) bool {
	_, err := os.Lstat(full)
	return err == nil
}

// speakable says whether the host can say the name of something in a folder: there may be another thing with the name that spell makes of it.
func (g *guest) speakable(folder, name string) bool {
	if utf8.ValidString(name) {
		return true
	}
	full := path.Join(folder, name)
	return g.meant(spell(full)) == full
}

// understand has the paths of a request about files be those that the host means.
func (g *guest) understand(req *wire.Request) error {
	paths, as := []*string{&req.Path, &req.To}, g.asUser
	if f := req.Files; f != nil {
		paths = append(paths, &f.Path, &f.To)
		for i := range f.Paths {
			paths = append(paths, &f.Paths[i])
		}
		var err error
		if as, err = g.rightsFor(*f); err != nil {
			return err
		}
	}
	some := false
	for _, p := range paths {
		some = some || strings.Contains(*p, "%")
	}
	if !some {
		return nil
	}
	return as(func() error {
		for _, p := range paths {
			*p = g.meant(*p)
		}
		return nil
	})
}

// followed returns the path in the workspace that a path leads to over symlinks. One that leads out, or to nothing, stays as it is, and using it is refused.
func (g *guest) followed(p string) string {
	top, err := filepath.EvalSymlinks(g.workspace)
	if err != nil {
		return p
	}
	full, err := filepath.EvalSymlinks(path.Join(g.workspace, p))
	if below, inside := strings.CutPrefix(full, top+"/"); err == nil && inside {
		return below
	}
	return p
}
