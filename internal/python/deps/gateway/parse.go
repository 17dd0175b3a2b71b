package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"
)

const (
	maxFiles = 200_000 // of a page
	maxURL   = 4 << 10 // bytes of a URL; what is longer is passed over
	maxText  = 512     // bytes of a version specifier and of a reason
	maxToken = 1 << 20 // bytes of one piece of HTML
)

var hexSum = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// parsePage reads a page in the form that its content type says. from is where it came from, after redirects.
func parsePage(contentType string, from *url.URL, body io.Reader) (*page, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return nil, fmt.Errorf("its content type cannot be read")
	}
	switch kind {
	case "application/vnd.pypi.simple.v1+json", "application/json":
		return parseJSON(from, body)
	case "", "text/html", "application/xhtml+xml", "application/vnd.pypi.simple.v1+html":
		return parseHTML(from, body)
	}
	return nil, fmt.Errorf("its content type is %.60q", kind)
}

// jsonPage is PEP 691's, with PEP 700, 714 and 792.
type jsonPage struct {
	Meta struct {
		Version string `json:"api-version"`
		Status  string `json:"project-status"`
		Reason  string `json:"project-status-reason"`
	} `json:"meta"`
	Status json.RawMessage `json:"project-status"`
	Files  []jsonFile      `json:"files"`
}

type jsonFile struct {
	Name         string            `json:"filename"`
	URL          string            `json:"url"`
	Hashes       map[string]string `json:"hashes"`
	Requires     *string           `json:"requires-python"`
	Size         int64             `json:"size"`
	Uploaded     string            `json:"upload-time"`
	Yanked       json.RawMessage   `json:"yanked"`
	CoreMetadata json.RawMessage   `json:"core-metadata"`
	DistMetadata json.RawMessage   `json:"dist-info-metadata"`
}

func parseJSON(from *url.URL, body io.Reader) (*page, error) {
	var in jsonPage
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		return nil, err
	}
	if in.Meta.Version != "" && !strings.HasPrefix(in.Meta.Version, "1.") {
		return nil, fmt.Errorf("its version of the protocol is %.20q", in.Meta.Version)
	}
	if in.Files == nil {
		return nil, errors.New("it has no list of files")
	}
	p := &page{}
	p.setStatus(in.Meta.Status, in.Meta.Reason)
	var status struct{ Status, Reason string }
	if json.Unmarshal(in.Status, &status) == nil && status.Status != "" {
		p.setStatus(status.Status, status.Reason)
	}
	for _, f := range in.Files {
		yanked, err := flagOrText(f.Yanked)
		if err != nil {
			return nil, fmt.Errorf("yanked of %.100q: %w", f.Name, err)
		}
		e := entry{name: f.Name, sha256: checkedSum(f.Hashes["sha256"]), size: max(f.Size, 0), uploaded: moment(f.Uploaded), yanked: yanked}
		if f.Requires != nil {
			e.requires = *f.Requires
		}
		e.metadata = metadataSum(f.CoreMetadata)
		if e.metadata == "" {
			e.metadata = metadataSum(f.DistMetadata)
		}
		if err := p.append(from, f.URL, e); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// flagOrText reads PEP 592's yanked: false, true, or the reason.
func flagOrText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var flag bool
	if json.Unmarshal(raw, &flag) == nil {
		if flag {
			return "yes", nil
		}
		return "", nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", errors.New("neither true, false nor a reason")
	}
	return text, nil
}

// metadataSum reads PEP 714's core-metadata: false, true, or hashes.
func metadataSum(raw json.RawMessage) string {
	var flag bool
	if json.Unmarshal(raw, &flag) == nil {
		if flag {
			return unknownSum
		}
		return ""
	}
	var hashes map[string]string
	if json.Unmarshal(raw, &hashes) != nil || hashes == nil {
		return ""
	}
	if sum := checkedSum(hashes["sha256"]); sum != "" {
		return sum
	}
	return unknownSum
}

func (p *page) setStatus(status, reason string) {
	switch status {
	case "active", "archived", "deprecated", "quarantined":
		p.status, p.reason = status, shortened(reason)
	}
}

