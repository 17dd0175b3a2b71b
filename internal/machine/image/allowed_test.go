package image_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"cove/internal/core/problem"
	"cove/internal/machine/image"
)

func allowed(t *testing.T, patterns ...string) image.Allowed {
	t.Helper()
	a, err := image.ParseAllowed(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAllowed compares references in full with patterns in full, so that no part of a name stands for a part of another kind.
func TestAllowed(t *testing.T) {
	t.Parallel()
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for pattern, of := range map[string]struct{ in, out []string }{
		"python:3.12-slim":      {[]string{"python:3.12-slim", "docker.io/library/python:3.12-slim", "index.docker.io/library/python:3.12-slim"}, []string{"python", "python:3.12", "me/python:3.12-slim", "python" + digest}},
		"python":                {[]string{"python", "python:latest"}, []string{"python:3"}},
		"python:*":              {[]string{"python:3.12", "python", "python" + digest, "library/python:3"}, []string{"pythons:3", "me/python:3", "ghcr.io/library/python:3"}},
		"python:3*":             {[]string{"python:3.12", "python:3"}, []string{"python", "python:2", "python" + digest}},
		"python*":               {[]string{"python:3.12", "pythons"}, []string{"python/x", "me/python"}},
		"team/*":                {[]string{"team/tool", "docker.io/team/tool:1"}, []string{"team", "teams/tool", "ghcr.io/team/tool"}},
		"docker.io/*":           {[]string{"python", "team/tool"}, []string{"ghcr.io/team/tool"}},
		"ghcr.io/team/*":        {[]string{"ghcr.io/team/tool:1", "ghcr.io/team/a/b" + digest}, []string{"ghcr.io/teams/tool", "team/tool", "ghcr.io/team"}},
		"ghcr.io/*":             {[]string{"ghcr.io/team/tool"}, []string{"ghcr.io.evil.example/team/tool", "python"}},
		"localhost:5000/*":      {[]string{"localhost:5000/tool"}, []string{"localhost:5001/tool", "localhost/tool"}},
		"ghcr.io/team" + digest: {nil, []string{"ghcr.io/team"}},
		"*":                     {[]string{"python", "ghcr.io/team/tool" + digest}, nil},
	} {
		a := allowed(t, pattern)
		for _, reference := range of.in {
			if r, err := a.Parse(reference); err != nil {
				t.Errorf("%s: %s: %v", pattern, reference, err)
			} else if a.Names(r) != (pattern != "*") {
				t.Errorf("%s: %s is named: %v", pattern, reference, a.Names(r))
			}
		}
		for _, reference := range of.out {
			if _, err := a.Parse(reference); !problem.Has(err, problem.ImageDenied) {
				t.Errorf("%s: %s: %v", pattern, reference, err)
			}
		}
	}
	for _, file := range []string{"oci:/srv/x", "oci-archive:x.tar", "docker-archive:x.tar"} {
		if _, err := allowed(t, "*").Parse(file); !problem.Has(err, problem.ImageDenied) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := allowed(t, "*").Parse("a b"); !problem.Has(err, problem.ImageReference) {
		t.Errorf("a text that is no reference: %v", err)
	}
	if _, err := allowed(t).Parse("python"); !problem.Has(err, problem.ImageDenied) {
		t.Errorf("without a pattern: %v", err)
	}
	for _, wrong := range []string{"", "**", "*python", "py*n", "ghcr.io*", "registry.example.com:50*", "localhost*", "oci:*", "oci:/srv/x", "docker-archive:x*", "UPPER/*", "a b", "x@sha256:12*"} {
		if _, err := image.ParseAllowed([]string{wrong}); !problem.Has(err, problem.ConfigInvalid) {
			t.Errorf("the pattern %q: %v", wrong, err)
		}
	}
}

// TestRegistriesNearby has a registry on this machine asked when the operator has named it, and never by what a registry sends on to.
func TestRegistriesNearby(t *testing.T) {
	t.Parallel()
	files := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var asked atomic.Int64
	counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(counted.Close)
	sending := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // has its blobs elsewhere
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, counted.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(sending.Close)
	token := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // has its tokens elsewhere
		w.Header().Set("Www-Authenticate", `Bearer realm="`+counted.URL+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(token.Close)
	at := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	r, err := name.ParseReference(at(counted) + "/team/tool:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, imageOf(t, v1.Config{}, []entry{file("a", "text")})); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		patterns []string
		from     *httptest.Server
		code     problem.Code // nil: it is fetched
	}{
		"a registry that is named":               {[]string{at(counted) + "/*"}, counted, nil},
		"a registry that is not named":           {[]string{"*"}, counted, problem.ImageDenied},
		"another one that is named":              {[]string{"*", at(sending) + "/*"}, counted, problem.ImageDenied},
		"blobs at a host that is not named":      {[]string{at(sending) + "/*"}, sending, problem.ImageDenied},
		"blobs at a host that is named":          {[]string{at(sending) + "/*", at(counted) + "/other:1"}, sending, nil},
		"tokens from a host that is not named":   {[]string{at(token) + "/*"}, token, problem.ImageUnreachable}, // the library refuses that by itself
		"this machine by another of its numbers": {[]string{"*"}, nil, problem.ImageDenied},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: they count
			a, before := allowed(t, one.patterns...), asked.Load()
			reference := "127.0.0.2:1/team/tool:1"
			if one.from != nil {
				reference = at(one.from) + "/team/tool:1"
			}
			i, err := ensure(t, store(t), reference, image.Get{Way: a.Way()})
			switch {
			case one.code == nil && (err != nil || textOf(t, i, "a") != "text"):
				t.Errorf("%v", err)
			case one.code != nil && !problem.Has(err, one.code):
				t.Errorf("the problem is %v", err)
			case one.code != nil && asked.Load() != before:
				t.Error("it was asked all the same")
			}
		})
	}
}
