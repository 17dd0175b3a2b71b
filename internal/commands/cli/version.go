package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print it as one JSON object, with the commit, its date, Go and gVisor."`
}

// Build is what the linker set of a program. What it did not set is empty.
type Build struct {
	Version string
	Commit  string // of the sources, in hexadecimal digits
	Date    string // of the commit, RFC 3339
}

// Complete fills in what Go itself recorded of a build that was made in a repository.
func (b Build) Complete() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		}
	}
	return b
}

// String is the version with the beginning of the commit, where that is known.
func (b Build) String() string {
	if len(b.Commit) < 12 {
		return b.Version
	}
	return b.Version + " (" + b.Commit[:12] + ")"
}

// built is what a program is made of.
type built struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // there were changes beside the commit
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Go       string `json:"go"`
	GVisor   string `json:"gvisor,omitempty"` // the version of its module, which has the date of the release

	Release *gvisorRelease `json:"gvisor_release,omitempty"`
}

func builtOf(from Build) built {
	b := built{Version: from.Version, Commit: from.Commit, Date: from.Date, OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, m := range info.Deps {
		if m.Path == "gvisor.dev/gvisor" {
			b.GVisor = m.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.modified" {
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (c *versionCmd) run(_ context.Context, p *Program) (int, error) {
	b := builtOf(p.Build)
	said := []string{fmt.Sprintf("cove %s %s/%s %s", p.Build, b.OS, b.Arch, b.Go)}
	if r, known := gvisorOf(b.GVisor, time.Now()); known {
		b.Release = &r
		said = append(said, r.lines()...)
	}
	if c.JSON {
		return 0, p.printJSON(b)
	}
	_, err := fmt.Fprintln(p.Out, strings.Join(said, "\n"))
	return 0, err
}
