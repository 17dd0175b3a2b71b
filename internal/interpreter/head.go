package interpreter

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"cove/internal/kernel"
)

// How much of a text file a prompt shows.
const (
	headBytes = 8192 // read
	headLines = 6
	lineChars = 300
)

func isText(name string) bool {
	switch extension(name) {
	case ".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson", ".txt", ".md", ".log", ".yaml", ".yml", ".xml", ".html",
		".ini", ".toml", ".sql", ".py":
		return true
	}
	return false
}

// textHead returns the first lines of a text file, or why they are not shown. Data is the file's beginning.
func textHead(f kernel.File, data []byte) string {
	text, note := decodeHead(data, int64(len(data)) < f.Size)
	if note != "" {
		note = ", " + note
	}
	if text == "" {
		return note
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	whole := len(lines) <= headLines && int64(len(data)) >= f.Size
	lines = lines[:min(len(lines), headLines)]
	for n, line := range lines {
		lines[n] = cutEnd(line, lineChars)
	}
	what := ", first lines:\n"
	if whole {
		what = ":\n"
	}
	return note + what + indent(fence("", strings.Join(lines, "\n")))
}

// decodeHead returns data as text and a note on its encoding. The text is empty when the encoding is not UTF-8. With
// more, the file goes on, so the last character may be incomplete.
func decodeHead(data []byte, more bool) (text, note string) {
	switch {
	case bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")):
		data, note = data[3:], "UTF-8 with BOM"
	case bytes.HasPrefix(data, []byte("\xFF\xFE")), bytes.HasPrefix(data, []byte("\xFE\xFF")):
		return "", "not UTF-8: UTF-16"
	}
	for n := 0; more && n < utf8.UTFMax-1 && len(data) > 0 && !utf8.Valid(data[max(len(data)-utf8.UTFMax, 0):]); n++ {
		// Only a sequence that was cut is dropped; the beginning of data may lie inside one, too.
		if r, _ := utf8.DecodeLastRune(data); r != utf8.RuneError {
			break
		}
		data = data[:len(data)-1]
	}
	switch {
	case bytes.IndexByte(data, 0) >= 0:
		return "", "binary content"
	case utf8.Valid(data):
		return string(data), note
	case isGBK(data):
		return "", "not UTF-8: probably GBK, read it with encoding=\"gb18030\""
	default:
		return "", "not UTF-8"
	}
}

// isGBK says whether all bytes beyond ASCII form pairs of that encoding; a pair cut at the end counts.
func isGBK(data []byte) bool {
	for n := 0; n < len(data); n++ {
		if data[n] < 0x80 {
			continue
		}
		if data[n] == 0x80 || data[n] == 0xFF {
			return false
		}
		n++
		if n < len(data) && (data[n] < 0x40 || data[n] == 0x7F || data[n] == 0xFF) {
			return false
		}
	}
	return true
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
