package indextest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	jsonType = "application/vnd.pypi.simple.v1+json"
	htmlType = "text/html; charset=utf-8"
)

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

// servePage answers with the page of a project, or with the list of all for "".
func (i *Index) servePage(w http.ResponseWriter, r *http.Request, project string) {
	i.mu.Lock()
	style, withMetadata := i.style, i.metadata
	listings := slices.Clone(i.releases[project])
	names := slices.Sorted(maps.Keys(i.releases))
	status := i.statuses[project]
	i.mu.Unlock()
	if project != "" && len(listings) == 0 {
		http.NotFound(w, r)
		return
	}
	accept := r.Header.Get("Accept")
	asJSON := style == JSON || style == Negotiated && strings.Contains(accept, jsonType)
	if style == JSON && accept != "" && !strings.Contains(accept, "json") && !strings.Contains(accept, "*/*") {
		http.Error(w, "only JSON is spoken here", http.StatusNotAcceptable)
		return
	}
	var body []byte
	switch {
	case asJSON && project == "":
		body = jsonList(names)
	case asJSON:
		body = jsonPage(project, status, listings, withMetadata)
	case project == "":
		body = htmlList(names)
	default:
		body = htmlPage(project, status, listings, withMetadata, style == Mirror)
	}
	contentType := htmlType
	if asJSON {
		contentType = jsonType
	}
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "max-age=600")
	w.Header().Set("Vary", "Accept")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body)
}

func (l listing) uploaded() time.Time {
	if l.Uploaded.IsZero() {
		return time.Date(2020, 1, 2, 3, 4, 5, 678901000, time.UTC)
	}
	return l.Uploaded.UTC()
}

func (l listing) hash() string {
	switch l.Hash {
	case "":
		return l.sum
	case "none":
		return ""
	}
	return l.Hash
}

func (l listing) metadataHash() string {
	sum := sha256.Sum256(l.metadata)
	return hex.EncodeToString(sum[:])
}

func jsonList(names []string) []byte {
	projects := []map[string]string{}
	for _, name := range names {
		projects = append(projects, map[string]string{"name": name})
	}
	return encoded(map[string]any{"meta": map[string]string{"api-version": "1.4"}, "projects": projects})
}

func jsonPage(project, status string, listings []listing, withMetadata bool) []byte {
	files, versions := []map[string]any{}, []string{}
	for _, l := range listings {
		hashes := map[string]string{}
		if l.hash() != "" {
			hashes["sha256"] = l.hash()
		}
		size := int64(len(l.content))
		if l.Size != 0 {
			size = l.Size
		}
		file := map[string]any{"filename": l.name, "url": "../../files/" + l.name, "hashes": hashes, "size": size, "yanked": false}
		if l.Yanked != "" {
			file["yanked"] = l.Yanked
		}
		if !l.Undated {
			file["upload-time"] = l.uploaded().Format("2006-01-02T15:04:05.000000Z")
		}
		if l.RequiresPython != "" {
			file["requires-python"] = l.RequiresPython
		}
		if withMetadata && l.metadata != nil {
			file["core-metadata"] = map[string]string{"sha256": l.metadataHash()}
		}
		files = append(files, file)
		if !slices.Contains(versions, l.version) {
			versions = append(versions, l.version)
		}
	}
	page := map[string]any{"meta": map[string]any{"api-version": "1.4"}, "name": project, "files": files, "versions": versions}
	if status != "" {
		page["project-status"] = map[string]string{"status": status}
	}
	return encoded(page)
}

func encoded(page map[string]any) []byte {
	body, err := json.Marshal(page)
	if err != nil {
		panic(err) // a page consists of maps, strings and numbers
	}
	return body
}

func htmlList(names []string) []byte {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.4\"><title>Simple index</title></head><body>\n")
	for _, name := range names {
		fmt.Fprintf(&b, "<a href=\"/simple/%s/\">%s</a><br/>\n", name, name)
	}
	b.WriteString("</body></html>\n")
	return []byte(b.String())
}

func htmlPage(project, status string, listings []listing, withMetadata, withTimes bool) []byte {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.4\">\n")
	if status != "" {
		fmt.Fprintf(&b, "<meta name=\"pypi:project-status\" content=\"%s\">\n", html.EscapeString(status))
	}
	fmt.Fprintf(&b, "<title>Links for %s</title></head><body><h1>Links for %s</h1>\n", project, project)
	for _, l := range listings {
		address := "../../files/" + l.name
		if l.hash() != "" {
			address += "#sha256=" + l.hash()
		}
		attribute := func(name, value string) string { return fmt.Sprintf(" %s=\"%s\"", name, html.EscapeString(value)) }
		attributes := attribute("href", address)
		if l.RequiresPython != "" {
			attributes += attribute("data-requires-python", l.RequiresPython)
		}
		if l.Yanked != "" {
			attributes += attribute("data-yanked", l.Yanked)
		}
		if withMetadata && l.metadata != nil {
			sum := "sha256=" + l.metadataHash()
			attributes += attribute("data-dist-info-metadata", sum) + attribute("data-core-metadata", sum)
		}
		if withTimes && !l.Undated {
			attributes += attribute("data-upload-time", l.uploaded().Format("2006-01-02T15:04:05.000000Z"))
		}
		fmt.Fprintf(&b, "<a%s>%s</a><br/>\n", attributes, html.EscapeString(l.name))
	}
	b.WriteString("</body></html>\n")
	return []byte(b.String())
}
