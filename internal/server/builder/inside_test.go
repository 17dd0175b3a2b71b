package builder

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"cove/internal/machine/filesystem"
	"cove/internal/machine/process"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	lookup := func(name string) string { return map[string]string{"A": "1", "B_2": "two"}[name] }
	for text, want := range map[string]string{
		"$A-${B_2}": "1-two", `\$A`: "$A", `\\$A`: `\1`, "${NO:-else}": "else", "${A:-else}": "1", "${A:+then}": "then", "${NO:+then}": "", "$": "$", "$1": "$1", "${A": "${A", "${}": "${}", "$(A)": "$(A)",
		`C:\new`: `C:\new`, "$A$A": "11", "é$A": "é1",
	} {
		if got := expand(text, lookup); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// written is what an archive was unpacked to.
type written map[string]string

func (w written) WritePath(_ context.Context, path string, r io.Reader, set filesystem.Set, _ bool) (filesystem.Entry, error) {
	text, err := io.ReadAll(r)
	w[path] = fmt.Sprintf("%o %s", *set.Mode, text)
	return filesystem.Entry{}, err
}

func (w written) MakePath(_ context.Context, path string, set filesystem.Set, _ bool) (filesystem.Entry, error) {
	w[path] = fmt.Sprintf("folder %o", *set.Mode)
	return filesystem.Entry{}, nil
}

func (w written) LinkPath(_ context.Context, path, target string, _ bool) (filesystem.Entry, error) {
	w[path] = "link " + target
	return filesystem.Entry{}, nil
}

func (w written) CopyPath(_ context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	w[c.To] = "copy " + c.From
	return filesystem.Entry{}, nil
}

func archive(t *testing.T, packed bool, all ...tar.Header) io.Reader {
	t.Helper()
	var out bytes.Buffer
	to := io.Writer(&out)
	z := gzip.NewWriter(&out)
	if packed {
		to = z
	}
	w := tar.NewWriter(to)
	for _, h := range all {
		text := h.Uname // what tests have in it
		h.Uname = ""
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed {
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return &out
}

func file(name, text string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o4755, Uname: text}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	for _, packed := range []bool{false, true} {
		w := written{}
		all, err := unpack(t.Context(), archive(t, packed,
			tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, tar.Header{Typeflag: tar.TypeSymlink, Name: "d/out", Linkname: "/etc/passwd"}, file("./d/a", "text"), file("e/f/g", ""),
			tar.Header{Typeflag: tar.TypeDir, Name: "e/", Mode: 0o500}, tar.Header{Typeflag: tar.TypeLink, Name: "again", Linkname: "d/a"}), "/stage", w)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"/stage/d/a": "755 text", "/stage/d": "folder 755", "/stage/d/out": "link /etc/passwd", "/stage/e/f/g": "755 ", "/stage/again": "copy /stage/d/a"} {
			if w[path] != want {
				t.Errorf("%s is %q", path, w[path])
			}
		}
		for source, want := range map[string][]string{".": {"."}, "d": {"d"}, "./d/": {"d"}, "d/*": {"d/a", "d/out"}, "e/f": {"e/f"}, "[ad]*": {"again", "d"}} {
			if got, err := all.match(source); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s means %q, %v", source, got, err)
			}
		}
		if _, err := all.match("nothing"); err == nil {
			t.Error("what is not there was found")
		}
	}
}

// TestHostileArchives has archives that lead out of their folder, through their own links, or into too much refused.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	link := tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}
	for name, all := range map[string][]tar.Header{
		"leads out":     {file("../x", "")},
		"leads out of":  {file("a/../../x", "")},
		"out of it":     {file("/etc/passwd", "")},
		"below":         {link, file("l/passwd", "")},
		"no folder":     {file("a", ""), file("a/b", "")},
		"twice":         {file("a", ""), file("a", "")},
		"\"l\" twice":   {link, file("l", "")},
		"\"d\" twice":   {file("d/x", ""), file("d", "")},
		"devices":       {{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}},
		"pipes":         {{Typeflag: tar.TypeFifo, Name: "p"}},
		"not before it": {{Typeflag: tar.TypeLink, Name: "h", Linkname: "../../etc/passwd"}},
		"not before":    {link, {Typeflag: tar.TypeLink, Name: "h", Linkname: "l"}},
		"no path":       {file(strings.Repeat("x", 300), "")},
		"to no path":    {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: strings.Repeat("x", 5000)}},
	} {
		w := written{}
		_, err := unpack(t.Context(), archive(t, true, all...), "/stage", w)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		for path := range w {
			if !strings.HasPrefix(path, "/stage/") {
				t.Errorf("%s: %s was written", name, path)
			}
		}
	}
	many := make([]tar.Header, mostEntries+1)
	for i := range many {
		many[i] = file(fmt.Sprint(i), "")
	}
	if _, err := unpack(t.Context(), archive(t, true, many...), "/stage", written{}); err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("too many: %v", err)
	}
	b := &bounded{strings.NewReader("12345"), 3}
	if text, err := io.ReadAll(b); string(text) != "123" || err == nil {
		t.Errorf("too much: %q, %v", text, err)
	}
	for _, text := range []string{"no archive", "\x1f\x8b broken", strings.Repeat("\x01", 1024)} {
		if _, err := unpack(t.Context(), strings.NewReader(text), "/stage", written{}); err == nil {
			t.Errorf("%.20q was unpacked", text)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var got []string
	l := lines{say: func(_ Level, text string) { got = append(got, text) }}
	for _, data := range []string{"one\ntw", "o\r50%\r100%\n\n", strings.Repeat("x", longestLine+1)} {
		l.take(process.Stdout, []byte(data))
	}
	l.take(process.Stderr, []byte("\x00bad\xff"))
	l.end()
	if want := []string{"one", "two", "50%", "100%", strings.Repeat("x", longestLine), "x", "bad�"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
