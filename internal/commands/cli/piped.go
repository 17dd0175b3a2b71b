package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"cove/internal/core/config"
	"cove/internal/core/problem"
)

// sniffed is how much of a stream decides what it is.
const sniffed = 64 << 10

// isPiped says whether standard input brings data: a pipe or a file, but no terminal and no /dev/null.
func isPiped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return in != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice == 0 && !info.IsDir()
}

// spool copies standard input to a temporary file, so that it can be put into the workspace under a name that fits
// it. It returns no input when nothing came. The caller calls remove.
func spool(ctx context.Context, in io.Reader, limit int64) (found []input, remove func(), err error) {
	f, err := os.CreateTemp("", "cove-stdin-")
	if err != nil {
		return nil, nil, problem.New(problem.TempUnusable, "cannot keep standard input in a temporary file").WithCause(err)
	}
	remove = func() { _ = os.Remove(f.Name()) }
	var n int64
	err = await(ctx, func() (err error) {
		n, err = io.Copy(f, io.LimitReader(in, limit+1))
		return err
	})
	if err != nil {
		remove()
		return nil, nil, err
	}
	if n > limit {
		err = problem.New(problem.InputsTooBig, "standard input is longer than "+config.Size(limit).String()+", what the workspace holds")
	}
	head := make([]byte, sniffed)
	got, rerr := f.ReadAt(head, 0)
	if err == nil && rerr != nil && !errors.Is(rerr, io.EOF) {
		err = rerr
	}
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		remove()
		return nil, nil, err
	}
	if n == 0 {
		return nil, remove, nil
	}
	return []input{{host: f.Name(), name: "stdin" + sniff(head[:got]), info: info}}, remove, nil
}

// sniff returns the ending of a file name for content that begins with head.
func sniff(head []byte) string {
	for _, m := range []struct{ magic, ending string }{
		{"\x89PNG\r\n\x1a\n", ".png"}, {"\xff\xd8\xff", ".jpg"}, {"GIF8", ".gif"}, {"%PDF-", ".pdf"}, {"PAR1", ".parquet"},
		{"ARROW1", ".arrow"}, {"SQLite format 3\x00", ".sqlite"}, {"\x1f\x8b", ".gz"}, {"\xd0\xcf\x11\xe0", ".xls"}, {"\x89HDF", ".h5"},
	} {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.ending
		}
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return sniffZip(head)
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return ".bin"
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	lower := bytes.ToLower(text[:min(len(text), 64)])
	switch {
	case bytes.HasPrefix(lower, []byte("<?xml")):
		return ".xml"
	case bytes.HasPrefix(lower, []byte("<!doctype html")) || bytes.HasPrefix(lower, []byte("<html")):
		return ".html"
	case bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("[")):
		if first, _, more := bytes.Cut(text, []byte("\n")); more && text[0] == '{' && json.Valid(first) {
			return ".jsonl"
		}
		return ".json"
	}
	if ending := sniffTable(text, len(head) == sniffed); ending != "" {
		return ending
	}
	if utf8.Valid(trimRune(head)) {
		return ".txt"
	}
	return ".bin"
}

func sniffZip(head []byte) string {
	for _, part := range []struct{ name, ending string }{{"xl/", ".xlsx"}, {"word/", ".docx"}, {"ppt/", ".pptx"}, {"spreadsheet", ".ods"}} {
		if bytes.Contains(head, []byte(part.name)) {
			return part.ending
		}
	}
	return ".zip"
}

// sniffTable looks for a delimiter that occurs equally often in the first lines.
func sniffTable(text []byte, cut bool) string {
	lines := bytes.Split(text, []byte("\n"))
	if cut && len(lines) > 1 {
		lines = lines[:len(lines)-1]
	}
	lines = lines[:min(len(lines), 5)]
	if len(lines) < 2 {
		return ""
	}
	for _, d := range []struct{ sep, ending string }{{"\t", ".tsv"}, {",", ".csv"}, {";", ".csv"}, {"|", ".csv"}} {
		want := bytes.Count(lines[0], []byte(d.sep))
		even := want > 0
		for _, line := range lines {
			even = even && bytes.Count(line, []byte(d.sep)) >= want
		}
		if even {
			return d.ending
		}
	}
	return ""
}

// trimRune drops a rune that was cut at the end.
func trimRune(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
