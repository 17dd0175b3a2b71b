// Package installation says what an installation of packages is, brings and refuses, for those who tell of it and those who keep what a session has. Package
// deps makes it happen.
package installation

import (
	"path/filepath"
	"slices"
)

// State is what a session has been given. It is part of what is saved of a session. Its zero value is a new session's.
type State struct {
	Requirements []string          `json:"requirements,omitempty"` // all that was asked for, PEP 508
	Layers       []string          `json:"layers,omitempty"`       // names, the last made first
	First        []string          `json:"first,omitempty"`        // those of Layers that go before the environment's own packages
	Packages     map[string]string `json:"packages,omitempty"`     // distribution to version, of all layers
	Looked       []string          `json:"looked,omitempty"`       // unknown names that its code has had an index asked for
}

// Paths returns the folders of a state's layers, as they are seen below root (where layers are mounted, as an engine shows it): those that go before
// the environment's own packages, and those that go after.
func (s State) Paths(root string) (first, last []string) {
	for _, name := range s.Layers {
		path := filepath.Join(root, name)
		if slices.Contains(s.First, name) {
			first = append(first, path)
		} else {
			last = append(last, path)
		}
	}
	return first, last
}

// Clone returns a copy that shares nothing with s.
func (s State) Clone() State {
	packages := make(map[string]string, len(s.Packages))
	for name, version := range s.Packages {
		packages[name] = version
	}
	return State{Requirements: slices.Clone(s.Requirements), Layers: slices.Clone(s.Layers), First: slices.Clone(s.First), Packages: packages, Looked: slices.Clone(s.Looked)}
}

// Progress says how far an installation is.
type Progress struct {
	Phase           string // "resolve", "download", "unpack", "compile", "build"
	Packages        []Package
	Received, Total int64 // bytes
}

// Package is one distribution that was installed or is being installed.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Size    int64  `json:"size,omitempty"`   // bytes of the wheel
	Asked   bool   `json:"asked,omitempty"`  // for itself, not as a dependency
	Module  string `json:"module,omitempty"` // that was imported, where that is why
	Reason  string `json:"reason,omitempty"` // why this one: names.Reason, or scan's Asked.How
}

// Refusal is something that was asked for and is not installed.
type Refusal struct {
	Name   string // module or distribution, as asked
	Code   string // a problem code: package_unknown, package_refused, package_needs_approval, no_wheel, ...
	Reason string // one sentence
	Hint   string
}

// Provision is the answer to a Request.
type Provision struct {
	State     State     // the session's from now on
	Layer     string    // name of the layer to add; "" when there is nothing to add
	First     bool      // it goes before the environment's own packages
	Restart   string    // not "": why a new interpreter is needed first; Layer is made, but must be added to the new one alone, with State.Paths
	Installed []Package // what Layer brings, the asked ones first
	Refused   []Refusal
	Notes     []string // what a person should know: pins that were relaxed, an index that could not be asked, ...
	Cached    bool     // nothing was resolved, downloaded or made
	Seconds   float64

	Versions map[string]string // of everything that was installed, dependencies included; for writing a lock
}

// Silent says that there is nothing to tell anybody.
func (p Provision) Silent() bool {
	return len(p.Installed) == 0 && p.Restart == "" && len(p.Refused) == 0 && len(p.Notes) == 0
}