// append adds a file with the URL that the page gives. Files without a URL that could be fetched or with a name that no file can have are passed over.
func (p *page) append(from *url.URL, href string, e entry) error {
	if len(p.entries) >= maxFiles {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	if len(href) > maxURL || !plainName(e.name) || !known(e.name) {
		return nil
	}
	u, err := from.Parse(href)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil
	}
	u.User, u.Fragment = nil, ""
	// What signs a link is worth as much as a password.
	p.private = p.private || u.RawQuery != ""
	e.url = u.String()
	e.requires, e.yanked = shortened(e.requires), shortened(e.yanked)
	p.entries = append(p.entries, e)
	return nil
}

// known tells whether a file is of a kind that is ever used.
func known(name string) bool {
	return strings.HasSuffix(name, ".whl") || strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".zip")
}

func parseHTML(from *url.URL, body io.Reader) (*page, error) {
	p := &page{}
	z := html.NewTokenizer(body)
	z.SetMaxBuf(maxToken)
	base := from
	anchors, tags, forms, declared := 0, 0, 0, false
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tags++
		raw, _ := z.TagName()
		switch tag := string(raw); tag {
		case "a":
			anchors++
			if err := p.anchor(base, attributes(z)); err != nil {
				return nil, err
			}
		case "form", "script":
			forms++
		case "base":
			if u, err := from.Parse(attributes(z)["href"]); err == nil {
				base = u
			}
		case "meta":
			a := attributes(z)
			switch strings.ToLower(a["name"]) {
			case "pypi:repository-version":
				declared = true
				if !strings.HasPrefix(a["content"], "1.") {
					return nil, fmt.Errorf("its version of the protocol is %.20q", a["content"])
				}
			case "pypi:project-status":
				p.setStatus(a["content"], p.reason)
			case "pypi:project-status-reason":
				p.reason = shortened(a["content"])
			}
		}
	}
	// A page of a proxy or a login is no index without files.
	if len(p.entries) == 0 && !declared && (tags == 0 || forms > 0 || anchors > 0 && !p.linked) {
		return nil, errors.New("there are no files on it")
	}
	return p, nil
}

func attributes(z *html.Tokenizer) map[string]string {
	out := map[string]string{}
	for {
		name, value, more := z.TagAttr()
		if len(name) > 0 {
			if _, twice := out[string(name)]; !twice {
				out[string(name)] = string(value)
			}
		}
		if !more {
			return out
		}
	}
}

// anchor reads one link of PEP 503, with data-upload-time as some mirrors have it.
func (p *page) anchor(base *url.URL, a map[string]string) error {
	href := strings.TrimSpace(a["href"])
	place, fragment, _ := strings.Cut(href, "#")
	u, err := url.Parse(place)
	if err != nil {
		return nil
	}
	e := entry{name: path.Base(u.Path), requires: a["data-requires-python"], uploaded: moment(a["data-upload-time"])}
	for _, part := range strings.Split(fragment, "&") {
		if sum, ok := strings.CutPrefix(part, "sha256="); ok {
			e.sha256 = checkedSum(sum)
		}
	}
	if reason, yanked := a["data-yanked"]; yanked {
		e.yanked = reason
		if strings.TrimSpace(reason) == "" {
			e.yanked = "yes"
		}
	}
	for _, name := range []string{"data-core-metadata", "data-dist-info-metadata"} {
		if value, ok := a[name]; ok && e.metadata == "" && value != "false" {
			e.metadata = unknownSum
			if sum, ok := strings.CutPrefix(value, "sha256="); ok && checkedSum(sum) != "" {
				e.metadata = checkedSum(sum)
			}
		}
	}
	// Old installers (.exe, .egg) make a page of an index too, although they are of no use here.
	p.linked = p.linked || e.sha256 != "" || strings.Contains(fragment, "md5=")
	return p.append(base, place, e)
}

func checkedSum(sum string) string {
	sum = strings.ToLower(strings.TrimSpace(sum))
	if hexSum().MatchString(sum) {
		return sum
	}
	return ""
}

// moment reads a time as PEP 700 has it, or returns none.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(text))
	if err != nil || t.Year() < 1990 {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

func shortened(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return clean(text)
}
