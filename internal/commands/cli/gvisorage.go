package cli

import (
	"context"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
)

// advisory is a published fault of gVisor.
type advisory struct {
	ID    string `json:"id"`
	About string `json:"about"`
	// Fixed is when gVisor's sources were mended: releases from before have the fault.
	Fixed time.Time `json:"fixed"`
	// Here is why the fault does not matter in cove; "": it does.
	Here string `json:"here,omitempty"`
}

// advisories are those that were published since the oldest release that cove was made with. A release of cove that is made with another gVisor takes out what does not concern it any more.
func advisories() []advisory {
	return []advisory{{
		ID:    "CVE-2026-96812",
		About: lang.Text("a device /dev/cuse in an image makes its code root of the host"),
		Fixed: time.Date(2026, 9, 25, 0, 0, 0, 0, time.UTC),
		Here:  lang.Text("no device of an image, a volume or an archive comes into a sandbox, and root in a session makes none"),
	}}
}

// oldGVisor is how old gVisor is when the doctor warns. It is released every week.
const oldGVisor = 180 * 24 * time.Hour

// gvisorRelease is the gVisor that a program is made with.
type gvisorRelease struct {
	Date       string     `json:"date"` // of the release
	Days       int        `json:"days"` // since then
	Advisories []advisory `json:"advisories,omitempty"`
}

// gvisorOf returns what is known of a version of gVisor's module, which is v0.0.0-DATE-COMMIT.
func gvisorOf(version string, now time.Time) (r gvisorRelease, known bool) {
	parts := strings.Split(version, "-")
	if len(parts) < 2 || len(parts[1]) < 8 {
		return r, false
	}
	date, err := time.Parse("20060102", parts[1][:8])
	if err != nil {
		return r, false
	}
	r = gvisorRelease{Date: date.Format(time.DateOnly), Days: int(now.Sub(date).Hours() / 24)}
	for _, a := range advisories() {
		if date.Before(a.Fixed) {
			r.Advisories = append(r.Advisories, a)
		}
	}
	return r, true
}

// lines are what is said of a release, for people.
func (r gvisorRelease) lines() (all []string) {
	all = append(all, lang.Sprintf("gVisor of %s, %d days old", r.Date, r.Days))
	for _, a := range r.Advisories {
		line := a.ID + lang.Joint(": ") + lang.Text(a.About)
		if a.Here != "" {
			line += lang.Joint("; ") + lang.Sprintf("not here: %s", a.Here)
		}
		all = append(all, line)
	}
	return all
}

func checkGVisor(_ context.Context, p *Program, _ config.Config) check {
	r, known := gvisorOf(builtOf(p.Build).GVisor, time.Now())
	if !known {
		return check{Name: "gvisor", Status: warned, Detail: "how old gVisor is cannot be told from this build"}
	}
	c := check{Name: "gvisor", Status: good, Detail: strings.Join(r.lines(), lang.Joint("; "))}
	open := false
	for _, a := range r.Advisories {
		open = open || a.Here == ""
	}
	if open || time.Duration(r.Days)*24*time.Hour > oldGVisor {
		c.Status, c.Fix = warned, "install a newer release of cove, or build one with a newer gVisor (docs/release.md)"
	}
	return c
}
