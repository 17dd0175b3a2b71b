package app_test

import (
	"path/filepath"
	"testing"

	"cove/internal/commands/app"
	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/image/imagetest"
	"cove/internal/server/hub"
)

// TestCallersImages has callers get what the operator has named, also nearby, and nothing that is on the machine for others.
func TestCallersImages(t *testing.T) {
	t.Parallel()
	registry := imagetest.NewRegistry(t)
	reference := registry.Push(t, "team/tool:1", imagetest.Contents{Files: map[string]string{"/mark": "here"}})
	registry.Push(t, "private/tool:1", imagetest.Contents{Files: map[string]string{"/mark": "private"}})
	c := config.Config{Folders: config.Folders{Data: filepath.Join(t.TempDir(), "data")}, Images: config.Images{Size: 1 << 30}}
	allowing := func(patterns ...string) hub.Images {
		t.Helper()
		c := c
		c.Images.Allow = patterns
		i, err := app.CallersImages(c)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	team := allowing(registry.Host+"/team/*", "*")
	if got := team.Here(reference); got != "" {
		t.Errorf("it is there before it is fetched: %s", got)
	}
	digest, err := team.Fetch(t.Context(), reference)
	if err != nil || team.Here(reference) != digest || digest == "" {
		t.Fatalf("%q, %q, %v", digest, team.Here(reference), err)
	}
	if named, err := team.May(reference); err != nil || !named {
		t.Errorf("it is named: %v, %v", named, err)
	}
	// The host is named for other images than this one.
	if _, err := team.Fetch(t.Context(), registry.Host+"/private/tool:1"); !problem.Has(err, problem.ImageDenied) {
		t.Errorf("another image of the same registry: %v", err)
	}
	all := allowing("*")
	if named, err := all.May(reference); err != nil || named || all.Here(reference) != "" {
		t.Errorf("where all are allowed: %v, %q, %v", named, all.Here(reference), err)
	}
	if _, err := all.Fetch(t.Context(), reference); !problem.Has(err, problem.ImageDenied) {
		t.Errorf("where all are allowed, one nearby: %v", err)
	}
	none := allowing()
	if _, err := none.May(reference); !problem.Has(err, problem.ImageDenied) || none.Here(reference) != "" {
		t.Errorf("where none is allowed: %v", err)
	}
	if _, err := team.Fetch(t.Context(), registry.Host+"/team/none:1"); !problem.Has(err, problem.ImageMissing) {
		t.Errorf("one that is not there: %v", err)
	}
}
