package deps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// relaxation is an exact version that cannot be had and was not insisted on.
type relaxation struct{ name, pin, why string }

// mend leaves out of what is wanted that which cannot be had here by itself, and relaxes exact versions that models like to remember and that have no wheel for this Python.
// changed says whether another try makes sense.
func (i *Installer) mend(ctx context.Context, o *outcome) (changed bool, relaxed []relaxation, err error) {
	g, err := i.gateway(ctx)
	if err != nil {
		return false, nil, err
	}
	t, err := i.tags()
	if err != nil {
		return false, nil, err
	}
	var kept []want
	for _, w := range o.wants {
		project, err := g.Project(ctx, w.Name)
		if refusal, ok := refusalOf(&w, err); ok {
			o.refused, changed = append(o.refused, *refusal), true
			continue
		}
		if err != nil {
			return false, nil, err
		}
		usable := slices.DeleteFunc(slices.Clone(project.Files), func(f gateway.File) bool { return !i.fits(t, f) })
		there := slices.ContainsFunc(usable, func(f gateway.File) bool { return w.Allows(f.Version) })
		if !there {
			if there, err = i.buildable(ctx, g, w, project); err != nil {
				return false, nil, err
			}
		}
		if there {
			kept = append(kept, w)
			continue
		}
		changed = true
		pin, exact := w.Pin()
		if !exact || w.How == byPerson || len(usable) == 0 {
			o.refused = append(o.refused, i.unusable(t, w, project, usable))
			continue
		}
		w.Specifier = loosen(pin, usable)
		relaxed = append(relaxed, relaxation{name: w.Name, pin: pin, why: i.lack(t, project, pin)})
		kept = append(kept, w)
	}
	o.wants = kept
	return changed, relaxed, nil
}

// buildable says whether source of what is wanted may be built.
func (i *Installer) buildable(ctx context.Context, g *gateway.Gateway, w want, project gateway.Project) (bool, error) {
	if !i.options.Policy.builds() || i.options.Builder == nil || !slices.ContainsFunc(project.Files, func(f gateway.File) bool {
		return !f.Wheel && f.Withheld == "" && w.Allows(f.Version)
	}) {
		return false, nil
	}
	if i.options.Policy.Build {
		return true, nil
	}
	return i.pure(ctx, g, w, project)
}

// loosen returns the closest specifier that a usable file satisfies: the same major version from there on, the same major version, any.
func loosen(pin string, usable []gateway.File) string {
	major, _, _ := strings.Cut(pin, ".")
	if strings.Trim(major, "0123456789") != "" || major == "" {
		return ""
	}
	for _, spec := range []string{fmt.Sprintf(">=%s,==%s.*", pin, major), fmt.Sprintf("==%s.*", major)} {
		r := require.Requirement{Name: "x", Specifier: spec}
		if slices.ContainsFunc(usable, func(f gateway.File) bool { return r.Allows(f.Version) }) {
			return spec
		}
	}
	return ""
}

// lack says, as a clause, why a version cannot be used.
func (i *Installer) lack(t tags, project gateway.Project, version string) string {
	there, fits, withheld := false, false, ""
	for _, f := range project.Files {
		if require.Compare(f.Version, version) != 0 {
			continue
		}
		there = true
		if _, _, ok := t.rank(f.Name); ok {
			fits = true
			if f.Withheld != "" {
				withheld = f.Withheld
			}
		}
	}
	switch {
	case !there:
		return "the index has no such version"
	case fits && withheld != "":
		return "its file is withheld (" + withheld + ")"
	}
	return fmt.Sprintf("it has no wheel for Python %s on this machine", i.python)
}

// unusable says why nothing of a project can be used.
func (i *Installer) unusable(t tags, w want, project gateway.Project, usable []gateway.File) installation.Refusal {
	if len(usable) > 0 {
		newest := slices.MaxFunc(usable, func(a, b gateway.File) int { return require.Compare(a.Version, b.Version) })
		return installation.Refusal{
			Name: w.asked(), Code: string(problem.VersionUnavailable), Hint: "ask for another version, or for any",
			Reason: fmt.Sprintf("no version of %s that fits %s can be used here; the newest that can is %s", w.Name, w.Specifier, newest.Version),
		}
	}
	for _, f := range project.Files {
		if _, _, ok := t.rank(f.Name); ok && f.Withheld != "" {
			return installation.Refusal{
				Name: w.asked(), Code: string(problem.FileWithheld), Reason: fmt.Sprintf("no file of %s may be used: %s", w.Name, f.Withheld),
				Hint: "wait, or name the package in packages.min_age_exempt if its age is the reason",
			}
		}
	}
	p := i.noWheel(w.Name)
	return installation.Refusal{Name: w.asked(), Code: p.Code, Reason: p.Message, Hint: p.Hint}
}
