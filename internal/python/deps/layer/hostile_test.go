package layer_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/deps/layer"
)

func named(name string) distribution { return dist("evil", name, "text\n") }

// with is a distribution of which one file is described oddly.
func with(header func(*zip.FileHeader)) distribution {
	d := dist("evil", "evil.py", "text\n")
	d.files = append(d.files, file{name: "odd.py", text: "text\n", header: header})
	return d
}

// unlisted writes a file that RECORD describes in an odd way.
func unlisted(record string) distribution {
	d := dist("evil", "evil.py", "text\n")
	d.files = append(d.files, file{name: "odd.py", text: "text\n", record: record})
	return d
}

func twice(a, b string) distribution { return dist("evil", a, "one\n", b, "two\n") }

// hostile lists wheels whose archive is in order and whose content is not, with what is said about them.
func hostile() map[string]struct {
	dist distribution
	why  string
} {
	return map[string]struct {
		dist distribution
		why  string
	}{
		"up":                    {named("../evil.py"), "leads elsewhere"},
		"up inside":             {named("a/../../evil.py"), "leads elsewhere"},
		"here":                  {named("./evil.py"), "leads elsewhere"},
		"nothing between":       {named("a//evil.py"), "leads elsewhere"},
		"absolute":              {named("/etc/evil.py"), "is absolute"},
		"drive":                 {named("C:evil.py"), "is absolute"},
		"backslash":             {named(`..\evil.py`), "backslash"},
		"NUL":                   {named("evil.py\x00.txt"), "control character"},
		"line end":              {named("evil\n.py"), "control character"},
		"escape":                {named("evil\x1b[2J.py"), "control character"},
		"long part":             {named(strings.Repeat("x", 256) + ".py"), "too long"},
		"long path":             {named(strings.Repeat("xxxxxxx/", 200) + "x.py"), "too long"},
		"deep path":             {named(strings.Repeat("x/", 70) + "x.py"), "too long"},
		"bad encoding":          {named("evil\xff.py"), "not in UTF-8"},
		"up after merging":      {named("evil-1.0.data/purelib/../../evil.py"), "leads elsewhere"},
		"twice":                 {twice("evil.py", "evil.py"), "twice"},
		"twice after merging":   {twice("evil.py", "evil-1.0.data/purelib/evil.py"), "twice"},
		"two merged":            {twice("evil-1.0.data/platlib/evil.py", "evil-1.0.data/purelib/evil.py"), "twice"},
		"file and folder":       {twice("evil", "evil/x.py"), "a file and a folder"},
		"folder, then file":     {twice("evil/x.py", "evil"), "a file and a folder"},
		"symlink":               {with(func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink | 0o777) }), "not an ordinary file"},
		"device":                {with(func(h *zip.FileHeader) { h.SetMode(os.ModeDevice | 0o666) }), "not an ordinary file"},
		"fifo":                  {with(func(h *zip.FileHeader) { h.SetMode(os.ModeNamedPipe | 0o666) }), "not an ordinary file"},
		"socket":                {with(func(h *zip.FileHeader) { h.SetMode(os.ModeSocket | 0o666) }), "not an ordinary file"},
		"folder by mode":        {with(func(h *zip.FileHeader) { h.SetMode(os.ModeDir | 0o755) }), "not an ordinary file"},
		"symlinked folder":      {distribution{name: "evil", version: "1.0", files: []file{{name: "odd/", header: func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink) }}}}, "not a folder"},
		"encrypted":             {with(func(h *zip.FileHeader) { h.Flags |= 1 }), "encrypted"},
		"another name":          {with(func(h *zip.FileHeader) { h.Extra = []byte("\x75\x70\x0a\x00\x01....up.py") }), "another name"},
		"not in RECORD":         {unlisted("-"), "does not list"},
		"wrong hash":            {unlisted(hashOf("other")), "not the file that its RECORD describes"},
		"weak hash":             {unlisted("md5=rL0Y20zC-Fzt72VPzMSk2A"), "no SHA-256"},
		"no hash":               {unlisted(" "), "no SHA-256"},
		"two hashes":            {distribution{name: "evil", version: "1.0", noInfo: true, files: metadata("evil-1.0", "evil", "1.0", "x,sha256=a,\nx,sha256=b,\n")}, "two hashes"},
		"no metadata":           {distribution{name: "evil", version: "1.0", noInfo: true, files: []file{{name: "evil.py"}}}, "no folder of metadata"},
		"two folders of it":     {named("evil-2.0.dist-info/METADATA"), "two folders"},
		"two folders, merged":   {named("evil-1.0.data/purelib/good-1.0.dist-info/METADATA"), "two folders"},
		"metadata of another":   {distribution{name: "evil", version: "1.0", noInfo: true, files: metadata("good-1.0", "good", "1.0")}, "another distribution"},
		"other version":         {distribution{name: "evil", version: "1.0", noInfo: true, files: metadata("evil-2.0", "evil", "2.0")}, "another distribution"},
		"claims another name":   {distribution{name: "evil", version: "1.0", noInfo: true, files: metadata("evil-1.0", "good", "1.0")}, `it says that it is "good"`},
		"no RECORD":             {distribution{name: "evil", version: "1.0", noInfo: true, files: metadata("evil-1.0", "evil", "1.0")[:2]}, "no RECORD"},
		"format of another day": {distribution{name: "evil", version: "1.0", noInfo: true, files: append(metadata("evil-1.0", "evil", "1.0"), file{name: "evil-1.0.dist-info/WHEEL", text: "Wheel-Version: 2.0\n"})}, "twice"},
		"bomb":                  {dist("evil", "evil.txt", strings.Repeat("\x00", 160<<20)), "it unpacks to 167.8 MB from"},
	}
}

