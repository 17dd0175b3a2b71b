package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"cove/internal/core/problem"
)

// declaredEncoding is a comment that says how a program's text is encoded, as in Python's PEP 263; it is in one of the first two lines.
var declaredEncoding = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[ \t\f]*(?:#.*)?\r?\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)
})

// encodingNames are the names of the Web's standard for encodings that Python calls otherwise.
var encodingNames = strings.NewReplacer("_", "-", "latin-1", "iso-8859-1", "latin1", "iso-8859-1", "cp949", "euc-kr", "cp932", "shift-jis", "cp936", "gbk", "cp950", "big5", "mac-roman", "macintosh",
	"cp1250", "windows-1250", "cp1251", "windows-1251", "cp1252", "windows-1252", "cp1253", "windows-1253", "cp1254", "windows-1254", "cp1255", "windows-1255", "cp1256", "windows-1256", "cp1257", "windows-1257")

// programText returns the text of a program as Python reads it from a file: UTF-8, with a mark or without, unless a comment in its first two lines names another encoding.
func programText(name string, text []byte) (string, error) {
	text, marked := bytes.CutPrefix(text, []byte("\xef\xbb\xbf"))
	declared := ""
	if found := declaredEncoding().FindSubmatch(text); found != nil && !marked {
		declared = strings.ToLower(string(found[1]))
	}
	if declared == "" || declared == "utf8" || strings.HasPrefix(strings.ReplaceAll(declared, "_", "-"), "utf-8") {
		if utf8.Valid(text) {
			return string(text), nil
		}
		at := 0
		for c, size := utf8.DecodeRune(text); c != utf8.RuneError || size != 1; c, size = utf8.DecodeRune(text[at:]) {
			at += size
		}
		return "", problem.New(problem.InputUnreadable, fmt.Sprintf("%s has a byte that is not UTF-8 (0x%02x, line %d), and names no other encoding", name, text[at], 1+bytes.Count(text[:at], []byte("\n")))).
			WithHint("save it as UTF-8, or say in its first line how it is encoded: # -*- coding: latin-1 -*-")
	}
	encoding, err := htmlindex.Get(encodingNames.Replace(declared))
	if err != nil {
		return "", problem.New(problem.InputUnreadable, fmt.Sprintf("%s is in an encoding that cove does not know: %.40s", name, declared)).WithHint("save it as UTF-8")
	}
	decoded, err := encoding.NewDecoder().Bytes(text)
	if err != nil {
		return "", problem.New(problem.InputUnreadable, fmt.Sprintf("%s is not in the encoding that it names, %s", name, declared)).WithHint("save it as UTF-8").WithCause(err)
	}
	return string(decoded), nil
}
