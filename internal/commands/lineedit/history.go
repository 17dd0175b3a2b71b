package lineedit

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// newlineSign stands for the end of a line in an entry that is kept or shown on one row.
const newlineSign = "⏎"

// History is what was entered before, in a file with one entry on each line, the oldest first; ⏎ stands for the ends of lines within an entry.
// A nil History has nothing and keeps nothing.
type History struct {
	file    string
	limit   int
	entries []string
}

// OpenHistory reads the last entries of a file, at most limit; it need not be there yet. An empty name is a history that is forgotten with the
// process.
func OpenHistory(file string, limit int) (*History, error) {
	h := &History{file: file, limit: limit}
	if file == "" {
		return h, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return h, err
	}
	for line := range strings.Lines(string(text)) {
		if entry := strings.ReplaceAll(strings.TrimRight(line, "\r\n"), newlineSign, "\n"); entry != "" {
			h.entries = append(h.entries, strings.ToValidUTF8(entry, "\uFFFD"))
		}
	}
	if len(h.entries) > 2*limit { // several may use it at once: it is cut seldom
		err = h.rewrite(h.entries[len(h.entries)-limit:])
	}
	h.entries = h.entries[max(0, len(h.entries)-limit):]
	return h, err
}

// Add keeps an entry, unless it is blank or the same as the last one.
func (h *History) Add(entry string) error {
	if h == nil || strings.TrimSpace(entry) == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return nil
	}
	h.entries = append(h.entries, entry)
	if len(h.entries) > h.limit {
		h.entries = h.entries[1:]
	}
	if h.file == "" {
		return nil
	}
	f, err := os.OpenFile(h.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(encode(entry))
	return errors.Join(err, f.Close())
}

func encode(entry string) string {
	return strings.NewReplacer("\r", "", "\n", newlineSign).Replace(entry) + "\n"
}

func (h *History) rewrite(entries []string) error {
	var b strings.Builder
	for _, entry := range entries {
		b.WriteString(encode(entry))
	}
	part := h.file + ".part"
	if err := os.WriteFile(part, []byte(b.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(part, h.file)
}

func (h *History) len() int {
	if h == nil {
		return 0
	}
	return len(h.entries)
}

func (h *History) entry(at int) string { return h.entries[at] }

// find returns the nearest entry from one on that has these words, in any case.
func (h *History) find(words string, from int, forward bool) (int, bool) {
	if words == "" {
		return 0, false
	}
	step := -1
	if forward {
		step = 1
	}
	words = strings.ToLower(words)
	for at := min(from, h.len()-1); at >= 0 && at < h.len(); at += step {
		if strings.Contains(strings.ToLower(h.entry(at)), words) {
			return at, true
		}
	}
	return 0, false
}