func metadata(stem, name, version string, record ...string) []file {
	return []file{{name: stem + ".dist-info/METADATA", text: "Name: " + name + "\nVersion: " + version + "\n"}, {name: stem + ".dist-info/WHEEL", text: "Wheel-Version: 1.0\n"},
		{name: stem + ".dist-info/RECORD", text: strings.Join(record, "")}}
}

func TestHostileWheels(t *testing.T) {
	t.Parallel()
	for name, c := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, c.dist, c.dist.pack(t), c.why)
		})
	}
}

// refused makes sure that a wheel is not installed, for that reason, and leaves nothing.
func refused(t *testing.T, d distribution, text []byte, why string) {
	t.Helper()
	x, dir := newIndex(), t.TempDir()
	s := open(t, filepath.Join(dir, "a", "b", "store"), layer.Limits{})
	_, _, err := s.Ensure(t.Context(), closure(t, x.addBytes(d, text)), x.fetch, nil)
	if p := problem.Of(err); p == nil || p.Code != "wheel_invalid" || !strings.Contains(p.Message, why) || p.Hint == "" {
		t.Errorf("got %v, want one with %q", err, why)
	}
	isEmpty(t, s)
	if got := names(t, dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("it wrote elsewhere: %q", got)
	}
}

// TestConfusingArchives changes the bytes of an archive so that readers could see different things in it.
func TestConfusingArchives(t *testing.T) {
	t.Parallel()
	d := dist("evil", "evil.py", "text = 1\n", "more.py", "text = 2\n")
	good := d.pack(t)
	le := binary.LittleEndian
	end := len(good) - 22
	directory := int(le.Uint32(good[end+16:]))
	second := bytes.Index(good[1:], []byte("PK\x03\x04")) + 1
	changed := func(change func(b []byte) []byte) []byte { return change(slices.Clone(good)) }
	// grown puts something before the directory and tells the end record.
	grown := func(at int, extra string, shift bool) []byte {
		b := slices.Insert(slices.Clone(good), at, []byte(extra)...)
		if shift {
			le.PutUint32(b[end+len(extra)+16:], uint32(directory+len(extra)))
		}
		return b
	}
	for name, c := range map[string]struct {
		text []byte
		why  string
	}{
		"no archive":                {[]byte("text"), "not a zip archive"},
		"empty":                     {[]byte{}, "not a zip archive"},
		"cut off":                   {good[:len(good)-1], ""},
		"something before":          {append([]byte("#!/bin/sh\n"), good...), ""},
		"something behind":          {append(slices.Clone(good), 'x'), "after the end of the archive"},
		"another archive behind":    {append(slices.Clone(good), good...), ""},
		"an end record in a remark": {changed(func(b []byte) []byte { le.PutUint16(b[end+20:], 22); return append(b, b[end:end+22]...) }), ""},
		"other name before":         {changed(func(b []byte) []byte { b[30] = 'E'; return b }), "described in two ways"},
		"other name in directory":   {changed(func(b []byte) []byte { b[directory+46] = 'E'; return b }), "described in two ways"},
		"other method":              {changed(func(b []byte) []byte { b[8] = 0; return b }), "described in two ways"},
		"unknown method":            {changed(func(b []byte) []byte { b[8], b[directory+10] = 14, 14; return b }), "compressed in a way"},
		"longer than it says":       {changed(func(b []byte) []byte { b[directory+24]--; return b }), ""},
		"shorter than it says":      {changed(func(b []byte) []byte { b[directory+24]++; return b }), ""},
		"wrong checksum":            {changed(func(b []byte) []byte { b[directory+16]++; return b }), "damaged"},
		"changed content":           {changed(func(b []byte) []byte { b[30+len("evil.py")+3]++; return b }), ""},
		"overlapping":               {changed(func(b []byte) []byte { le.PutUint32(b[directory+42:], uint32(second)); return b }), ""},
		"one body for all":          {changed(overlap), ""},
		"hidden between":            {grown(second, strings.Repeat("x", 40), true), ""},
		"hidden before directory":   {grown(directory, strings.Repeat("x", 40), true), "hidden"},
		"hidden in the directory":   {changed(func(b []byte) []byte { b[end+8]--; b[end+10]--; return b }), "holds more than it says"},
		"more than there are":       {changed(func(b []byte) []byte { b[end+8]++; b[end+10]++; return b }), "damaged"},
		"several parts":             {changed(func(b []byte) []byte { b[end+4]++; return b }), "one part of a split archive"},
		"directory elsewhere":       {changed(func(b []byte) []byte { le.PutUint32(b[end+16:], uint32(directory-1)); return b }), "not where"},
		"directory far away":        {changed(func(b []byte) []byte { le.PutUint32(b[end+16:], 1<<31); return b }), "not where"},
		"huge count":                {changed(func(b []byte) []byte { le.PutUint16(b[end+8:], 0xfffe); le.PutUint16(b[end+10:], 0xfffe); return b }), "damaged"},
		"two end records":           {twoEnds(good), "two end records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, d, c.text, c.why)
		})
	}
}

