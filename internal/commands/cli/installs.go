package cli

import (
	"fmt"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// packagesShown is how many packages one line names.
const packagesShown = 5

// tale is what a person is told of an installation that is over. Nothing in it has line ends or control characters.
type tale struct {
	installed string   // "" when nothing was
	notes     []string // what else is good to know
	troubles  []string // what was not installed, each with what to do on a line of its own
}

func taleOf(e kernel.Install) tale {
	var t tale
	p := e.Provision
	if len(p.Installed) > 0 && (p.Restart == "" || e.Restarted) {
		t.installed = "installed " + packageNames(p.Installed) + " (" + cost(p) + ")"
	}
	if e.Restarted {
		t.notes = append(t.notes, "the interpreter was started anew"+because(p.Restart))
	}
	for _, note := range p.Notes {
		t.notes = append(t.notes, oneLine(note))
	}
	for _, r := range p.Refused {
		t.troubles = append(t.troubles, hinted(refusalText(r), r.Hint))
	}
	if e.Failure != nil {
		t.troubles = append(t.troubles, hinted("nothing was installed: "+oneLine(message(e.Failure)), e.Failure.Hint))
	}
	return t
}

// refusalText is why something is not installed. Most reasons name it.
func refusalText(r installation.Refusal) string {
	if strings.Contains(r.Reason, r.Name) {
		return oneLine(r.Reason)
	}
	return oneLine(r.Name) + ": " + oneLine(r.Reason)
}

// told remembers what has been said, since what was refused before the code ran is refused again when the code imports it. The zero value is ready.
type told map[string]bool

// news returns what has not been said yet.
func (t *told) news(texts []string) []string {
	if *t == nil {
		*t = told{}
	}
	var out []string
	for _, text := range texts {
		if !(*t)[text] {
			out = append(out, text)
		}
		(*t)[text] = true
	}
	return out
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ", because " + oneLine(reason)
}

// hinted is a sentence with the next step below it.
func hinted(sentence, hint string) string {
	if hint == "" {
		return sentence
	}
	lines := strings.Split(strings.TrimSpace(hint), "\n")
	for k := range lines {
		lines[k] = oneLine(lines[k])
	}
	return sentence + "\n  " + strings.Join(lines, "\n  ")
}

// packageNames names what was asked for, with versions, and counts the rest. Packages come the asked ones first.
func packageNames(packages []installation.Package) string {
	var names []string
	for _, p := range packages {
		if len(names) == packagesShown || (!p.Asked && len(names) > 0) {
			break
		}
		names = append(names, strings.TrimSpace(oneLine(p.Name+" "+p.Version)))
	}
	text := strings.Join(names, ", ")
	if more := len(packages) - len(names); more > 0 {
		text += lang.Sprintf(" and %d more", more)
	}
	return text
}

// cost says what an installation took.
func cost(p installation.Provision) string {
	if p.Cached {
		return lang.Text("cached")
	}
	var size int64
	for _, one := range p.Installed {
		size += one.Size
	}
	text := lang.Text(seconds(p.Seconds))
	if size >= 1e6 {
		text += ", " + decimalSize(size)
	}
	return text
}

func seconds(s float64) string {
	switch {
	case s < 0.1:
		return "less than 0.1 s"
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	case s < 60:
		return fmt.Sprintf("%.0f s", s)
	}
	return fmt.Sprintf("%d min %d s", int(s)/60, int(s)%60)
}

// decimalSize is a size as package indexes write it.
func decimalSize(n int64) string {
	switch {
	case n < 1e3:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%d kB", n/1e3)
	case n < 1e7:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n < 1e9:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// phase says what is done to packages, by what Progress.Phase says.
func phase(name, packages string) string {
	switch name {
	case "resolve":
		return lang.Sprintf("resolving %s", packages)
	case "download":
		return lang.Sprintf("downloading %s", packages)
	case "unpack":
		return lang.Sprintf("unpacking %s", packages)
	case "compile":
		return lang.Sprintf("compiling %s", packages)
	case "build":
		return lang.Sprintf("building %s", packages)
	}
	return oneLine(name) + " " + packages
}

// progressText is the line that shows how far an installation is.
func progressText(p installation.Progress) string {
	packages := lang.Sprintf("packages")
	if len(p.Packages) > 0 {
		packages = packageNames(p.Packages)
	}
	text := phase(p.Phase, packages)
	switch {
	case p.Phase != "download":
	case p.Total > 0 && p.Received == 0:
		text += ", " + decimalSize(p.Total)
	case p.Total > 0:
		total, received := decimalSize(p.Total), decimalSize(min(p.Received, p.Total))
		if number, unit, _ := strings.Cut(received, " "); strings.HasSuffix(total, " "+unit) {
			received = number
		}
		text = lang.Sprintf("downloading %s, %s of %s", packages, received, total)
	case p.Received > 0:
		text += "  " + decimalSize(p.Received)
	}
	return text
}

// announcedDownload is how large a download is, in bytes, of which a line that stays says so when it begins.
const announcedDownload = 100_000_000

// announcement remembers whether such a line was shown of the installation that is under way. The zero value is ready.
type announcement bool

// announce returns the line, once an installation, or "". p is nil when the installation is over.
func (a *announcement) announce(p *installation.Progress) string {
	switch {
	case p == nil:
		*a = false
	case !bool(*a) && p.Phase == "download" && p.Total > announcedDownload:
		*a = true
		begun := *p
		begun.Received = 0
		return progressText(begun)
	}
	return ""
}

func notNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// recordPace is the least time between two records about the same phase of an installation.
const recordPace = 100 * time.Millisecond

// pace thins out the records of progress. The zero value is ready.
type pace struct {
	phase string
	last  time.Time
}

// passes says whether an event is to be written.
func (p *pace) passes(e kernel.Event) bool {
	install, ok := e.(kernel.Install)
	if !ok || install.Progress == nil {
		return true
	}
	if install.Progress.Phase == p.phase && time.Since(p.last) < recordPace {
		return false
	}
	p.phase, p.last = install.Progress.Phase, time.Now()
	return true
}

// installFlags are the flags of every command whose code may have packages installed.
type installFlags struct {
	NoInstall  bool `help:"Install nothing: code has the environment and what the project adds to it."`
	Offline    bool `help:"Install only what was downloaded before."`
	AllowBuild bool `help:"Build packages that have no wheel from source, in a sandbox of their own that reaches the package index alone."`
}

// install puts the flags on top of the settings.
func (f installFlags) install(c *config.Config) {
	c.Packages.Install = c.Packages.Install && !f.NoInstall
	c.Packages.Offline = c.Packages.Offline || f.Offline
	c.Packages.Build = c.Packages.Build || f.AllowBuild
}
