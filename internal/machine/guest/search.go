package guest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"cove/internal/machine/wire"
)

// Bounds of a search. What goes beyond them is said.
const (
	searchTime    = 30 * time.Second
	searchLooks   = 1_000_000 // entries
	searchBytes   = 1 << 30   // of all files
	searchFile    = 64 << 20  // of one file
	replaceFile   = 16 << 20
	longestLine   = 1 << 20
	binaryLook    = 8 << 10 // where a zero makes a file one that is no text
	longestNeedle = 4 << 10
	longestWith   = 64 << 10
	mostReplaced  = 100_000 // in one file
)

// finding is a search under way.
type finding struct {
	g       *guest
	name    *regexp.Regexp // nil: any
	deep    bool           // name is of paths below the folder
	text    *matcher       // nil: names alone
	limit   int
	until   time.Time
	looks   int
	left    int64 // bytes to be read
	said    int   // bytes of the answer
	found   wire.Found
	stopped bool
}

// search looks for names and for text, in a file or in a folder and below it. It follows no symlinks.
func (g *guest) search(spec wire.FileSpec) (wire.Found, error) {
	p, err := g.find(spec.Path, false)
	if err != nil {
		return wire.Found{}, err
	}
	s := finding{g: g, limit: wire.MatchLimit, until: time.Now().Add(searchTime), looks: searchLooks, left: searchBytes, found: wire.Found{Matches: []wire.Match{}}}
	if spec.Limit > 0 {
		s.limit = min(spec.Limit, wire.MatchLimit)
	}
	if spec.Name != "" {
		if s.name, err = glob(spec.Name); err != nil {
			return wire.Found{}, err
		}
		s.deep = strings.ContainsRune(spec.Name, '/')
	}
	if spec.Text != "" {
		if s.text, err = newMatcher(spec); err != nil {
			return wire.Found{}, err
		}
	}
	if s.name == nil && s.text == nil {
		return wire.Found{}, fault{wire.FaultInvalid, "a search is for a name or for text"}
	}
	fi, err := os.Stat(p.full)
	if err != nil {
		return wire.Found{}, err
	}
	if fi.IsDir() {
		if _, _, err := readFolder(p.full, 1); err != nil {
			return wire.Found{}, err
		}
		s.walk(spec.Path, p.full, "")
	} else {
		s.file(spec.Path, p.full)
	}
	return s.found, nil
}

// elsewhere are folders of the system's in which a search does not look unless it begins there.
var elsewhere = map[string]bool{"/proc": true, "/sys": true, "/dev": true}

func (s *finding) walk(asked, full, below string) {
	if strings.Count(full, "/") > deepestPath || s.over() {
		s.more()
		return
	}
	entries, more, err := readFolder(full, s.looks)
	if err != nil {
		s.found.Skipped++
	}
	s.looks -= len(entries)
	for _, e := range entries {
		if s.stopped || s.over() {
			s.more()
			return
		}
		if !s.g.speakable(full, e.Name()) {
			s.found.Skipped++
			continue
		}
		ask, p, rel := path.Join(asked, e.Name()), path.Join(full, e.Name()), path.Join(below, e.Name())
		named := s.name == nil || s.name.MatchString(e.Name())
		if s.deep {
			named = s.name.MatchString(rel)
		}
		switch {
		case s.g.parts.has(p):
		case s.text == nil && named:
			s.add(wire.Match{Path: ask, Folder: e.IsDir()})
		case named && e.Type().IsRegular():
			s.file(ask, p)
		}
		if e.IsDir() && !elsewhere[p] {
			s.walk(ask, p, rel)
		}
	}
	if more {
		s.more()
	}
}

func (s *finding) more() { s.found.More, s.stopped = true, true }

func (s *finding) over() bool { return s.looks <= 0 || s.left <= 0 || time.Now().After(s.until) }

func (s *finding) add(m wire.Match) {
	m.Path = spell(m.Path)
	if s.said += len(m.Path) + len(m.Text); len(s.found.Matches) == s.limit || s.said > maxListedBytes {
		s.more()
		return
	}
	s.found.Matches = append(s.found.Matches, m)
}

