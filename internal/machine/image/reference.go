package image

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"cove/internal/core/problem"
)

// kinds of where an image comes from.
type kind int

const (
	registry kind = iota
	dockerArchive
	ociArchive
	ociLayout
)

// prefixes say where an image comes from that no registry has, as other tools have them.
var prefixes = map[string]kind{"docker-archive:": dockerArchive, "oci-archive:": ociArchive, "oci:": ociLayout}

// Reference says which image is meant, and where it comes from.
type Reference struct {
	kind   kind
	remote name.Reference // of a registry
	path   string         // absolute, of a file or a folder of this machine
	prefix string
}

// longestReference bounds what names an image, in bytes.
const longestReference = 1024

// Parse reads python:3.12-slim, registry.example.com/team/tool@sha256:..., docker-archive:FILE, oci-archive:FILE or oci:FOLDER. Problems: image_reference.
func Parse(text string) (Reference, error) {
	wrong := problem.New(problem.ImageReference, fmt.Sprintf("%.200q names no image", text)).
		WithHint("write python:3.12-slim, registry.example.com/team/tool:1, oci-archive:FILE, docker-archive:FILE or oci:FOLDER")
	if len(text) > longestReference || strings.ContainsAny(text, "\x00\n") {
		return Reference{}, wrong
	}
	for prefix, kind := range prefixes {
		if file, ok := strings.CutPrefix(text, prefix); ok {
			full, err := filepath.Abs(file)
			if file == "" || err != nil {
				return Reference{}, wrong.WithCause(err)
			}
			return Reference{kind: kind, path: full, prefix: prefix}, nil
		}
	}
	r, err := name.ParseReference(text)
	if err != nil {
		return Reference{}, wrong.WithCause(err)
	}
	return Reference{kind: registry, remote: r}, nil
}

// String is the reference in full, with the registry and the tag that are meant when none is said.
func (r Reference) String() string {
	if r.kind == registry {
		return r.remote.Name()
	}
	return r.prefix + r.path
}
