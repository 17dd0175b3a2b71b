package loop

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// forOperators finds hints about settings, which the model cannot change.
var forOperators = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`packages\.[a-z]`) })

// Bounds of what the model is told about one execution's packages.
const (
	packagesNamed = 20
	installsLimit = 2000 // bytes
)

// installed returns what the model has to know about the packages for its code: one line for all that were installed, and one for each that was not, with the
// reason.
func installed(events []kernel.Install) string {
	var packages []installation.Package
	var lines []string
	said := map[string]bool{}
	say := func(line string) {
		if !said[line] {
			said[line] = true
			lines = append(lines, "["+oneLine(line)+"]")
		}
	}
	for _, e := range events {
		if e.Provision.Restart == "" || e.Restarted {
			packages = append(packages, e.Provision.Installed...)
		}
		for _, r := range e.Provision.Refused {
			say("not installed: " + strings.TrimSuffix(reason(r), ".") + remedy(r))
		}
		for _, note := range e.Provision.Notes {
			say("note: " + note)
		}
		if e.Failure != nil {
			say("nothing could be installed: " + e.Failure.Message)
		}
	}
	if line := packageVersions(packages); line != "" {
		lines = append([]string{"[installed: " + line + "]"}, lines...)
	}
	return cutMiddle(strings.Join(lines, "\n"), installsLimit)
}

// reason returns why a module was refused. Most reasons name the module.
func reason(r installation.Refusal) string {
	if strings.Contains(r.Reason, r.Name) {
		return r.Reason
	}
	return r.Name + ": " + r.Reason
}

// remedy returns what the model itself can do about a refusal. A hint to change a setting does not help a model.
func remedy(r installation.Refusal) string {
	if r.Hint == "" || forOperators().MatchString(r.Hint) {
		return ""
	}
	return ". " + strings.TrimSuffix(r.Hint, ".")
}

// packageVersions names the packages that the code asked for, with their versions, without the packages that those require.
func packageVersions(packages []installation.Package) string {
	var names []string
	for _, p := range packages {
		if p.Asked {
			names = append(names, p.Name+" "+p.Version)
		}
	}
	if more := len(names) - packagesNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:packagesNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// refused says whether the model is told why a module is not there.
func refused(events []kernel.Install, module string) bool {
	root, _, _ := strings.Cut(module, ".")
	for _, e := range events {
		if e.Failure != nil {
			return true
		}
		for _, r := range e.Provision.Refused {
			if name, _, _ := strings.Cut(r.Name, "."); name == root {
				return true
			}
		}
	}
	return false
}

// oneLine keeps what comes from the code itself, such as the name of a module, from looking like another line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
