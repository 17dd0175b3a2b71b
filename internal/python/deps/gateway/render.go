package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"time"
)

// renderVersion is part of the pages' tags: it changes with what is written here.
const renderVersion = "1."

type servedMeta struct {
	Version string `json:"api-version"`
}

type servedFile struct {
	Name     string            `json:"filename"`
	URL      string            `json:"url"`
	Hashes   map[string]string `json:"hashes"`
	Requires string            `json:"requires-python,omitempty"`
	Size     int64             `json:"size,omitempty"`
	Uploaded string            `json:"upload-time,omitempty"`
	Yanked   any               `json:"yanked"`
	Metadata any               `json:"core-metadata,omitempty"`
}

// render writes the page that clients get: what the rules let pass, with URLs behind the gateway.
func (l *listing) render(asJSON bool) []byte {
	if !asJSON {
		return l.renderHTML()
	}
	files := []servedFile{}
	versions := []string{}
	seen := map[string]bool{}
	// PEP 700 wants the size of every file from its version on.
	protocol := "1.1"
	for _, f := range l.files {
		if f.Withheld != "" {
			continue
		}
		s := servedFile{Name: f.Name, URL: l.place(f), Hashes: map[string]string{"sha256": f.SHA256}, Requires: f.RequiresPython, Size: f.Size, Yanked: false}
		if !f.Uploaded.IsZero() {
			s.Uploaded = f.Uploaded.UTC().Format(time.RFC3339Nano)
		}
		switch f.entry.yanked {
		case "":
		case "yes":
			s.Yanked = true
		default:
			s.Yanked = f.entry.yanked
		}
		switch f.entry.metadata {
		case "":
		case unknownSum:
			s.Metadata = true
		default:
			s.Metadata = map[string]string{"sha256": f.entry.metadata}
		}
		if s.Size == 0 {
			protocol = "1.0"
		}
		files = append(files, s)
		if !seen[f.Version] {
			seen[f.Version] = true
			versions = append(versions, f.Version)
		}
	}
	return encode(struct {
		Meta     servedMeta   `json:"meta"`
		Name     string       `json:"name"`
		Versions []string     `json:"versions"`
		Files    []servedFile `json:"files"`
	}{servedMeta{protocol}, l.project, versions, files})
}

// place is where a file is behind the gateway. Its hash is in it, so that the bytes below it never change.
func (l *listing) place(f *candidate) string {
	return "http://" + indexHost + "/files/" + l.project + "/" + f.SHA256 + "/" + f.Name
}

func (l *listing) renderHTML() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.1\"><title>Links for %s</title></head><body>\n", html.EscapeString(l.project))
	for _, f := range l.files {
		if f.Withheld != "" {
			continue
		}
		fmt.Fprintf(&b, `<a href="%s#sha256=%s"`, html.EscapeString(l.place(f)), f.SHA256)
		attribute := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, ` %s="%s"`, name, html.EscapeString(value))
			}
		}
		attribute("data-requires-python", f.RequiresPython)
		attribute("data-yanked", f.entry.yanked)
		if !f.Uploaded.IsZero() {
			attribute("data-upload-time", f.Uploaded.UTC().Format(time.RFC3339Nano))
		}
		switch f.entry.metadata {
		case "":
		case unknownSum:
			attribute("data-core-metadata", "true")
		default:
			attribute("data-core-metadata", "sha256="+f.entry.metadata)
		}
		fmt.Fprintf(&b, ">%s</a><br>\n", html.EscapeString(f.Name))
	}
	b.WriteString("</body></html>\n")
	return b.Bytes()
}

func emptyIndex(asJSON bool) []byte {
	if !asJSON {
		return []byte("<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.1\"><title>Simple index</title></head><body></body></html>\n")
	}
	return encode(struct {
		Meta     servedMeta `json:"meta"`
		Projects []string   `json:"projects"`
	}{servedMeta{"1.1"}, []string{}})
}

// encode writes JSON of types that always can be written.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return text
}
