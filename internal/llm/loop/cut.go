package loop

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// cutMiddle returns text in at most about limit bytes: its beginning and its end, and between them how many
// characters were cut. It cuts at line ends where they are near.
func cutMiddle(text string, limit int) string { return cutMiddleMore(text, limit, 0) }

// cutMiddleMore is cutMiddle for a text from whose middle hidden characters are missing already.
func cutMiddleMore(text string, limit, hidden int) string {
	switch {
	case len(text) > limit:
	case hidden > 0:
		return ensureLine(text) + fmt.Sprintf("[%s characters in the middle were cut]", grouped(int64(hidden)))
	default:
		return text
	}
	const note = 48
	room := max(limit-note, 0)
	head := text[:runeStart(text, room*3/5)]
	tail := text[runeStart(text, len(text)-(room-room*3/5)):]
	if n := strings.LastIndexByte(head, '\n'); n >= 0 && len(head)-n < len(head)/4 {
		head = head[:n+1]
	}
	if n := strings.IndexByte(tail, '\n'); n >= 0 && n < len(tail)/4 {
		tail = tail[n+1:]
	}
	cut := hidden + utf8.RuneCountInString(text) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return ensureLine(head) + fmt.Sprintf("[... %s characters cut ...]\n", grouped(int64(cut))) + tail
}

// cutEnd returns at most limit characters of text, with an ellipsis when something was cut.
func cutEnd(text string, limit int) string {
	n := 0
	for at := range text {
		if n == limit {
			return text[:at] + "…"
		}
		n++
	}
	return text
}

// runeStart returns the last start of a rune in text at or before at.
func runeStart[T string | []byte](text T, at int) int {
	for n := at; n > max(at-utf8.UTFMax, 0) && n < len(text); n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return at
}

func ensureLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// grouped writes n with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// size writes a number of bytes for people, in powers of 1000.
func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	default:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
}