// file looks for the text in one file.
func (s *finding) file(asked, full string) {
	if s.text == nil {
		return
	}
	f, fi, err := openText(full, searchFile)
	if err != nil {
		s.found.Skipped++
		return
	}
	defer func() { _ = f.Close() }()
	s.found.Looked++
	s.left -= fi.Size()
	r := bufio.NewReaderSize(io.LimitReader(f, searchFile), 64<<10)
	for number := 1; !s.stopped; number++ {
		line, err := readLine(r)
		if at := s.text.find(line); at >= 0 && (len(line) > 0 || err == nil) {
			s.add(wire.Match{Path: asked, Line: number, Column: utf8.RuneCount(line[:at]) + 1, Text: around(line, at)})
		}
		if err != nil {
			return
		}
		if number%1024 == 0 && s.over() {
			s.more()
		}
	}
}

var errNoText = errors.New("it is no text")

// openText opens a regular file that is text and not too large.
func openText(full string, most int64) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
	case !fi.Mode().IsRegular():
		err = fault{wire.FaultPath, fmt.Sprintf("%.300q is not a regular file", full)}
	case fi.Size() > most:
		err = fault{wire.FaultInvalid, fmt.Sprintf("it has more than %d MiB", most>>20)}
	default:
		head := make([]byte, binaryLook)
		n, _ := f.ReadAt(head, 0)
		if bytes.IndexByte(head[:n], 0) >= 0 {
			err = fault{wire.FaultInvalid, errNoText.Error()}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, fi, nil
}

// readLine returns the next line without its end. Of one that is longer than longestLine it is the beginning.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		some, err := r.ReadSlice('\n')
		if len(line)+len(some) <= longestLine {
			line = append(line, some...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
		}
	}
}

// around is the part of a line that has the match at a byte, as text.
func around(line []byte, at int) string {
	from := 0
	if len(line) > wire.MatchText && at > wire.MatchText/2 {
		from = min(at-wire.MatchText/4, len(line)-wire.MatchText)
	}
	part := line[from:min(from+wire.MatchText, len(line))]
	return strings.ToValidUTF8(strings.Trim(string(part), "\x00"), "\uFFFD")
}

// matcher finds a text, or what a regular expression says.
type matcher struct {
	plain []byte
	re    *regexp.Regexp
}

func newMatcher(spec wire.FileSpec) (*matcher, error) {
	if len(spec.Text) > longestNeedle {
		return nil, fault{wire.FaultInvalid, fmt.Sprintf("a text to look for has at most %d bytes", longestNeedle)}
	}
	if !spec.Regular && !spec.Fold {
		return &matcher{plain: []byte(spec.Text)}, nil
	}
	expression := spec.Text
	if !spec.Regular {
		expression = regexp.QuoteMeta(expression)
	}
	if spec.Fold {
		expression = "(?i)" + expression
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, fault{wire.FaultInvalid, strings.TrimPrefix(err.Error(), "error parsing ")}
	}
	return &matcher{re: re}, nil
}

// find returns where the first match in a line begins, or -1.
func (m *matcher) find(line []byte) int {
	if m.re == nil {
		return bytes.Index(line, m.plain)
	}
	if at := m.re.FindIndex(line); at != nil {
		return at[0]
	}
	return -1
}

// replace returns a text with all matches replaced, and how many there were. In what takes the place of a regular expression's match, $1 is its first group.
func (m *matcher) replace(text []byte, with string) ([]byte, int, error) {
	var at [][]int
	times := 0
	if m.re == nil {
		times = bytes.Count(text, m.plain)
	} else {
		at = m.re.FindAllSubmatchIndex(text, mostReplaced+1)
		times = len(at)
	}
	tooLarge := fault{wire.FaultInvalid, "the file would become too large"}
	switch {
	case times > mostReplaced:
		return nil, 0, fault{wire.FaultInvalid, fmt.Sprintf("the text occurs more than %d times in it", mostReplaced)}
	case m.re == nil && len(text)+times*len(with) > 4*replaceFile:
		return nil, 0, tooLarge
	case m.re == nil:
		return bytes.ReplaceAll(text, m.plain, []byte(with)), times, nil
	}
	var out []byte
	last := 0
	for _, loc := range at {
		out = append(out, text[last:loc[0]]...)
		out = m.re.Expand(out, []byte(with), text, loc)
		if last = loc[1]; len(out) > 4*replaceFile {
			return nil, 0, tooLarge
		}
	}
	return append(out, text[last:]...), times, nil
}

