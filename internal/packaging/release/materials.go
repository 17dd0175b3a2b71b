package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cove/internal/packaging/gobuild"
	"cove/internal/python/pyenv"
)

// materials writes, in CycloneDX's form, what the programs are made of, and what the Python environments have that cove builds from its locks.
func (r *release) materials(ctx context.Context) error {
	tool, err := r.tool(ctx, "cyclonedx-gomod")
	if err != nil {
		return err
	}
	for arch, stage := range r.stages {
		cmd := command(ctx, ".", tool, "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", r.source.Version,
			"-output", filepath.Join(r.out, r.name(arch)+".cdx.json"), filepath.Join(stage, "cove"))
		if err := gobuild.Run(cmd); err != nil {
			return err
		}
	}
	list, err := pythonMaterials(pyenv.Locks(), r.source.Version, r.source.Date)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "cove-"+r.source.Version+"-python.cdx.json"), list, 0o644)
}

// The part of CycloneDX 1.6 that a list of distributions needs: https://cyclonedx.org/docs/1.6/json/
type materialList struct {
	Format     string           `json:"bomFormat"`
	Spec       string           `json:"specVersion"`
	Version    int              `json:"version"`
	Metadata   materialMetadata `json:"metadata"`
	Components []material       `json:"components"`
}

type materialMetadata struct {
	Timestamp string   `json:"timestamp"`
	Component material `json:"component"`
}

type material struct {
	Type       string             `json:"type"`
	Ref        string             `json:"bom-ref"`
	Name       string             `json:"name"`
	Version    string             `json:"version"`
	PURL       string             `json:"purl,omitempty"`
	Properties []materialProperty `json:"properties,omitempty"`
}

type materialProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// pythonMaterials lists the distributions of all locks. What a distribution is for is a property: the lock, and on which Pythons and platforms; so is each hash
// that a file of it may have.
func pythonMaterials(locks fs.FS, version string, date time.Time) ([]byte, error) {
	names, err := fs.Glob(locks, "*.txt")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("find the locks: %q: %w", names, err)
	}
	found := map[string]*material{}
	for _, name := range names {
		text, err := fs.ReadFile(locks, name)
		if err != nil {
			return nil, err
		}
		for _, pin := range pyenv.Pins(text) {
			ref := "pkg:pypi/" + pin.Name + "@" + pin.Version
			m := found[ref]
			if m == nil {
				m = &material{Type: "library", Ref: ref, Name: pin.Name, Version: pin.Version, PURL: ref}
				for _, sum := range pin.SHA256 {
					m.Properties = append(m.Properties, materialProperty{"cove:sha256", sum})
				}
				found[ref] = m
			}
			where := strings.TrimSuffix(name, ".txt")
			if pin.Marker != "" {
				where += " ; " + pin.Marker
			}
			m.Properties = append(m.Properties, materialProperty{"cove:lock", where})
		}
	}
	list := materialList{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: materialMetadata{
		Timestamp: date.Format(time.RFC3339), Component: material{Type: "application", Ref: "cove", Name: "cove, its Python environments", Version: version},
	}}
	for _, m := range found {
		list.Components = append(list.Components, *m)
	}
	slices.SortFunc(list.Components, func(a, b material) int { return strings.Compare(a.Ref, b.Ref) })
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}
