// Package bundle puts what cove needs on a machine without a network into one archive, and takes it out again.
//
// A bundle is a tar file: first bundle.json, which names everything else with its size and its SHA-256, then the program cove, then the wheels that the Python environment is
// built from, those of fonts and of uv included. The environment itself is not in it, because it depends on the Python below it; it is built from the wheels
// where it is used, by the same code and against the same locks as anywhere else. Nor is the warm interpreter, which depends on the processor.
//
// A bundle is hostile until the sums say otherwise: names are checked before anything is written, nothing is written outside of one folder, sizes are bounded, and
// a file that is not listed, comes twice or is missing makes all of it invalid. That the sums are right says that it is whole; the hashes in
// cove's locks say that the wheels are those that cove was made for.
package bundle

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"sync"

	"cove/internal/core/problem"
)

const (
	// form is counted up when older programs could not read it.
	form = 1
	// aboutName is the first member.
	aboutName = "bundle.json"
	// Program is the member that is cove itself.
	Program = "cove"
	// wheelsDir is the folder of wheels.
	wheelsDir = "wheels/"
	// mostAbout, mostFiles and mostBytes bound what a bundle may be.
	mostAbout = 4 << 20
	mostFiles = 5000
	mostBytes = 16 << 30
)

// About is what a bundle says of itself.
type About struct {
	Form     int    `json:"form"`
	Cove     string `json:"cove"`     // the version of the program that is in it and that it is for
	Platform string `json:"platform"` // linux/amd64
	Set      string `json:"set"`      // of packages
	Recipe   string `json:"recipe"`   // of the environment, as pyenv has it
	Python   string `json:"python"`   // the minor version that the wheels are for: "3.11"
	Files    []File `json:"files"`    // all other members, in their order
}

// File is a member of a bundle.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

var (
	wheelName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^wheels/[A-Za-z0-9][A-Za-z0-9._+!-]{0,250}\.whl$`) })
	sumText   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })
)

// check refuses what no bundle says, and what this program cannot use.
func (a About) check(own About) error {
	if a.Form != form {
		return problem.New(problem.BundleUnfit, fmt.Sprintf("the bundle has form %d, and this cove knows %d", a.Form, form)).WithHint(takeItsOwn)
	}
	seen, total := map[string]bool{}, int64(0)
	for _, f := range a.Files {
		if f.Name != Program && !wheelName().MatchString(f.Name) || seen[f.Name] || f.Size < 0 || f.Size > mostBytes || !sumText().MatchString(f.SHA256) {
			return invalid(fmt.Errorf("it lists %.200q", f.Name))
		}
		seen[f.Name] = true
		total += f.Size
	}
	if !seen[Program] || len(a.Files) > mostFiles || total > mostBytes {
		return invalid(fmt.Errorf("it lists %d files with %d bytes", len(a.Files), total))
	}
	switch {
	case a.Platform != own.Platform:
		return problem.New(problem.BundleUnfit, fmt.Sprintf("the bundle is for %s, and this is %s", a.Platform, own.Platform)).
			WithHint("make one on a machine like this: cove bundle FILE")
	case a.Cove != own.Cove:
		return problem.New(problem.BundleUnfit, fmt.Sprintf("the bundle is of cove %s, and this is cove %s", a.Cove, own.Cove)).WithHint(takeItsOwn)
	}
	return nil
}

const takeItsOwn = "use the program that is in it: tar -xf FILE cove, and then ./cove bundle install FILE"

func invalid(cause error) error {
	p := problem.New(problem.BundleInvalid, "this is not a whole bundle of cove's; nothing was installed").WithHint("bring it here again, and compare its SHA-256 with what cove bundle said when it was made")
	if cause != nil {
		p = p.WithCause(cause)
	}
	return p
}

func readAbout(r io.Reader) (About, error) {
	var a About
	if err := json.NewDecoder(io.LimitReader(r, mostAbout)).Decode(&a); err != nil {
		return a, invalid(err)
	}
	return a, nil
}