// overlap has every entry of the directory describe the first file's bytes.
func overlap(b []byte) []byte {
	for at := int(binary.LittleEndian.Uint32(b[len(b)-6:])) + 1; ; at++ {
		next := bytes.Index(b[at:], []byte("PK\x01\x02"))
		if next < 0 {
			return b
		}
		at += next
		binary.LittleEndian.PutUint32(b[at+42:], 0)
	}
}

// twoEnds adds a ZIP64 end record that says something else than the ordinary one.
func twoEnds(good []byte) []byte {
	le := binary.LittleEndian
	end := len(good) - 22
	rec := make([]byte, 56+20)
	copy(rec, "PK\x06\x06")
	le.PutUint64(rec[4:], 44)
	le.PutUint64(rec[32:], 1)
	le.PutUint64(rec[40:], 46)
	le.PutUint64(rec[48:], uint64(end-46))
	copy(rec[56:], "PK\x06\x07")
	le.PutUint64(rec[64:], uint64(end))
	return slices.Concat(good[:end], rec, good[end:])
}

// TestUnusualArchives has archives that are right, if rarely seen.
func TestUnusualArchives(t *testing.T) {
	t.Parallel()
	plain := func(h *zip.FileHeader) { h.Method = zip.Store }
	d := dist("odd", "odd/", "", "odd/__init__.py", "x = 1\n", "odd/Größe.txt", "umlaut", "odd/a,b\"c.txt", "quotes", "Odd.py", "", "odd.PY", "")
	d.files = append(d.files, file{name: "odd/stored.txt", text: "as it is", header: plain}, file{name: "odd/empty.txt", header: plain},
		file{name: "odd/two.py", text: "x = 2\n", header: func(h *zip.FileHeader) { h.Extra = []byte("UT\x05\x00\x01\x00\x00\x00\x00") }})
	d.files[3].record = "-" // its name is not quoted as it should be by the builder
	d.files = slices.Delete(d.files, 3, 4)
	text := d.pack(t)
	remark := append(slices.Clone(text), "made on a Monday"...)
	binary.LittleEndian.PutUint16(remark[len(text)-2:], uint16(len("made on a Monday")))
	for name, b := range map[string][]byte{"as it is": text, "with a remark": remark, "ZIP64": large(text)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
			l := ensure(t, s, closure(t, x.addBytes(d, b)), x)
			got := contents(t, filepath.Join(s.Folder(), l.Name))
			if got["odd/Größe.txt"] != "umlaut" || got["odd/stored.txt"] != "as it is" || got["odd/two.py"] != "x = 2\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// large gives an archive the end record of big ones.
func large(good []byte) []byte {
	le := binary.LittleEndian
	end := len(good) - 22
	rec := make([]byte, 56+20)
	copy(rec, "PK\x06\x06")
	le.PutUint64(rec[4:], 44)
	le.PutUint64(rec[32:], uint64(le.Uint16(good[end+10:])))
	le.PutUint64(rec[40:], uint64(le.Uint32(good[end+12:])))
	le.PutUint64(rec[48:], uint64(le.Uint32(good[end+16:])))
	copy(rec[56:], "PK\x06\x07")
	le.PutUint64(rec[64:], uint64(end))
	out := slices.Concat(good[:end], rec, good[end:])
	le.PutUint32(out[len(out)-6:], 0xffffffff)
	return out
}

func TestRefusesNonsense(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	good := x.add(t, dist("spam", "spam.py", ""))
	change := func(f func(*layer.Wheel)) layer.Wheel { w := good; f(&w); return w }
	for name, c := range map[string]struct {
		wheels []layer.Wheel
		code   string
	}{
		"nothing":       {nil, "closure_invalid"},
		"one twice":     {[]layer.Wheel{good, good}, "closure_invalid"},
		"no hash":       {[]layer.Wheel{change(func(w *layer.Wheel) { w.SHA256 = "" })}, "wheel_invalid"},
		"a path":        {[]layer.Wheel{change(func(w *layer.Wheel) { w.SHA256 = strings.Repeat("../", 21) + "x" })}, "wheel_invalid"},
		"capitals":      {[]layer.Wheel{change(func(w *layer.Wheel) { w.Name = "Spam" })}, "wheel_invalid"},
		"other file":    {[]layer.Wheel{change(func(w *layer.Wheel) { w.File = "eggs-1.0-py3-none-any.whl" })}, "wheel_invalid"},
		"other version": {[]layer.Wheel{change(func(w *layer.Wheel) { w.Version = "2" })}, "wheel_invalid"},
		"no wheel":      {[]layer.Wheel{change(func(w *layer.Wheel) { w.File = "spam-1.0.tar.gz" })}, "wheel_invalid"},
	} {
		if _, _, err := s.Ensure(t.Context(), closure(t, c.wheels...), x.fetch, nil); problem.Of(err) == nil || problem.Of(err).Code != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
		if _, ok := s.Find(closure(t, c.wheels...)); ok {
			t.Errorf("%s: found", name)
		}
	}
}

// FuzzArchive is run with "go test -tags fuzz -fuzz FuzzArchive": the tag leaves out gVisor, which cannot be instrumented.
func FuzzArchive(f *testing.F) {
	d := dist("evil", "evil.txt", "text = 1\n", "more/x.txt", strings.Repeat("text", 100))
	f.Add(d.pack(f))
	f.Add(large(d.pack(f)))
	s := open(f, f.TempDir(), layer.Limits{Files: 100, Unpacked: 1 << 20})
	f.Fuzz(func(t *testing.T, text []byte) {
		x := newIndex()
		_, _, err := s.Ensure(t.Context(), closure(t, x.addBytes(d, text)), x.fetch, nil)
		if p := problem.Of(err); p != nil && p.Code != "wheel_invalid" && p.Code != "closure_too_big" {
			t.Errorf("got %v", err)
		}
		if got := names(t, filepath.Join(filepath.Dir(s.Folder()), "work")); len(got) > 0 {
			t.Errorf("left in work: %q", got)
		}
	})
}
