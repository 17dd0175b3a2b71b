package image

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"cove/internal/core/problem"
)

// Allowed are the images of registries that others than this machine's user may have sessions begin from. The zero value is none.
type Allowed struct{ patterns []pattern }

// pattern is one or many references, in full.
type pattern struct {
	registry string // the host; "": all
	text     string // a reference, or what references begin with
	begins   bool
}

// everything is the pattern of all images that anybody may have.
const everything = "*"

// ParseAllowed reads patterns: references as Parse does, those of a registry alone, where a * at the end makes a prefix. NAME:* is each tag and digest, and * alone all images that registries
// give to anybody. Problems: config_invalid.
func ParseAllowed(texts []string) (Allowed, error) {
	var a Allowed
	for _, text := range texts {
		p, ok := parsePattern(text)
		if !ok {
			return Allowed{}, problem.New(problem.ConfigInvalid, fmt.Sprintf("images.allow has an entry that names no images of a registry: %.200q", text)).
				WithHint("write python:3.12-slim, python:*, registry.example.com/team/* or *")
		}
		a.patterns = append(a.patterns, p)
	}
	return a, nil
}

func parsePattern(text string) (pattern, bool) {
	begin, begins := strings.CutSuffix(text, everything)
	switch {
	case text == everything:
		return pattern{begins: true}, true
	case strings.Contains(begin, everything) || begin == "":
		return pattern{}, false
	case !begins:
		r, err := Parse(text)
		if err != nil || r.kind != registry {
			return pattern{}, false
		}
		return pattern{registry: r.remote.Context().RegistryStr(), text: r.String()}, true
	}
	// What is cut off is completed to a name that can be read, so that registries and folders mean what they mean in whole references.
	const tail = "x"
	r, err := name.ParseReference(begin + tail)
	if err != nil || isPath(begin) {
		return pattern{}, false
	}
	host, below, inFolder := strings.Cut(begin, "/")
	alone, _, _ := strings.Cut(host, ":")
	if !inFolder && (strings.Contains(alone, ".") || alone == "localhost") {
		return pattern{}, false // the beginning of a host would be that of other people's hosts
	}
	p := pattern{registry: r.Context().RegistryStr(), begins: true}
	switch {
	case inFolder && below == "" && (host == "docker.io" || host == name.DefaultRegistry): // not its official images alone
		p.text = p.registry + "/"
	case strings.Contains(begin[strings.LastIndex(begin, "/")+1:], ":"):
		p.text = strings.TrimSuffix(r.Name(), tail)
	default:
		p.text = strings.TrimSuffix(r.Context().Name(), tail)
	}
	return p, true
}

// isPath says whether a text names a file or a folder of this machine.
func isPath(text string) bool {
	for prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func (p pattern) matches(r Reference) bool {
	full := r.String()
	switch {
	case !p.begins:
		return full == p.text
	case strings.HasPrefix(full, p.text):
		return true
	}
	each, ofAll := strings.CutSuffix(p.text, ":")
	return ofAll && strings.HasPrefix(full, each+"@")
}

// Any says whether any image is allowed.
func (a Allowed) Any() bool { return len(a.patterns) > 0 }

// Names says whether a pattern other than * has a reference: whether an image is one that the operator means to give to callers.
func (a Allowed) Names(r Reference) bool {
	return slices.ContainsFunc(a.patterns, func(p pattern) bool { return p.registry != "" && p.matches(r) })
}

// Parse reads a reference of a caller's. Problems: image_reference, image_denied.
func (a Allowed) Parse(text string) (Reference, error) {
	if !a.Any() {
		return Reference{}, problem.New(problem.ImageDenied, "no session of this server begins from an image").WithHint("leave image out; the operator can list images in images.allow")
	}
	if isPath(text) {
		return Reference{}, problem.New(problem.ImageDenied, "a server takes images of registries, and no files").WithHint("push the image to a registry, and name it there")
	}
	r, err := Parse(text)
	if err != nil {
		return Reference{}, problem.Of(err).WithHint("write python:3.12-slim or registry.example.com/team/tool:1")
	}
	if !slices.ContainsFunc(a.patterns, func(p pattern) bool { return p.matches(r) }) {
		return Reference{}, problem.New(problem.ImageDenied, fmt.Sprintf("the operator of this server does not let sessions begin from the image %.200s", text)).
			WithHint("use another image; the operator can add it to images.allow")
	}
	return r, nil
}

// registries are the hosts that patterns name, as HOST:PORT.
func (a Allowed) registries() map[string]bool {
	all := map[string]bool{}
	for _, p := range a.patterns {
		switch {
		case p.registry == "":
		case strings.Contains(p.registry, ":"):
			all[p.registry] = true
		default:
			all[p.registry+":443"], all[p.registry+":80"] = true, true
		}
	}
	return all
}