// glob makes a regular expression of a pattern: * and ? do not match a slash, ** does, [abc] is one of these.
func glob(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > longestNeedle {
		return nil, fault{wire.FaultInvalid, "the pattern is too long"}
	}
	var out strings.Builder
	out.WriteString(`\A`)
	for i := 0; i < len(pattern); i++ {
		switch rest := pattern[i:]; {
		case strings.HasPrefix(rest, "**/"):
			out.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(rest, "**"):
			out.WriteString(`.*`)
			i++
		case rest[0] == '*':
			out.WriteString(`[^/]*`)
		case rest[0] == '?':
			out.WriteString(`[^/]`)
		case rest[0] == '[' && strings.IndexByte(rest[1:], ']') > 0:
			end := 1 + strings.IndexByte(rest[1:], ']')
			set := strings.ReplaceAll(rest[1:end], `\`, `\\`)
			if strings.HasPrefix(set, "!") {
				set = "^/" + set[1:]
			}
			out.WriteString("[" + strings.ReplaceAll(set, "[", `\[`) + "]")
			i += end
		default:
			_, size := utf8.DecodeRuneInString(rest)
			out.WriteString(regexp.QuoteMeta(rest[:size]))
			i += size - 1
		}
	}
	out.WriteString(`\z`)
	re, err := regexp.Compile("(?s)" + out.String())
	if err != nil {
		return nil, fault{wire.FaultInvalid, fmt.Sprintf("%.100q is no pattern", pattern)}
	}
	return re, nil
}

// replaceIn replaces text in files, each whole or not at all.
func (g *guest) replaceIn(spec wire.FileSpec) ([]wire.Replaced, error) {
	if len(spec.Paths) == 0 || len(spec.Paths) > wire.PathsLimit {
		return nil, fault{wire.FaultInvalid, fmt.Sprintf("text is replaced in 1 to %d files", wire.PathsLimit)}
	}
	if spec.Text == "" || len(spec.With) > longestWith {
		return nil, fault{wire.FaultInvalid, fmt.Sprintf("text is replaced by at most %d bytes", longestWith)}
	}
	m, err := newMatcher(spec)
	if err != nil {
		return nil, err
	}
	out := make([]wire.Replaced, 0, len(spec.Paths))
	until := time.Now().Add(searchTime)
	for _, asked := range spec.Paths {
		r := wire.Replaced{Path: spell(asked)}
		err := error(fault{wire.FaultMany, "the time for all files is over"})
		if time.Now().Before(until) {
			r.Times, err = g.replaceOne(asked, m, spec.With)
		}
		if err != nil {
			resp := respond(err)
			r.Fault, r.Why = resp.Code, resp.Message
		}
		out = append(out, r)
	}
	return out, nil
}

func (g *guest) replaceOne(asked string, m *matcher, with string) (int, error) {
	p, err := g.find(asked, false)
	if err != nil {
		return 0, err
	}
	f, _, err := openText(p.full, replaceFile)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(io.LimitReader(f, replaceFile))
	_ = f.Close()
	if err != nil {
		return 0, err
	}
	text, times, err := m.replace(text, with)
	if times == 0 || err != nil {
		return 0, err
	}
	w := writing{g: g, replace: true}
	if err := w.begin(asked); err != nil {
		return 0, err
	}
	defer w.end()
	_, err = w.part.Write(text)
	if err = errors.Join(err, w.part.Close()); err == nil {
		var set setter
		if set, err = newSetter(wire.EntrySet{}); err == nil {
			set.Attributes = keep(attributes(w.to.full))
			err = w.finish(set)
		}
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(w.name))
	}
	return times, nil
}

// keep has attributes be set as they are.
func keep(attributes map[string]string) map[string]*string {
	out := map[string]*string{}
	for name, value := range attributes {
		out[name] = &value
	}
	return out
}
