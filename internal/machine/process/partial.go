package process

import "bytes"

// Partial is how many bytes at the end of output begin a mark that may go on in what comes next.
func Partial(text, mark []byte) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if bytes.HasPrefix(mark, text[len(text)-n:]) {
			return n
		}
	}
	return 0
}
