package gateway

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// page is what one source says of a project, as far as we need it.
type page struct {
	absent  bool   // the source does not have the project
	status  string // PEP 792
	reason  string // of the status
	etag    string // the source's validators
	changed string
	entries []entry
	fetched time.Time // when the source last said so
	sum     string    // tells the contents from others
	linked  bool      // had links of files, of use or not
	private bool      // has URLs that may hold secrets, and stays in memory

	parsed atomic.Pointer[parsed]
}

// parsed is what the names of a page's files mean to the project that was last asked for.
type parsed struct {
	project string
	files   []parsedName
}

type parsedName struct {
	version   string
	wheel, ok bool
}

// parse reads the names of all entries. The page does not change any more.
func (p *page) parse(project string) []parsedName {
	if known := p.parsed.Load(); known != nil && known.project == project {
		return known.files
	}
	files := make([]parsedName, len(p.entries))
	for i, e := range p.entries {
		files[i].version, files[i].wheel, files[i].ok = parseName(project, e.name)
	}
	p.parsed.Store(&parsed{project, files})
	return files
}

// entry is one file of a page.
type entry struct {
	name     string
	url      string // absolute; in the cache relative to the source where it can be
	sha256   string // hex; "" when none is given
	size     int64
	modified time.Time // of a file in a folder
	uploaded time.Time
	seen     time.Time // when it appeared, for files without a time that were not there when the project was first looked up
	requires string
	yanked   string // the reason, or "yes"; "" when it is not
	metadata string // SHA-256 of the core metadata that is served beside it, or "yes" when that is not known; "" when there is none
}

const (
	pageVersion = "cove-index-page 1"
	pageEnd     = "end"
	unknownSum  = "yes"
)

// confirmed returns the page as its source says it again.
func (p *page) confirmed(now time.Time) *page {
	return &page{absent: p.absent, status: p.status, reason: p.reason, etag: p.etag, changed: p.changed, entries: p.entries, fetched: now, sum: p.sum, private: p.private}
}

// inherit keeps from an earlier page when undated files were first seen. A file that the earlier page did not have has appeared since then.
func (p *page) inherit(old *page) {
	if old == nil {
		return
	}
	known := make(map[string]time.Time, len(old.entries))
	for _, e := range old.entries {
		known[e.name+e.sha256] = e.seen
	}
	for i := range p.entries {
		e := &p.entries[i]
		if !e.uploaded.IsZero() {
			continue
		}
		seen, was := known[e.name+e.sha256]
		if !was {
			seen = p.fetched
		}
		e.seen = seen
	}
}

// write writes the page in the form of the cache: a line for each file, with its fields between tabs.
func (p *page) write(w io.Writer, base *url.URL) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, pageVersion)
	fmt.Fprintln(out, line(strconv.FormatBool(p.absent), p.status, p.reason, p.etag, p.changed))
	for _, e := range p.entries {
		fmt.Fprintln(out, line(e.name, relative(base, e.url), e.sha256, strconv.FormatInt(e.size, 10), micro(e.modified), micro(e.uploaded), micro(e.seen), e.requires, e.yanked, e.metadata))
	}
	fmt.Fprintln(out, pageEnd)
	return out.Flush()
}

var errPage = errors.New("not a page of this cache")

// readPage reads what write has written.
func readPage(text string, base *url.URL) (*page, error) {
	head, rest, _ := strings.Cut(text, "\n")
	first, rest, _ := strings.Cut(rest, "\n")
	fields := strings.Split(first, "\t")
	if head != pageVersion || len(fields) != 5 {
		return nil, errPage
	}
	sum := sha256.Sum256([]byte(text))
	p := &page{absent: fields[0] == "true", status: fields[1], reason: fields[2], etag: fields[3], changed: fields[4], sum: hex.EncodeToString(sum[:16])}
	for {
		next, after, more := strings.Cut(rest, "\n")
		if next == pageEnd && after == "" {
			return p, nil
		}
		f := strings.Split(next, "\t")
		if !more || len(f) != 10 {
			return nil, errPage
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		place := absolute(base, f[1])
		if err != nil || place == "" {
			return nil, errPage
		}
		p.entries = append(p.entries, entry{name: f[0], url: place, sha256: f[2], size: size, modified: fromMicro(f[4]), uploaded: fromMicro(f[5]),
			seen: fromMicro(f[6]), requires: f[7], yanked: f[8], metadata: f[9]})
		rest = after
	}
}

func line(fields ...string) string {
	for i, f := range fields {
		fields[i] = clean(f)
	}
	return strings.Join(fields, "\t")
}

// clean makes one line of a text that came from elsewhere.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func micro(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

func fromMicro(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// relative spells a URL from the folder that base is in, so that a token which some indexes have in their paths is not written down.
func relative(base *url.URL, place string) string {
	if base == nil {
		return place
	}
	origin := base.Scheme + "://" + base.Host + "/"
	path, same := strings.CutPrefix(place, origin)
	if !same {
		return place
	}
	from := strings.Split(strings.TrimPrefix(base.EscapedPath(), "/"), "/")
	from = from[:len(from)-1]
	for len(from) > 0 {
		rest, below := strings.CutPrefix(path, from[0]+"/")
		if !below {
			break
		}
		path, from = rest, from[1:]
	}
	return "./" + strings.Repeat("../", len(from)) + path
}

// absolute undoes relative.
func absolute(base *url.URL, place string) string {
	if base == nil || !strings.HasPrefix(place, "./") {
		return place
	}
	u, err := base.Parse(place)
	if err != nil {
		return ""
	}
	return u.String()
}

// shelf is the folder of pages that have been read, one file each. It is shared by processes: files appear whole.
type shelf struct{ dir string }

func (s shelf) path(source source, project string) string {
	return filepath.Join(s.dir, source.key(), source.pageOf(project)+".page")
}

// load returns a page and when its source last confirmed it, or nil.
func (s shelf) load(source source, project string) *page {
	path := s.path(source, project)
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	p, err := readPage(string(text), baseOf(source))
	if err != nil {
		return nil
	}
	p.fetched = info.ModTime()
	return p
}

// save keeps a page. The cache is only a help, so that a full disk is no error here.
func (s shelf) save(source source, project string, p *page) {
	if p.private || source.local() && len(p.entries) == 0 {
		return
	}
	path := s.path(source, project)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return
	}
	err = p.write(tmp, baseOf(source))
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chtimes(tmp.Name(), p.fetched, p.fetched)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
}

// touch notes that a source has confirmed a page.
func (s shelf) touch(source source, project string, p *page) {
	if !p.private {
		_ = os.Chtimes(s.path(source, project), p.fetched, p.fetched)
	}
}

func baseOf(s source) *url.URL {
	if u, ok := s.(*upstream); ok {
		return u.base
	}
	return nil
}
