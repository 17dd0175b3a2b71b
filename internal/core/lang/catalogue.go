package lang

import (
	"embed"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
)

//go:embed zh/*.po
var files embed.FS

// Catalogue is what the program says, in one language. A nil one is English. It can be used at the same time from several goroutines.
type Catalogue struct {
	help     func() map[string]string
	messages func() map[string]string
	matcher  func() *matcher
}

// Files that are not looked through for the formats that finished texts were made with: those of texts that are looked up before they are filled in.
const (
	helpFile     = "help.po"
	terminalFile = "terminal.po"
)

// Open returns the catalogue of a language. Each part is read when it is needed first.
func Open(l Language) *Catalogue {
	if l != Chinese {
		return nil
	}
	all := sync.OnceValue(func() (rest []Entry) {
		for _, name := range Names(l) {
			if name != helpFile && name != terminalFile {
				rest = append(rest, read(l, name)...)
			}
		}
		return rest
	})
	return &Catalogue{
		help:     sync.OnceValue(func() map[string]string { return byID(read(l, helpFile)) }),
		messages: sync.OnceValue(func() map[string]string { return byID(append(all(), read(l, terminalFile)...)) }),
		matcher:  sync.OnceValue(func() *matcher { return newMatcher(all()) }),
	}
}

// Names are the files of a language's catalogue.
func Names(l Language) (names []string) {
	entries, _ := files.ReadDir(string(l)) // the folder is in the program
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// read reads a file of a catalogue, without what is not translated. A test reads them all: an error cannot come.
func read(l Language, name string) (entries []Entry) {
	text, _ := files.ReadFile(path.Join(string(l), name))
	all, _ := ParsePO(string(text))
	for _, e := range all {
		if e.Text != "" {
			entries = append(entries, e)
		}
	}
	return entries
}

func byID(entries []Entry) map[string]string {
	m := make(map[string]string, len(entries))
	for _, e := range entries {
		m[e.ID] = e.Text
	}
	return m
}

// Help is a text of the help.
func (c *Catalogue) Help(text string) string {
	if c == nil || text == "" {
		return text
	}
	if t, ok := c.help()[text]; ok {
		return t
	}
	return text
}

// Format is a format of the catalogue, with the white space that stands around it here.
func (c *Catalogue) Format(format string) string {
	if c == nil {
		return format
	}
	words := strings.TrimSpace(format)
	if t, ok := c.messages()[words]; ok {
		at := strings.Index(format, words)
		return format[:at] + t + format[at+len(words):]
	}
	return format
}

// Text is a text that was finished in English: one of the catalogue, else one that was made with a format of it, else its parts, each by itself. What is not
// known stays English.
func (c *Catalogue) Text(text string) string {
	if c == nil || len(text) > longest {
		return text
	}
	t, _ := c.whole(text, deepest)
	return t
}

func (c *Catalogue) whole(text string, deep int) (translated string, known bool) {
	if t, known := c.one(text, deep); known || deep == 0 {
		return t, known
	}
	if lines := strings.SplitN(text, "\n", mostParts); len(lines) > 1 {
		for i, l := range lines {
			t, ok := c.whole(l, deep-1)
			lines[i], known = t, known || ok
		}
		return strings.Join(lines, "\n"), known
	}
	if t, known := c.parts(text, deep-1); known {
		return t, true
	}
	return c.said(text, deep-1)
}

// said is a text that begins with the name of a setting, or with two, and goes on as the catalogue has it: "sandbox.memory must be at least 128MiB".
func (c *Catalogue) said(text string, deep int) (translated string, known bool) {
	words, names := strings.SplitAfterN(text, " ", 5), 1
	switch {
	case words[0] == "the ":
		names = 2
	case len(words) > 3 && words[1] == "and ":
		names = 3
	}
	if len(words) <= names {
		return text, false
	}
	name := strings.Join(words[:names], "")
	rest := text[len(name):]
	if !phrase(rest) {
		return text, false
	}
	t, known := c.one(rest, deep)
	if !known {
		t, known = c.parts(rest, deep)
	}
	return name + t, known
}

// one is a text that the catalogue has as a whole.
func (c *Catalogue) one(text string, deep int) (translated string, known bool) {
	words := strings.TrimSpace(text)
	if words == "" {
		return text, false
	}
	at := strings.Index(text, words)
	before, after := text[:at], text[at+len(words):]
	if t, ok := c.messages()[strings.ReplaceAll(words, "%", "%%")]; ok {
		return before + ParseFormat(t).fill(nil) + after, true
	}
	r, args, ok := c.matcher().find(words)
	if !ok {
		return text, false
	}
	for i, a := range args {
		if deep > 0 && phrase(a) {
			args[i], _ = c.whole(a, deep-1)
		}
	}
	return before + r.to.fill(args) + after, true
}

// phrase says whether a part of a text may be one of the catalogue. A single word may be somebody's name for something.
func phrase(part string) bool { return strings.Contains(strings.TrimSpace(part), " ") }

// joints are what stands between the parts of a message, and what does in Chinese.
var joints = [][2]string{{": ", "："}, {"; ", "；"}, {". ", "。"}, {", ", "，"}}

// parts translates the longest beginning of text that is known, up to a joint, and then what is after that. Before a known part a beginning stays as it is.
func (c *Catalogue) parts(text string, deep int) (translated string, known bool) {
	ends := jointsOf(text)
	for from := 0; from <= len(ends); from++ { // how many parts stay as they are at the beginning
		start := 0
		if from > 0 {
			start = ends[from-1].end
		}
		for to := len(ends); to >= from; to-- {
			if from == 0 && to == len(ends) {
				continue // the whole, which is not known
			}
			part, rest := text[start:], ""
			if to < len(ends) {
				part, rest = text[start:ends[to].start], text[ends[to].end:]
			}
			if !phrase(part) {
				continue
			}
			t, ok := c.one(part, deep)
			if !ok {
				continue
			}
			translated = t
			if from > 0 { // what is known begins after a joint, and what is before that stays
				translated = text[:ends[from-1].start] + joints[ends[from-1].joint][1] + t
			}
			if to < len(ends) {
				more := rest
				if deep > 0 {
					more, _ = c.whole(rest, deep-1)
				}
				translated += joints[ends[to].joint][1] + more
			}
			return translated, true
		}
	}
	return text, false
}

// joint is where one stands in a text.
type joint struct{ start, end, joint int }

func jointsOf(text string) (found []joint) {
	for i := 0; i+1 < len(text) && len(found) < mostParts; i++ {
		for n, j := range joints {
			if strings.HasPrefix(text[i:], j[0]) {
				found = append(found, joint{i, i + len(j[0]), n})
			}
		}
	}
	return found
}

// Joint is what stands between two parts of a message in the language of the process: of ": ", "; ", ". " and ", ".
func Joint(english string) string {
	if used == nil {
		return english
	}
	for _, j := range joints {
		if j[0] == english {
			return j[1]
		}
	}
	return english
}

// used is the catalogue of this process.
var used *Catalogue

// Use has the process speak a language from now on. It is called before anything else runs.
func Use(l Language) { used = Open(l) }

// Help is a text of the help, in the language of the process.
func Help(text string) string { return used.Help(text) }

// Text is a text that was finished in English, in the language of the process; see Catalogue.Text.
func Text(text string) string { return used.Text(text) }

// Phrase is Text for what may be somebody's name for something, which has one word.
func Phrase(text string) string {
	if !phrase(text) {
		return text
	}
	return Text(text)
}

// Lines returns a writer that writes to w what it is given, in the language of the process. Each write has whole lines.
func Lines(w io.Writer) io.Writer {
	if used == nil {
		return w
	}
	if f, ok := w.(file); ok {
		return spokenFile{spoken{w}, f}
	}
	return spoken{w}
}

type spoken struct{ to io.Writer }

// file is a writer that may be a terminal.
type file interface{ Fd() uintptr }

type spokenFile struct {
	spoken
	file
}

func (s spoken) Write(p []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(p)) {
		own, rest := "", line
		if text, found := strings.CutPrefix(line, "cove: "); found {
			own, rest = "cove: ", text
		}
		b.WriteString(own + Text(rest))
	}
	if _, err := io.WriteString(s.to, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Sprintf is fmt.Sprintf in the language of the process.
func Sprintf(format string, args ...any) string {
	if used == nil {
		return fmt.Sprintf(format, args...)
	}
	return fmt.Sprintf(used.Format(format), args...)
}

// Fprintf is fmt.Fprintf in the language of the process.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	if used == nil {
		return fmt.Fprintf(w, format, args...)
	}
	return fmt.Fprintf(w, used.Format(format), args...)
}
