package deps

import (
	"fmt"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/deps/names"
	"cove/internal/python/deps/require"
	"cove/internal/python/deps/scan"
	"cove/internal/python/installation"
)

// How a want came about, besides the values of scan.Asked.How.
const (
	byImport = "import"
	byPerson = "person" // somebody gave the distribution's name, and so approves it
)

// want is one distribution that has to be there.
type want struct {
	require.Requirement
	How    string
	Module string // that was imported, where that is why
	Reason string
	ByHand bool // the table is sure of it, whatever its rank
	Tier   Tier
}

// asked is the want as it was asked for.
func (w want) asked() string {
	if w.Module != "" {
		return w.Module
	}
	return w.String()
}

// wants returns what of a request has to be installed, and what of it cannot be had under any policy. It asks no index.
func (i *Installer) wants(r Request) (wants []want, refused []installation.Refusal) {
	for _, text := range r.Report.Refused {
		refused = append(refused, installation.Refusal{Name: text, Code: string(problem.RequirementNotAllowed), Reason: fmt.Sprintf("%s is not installed: only packages given by name and version are", text),
			Hint: "ask for the package by its name on the index"})
	}
	have := i.versions(r.State)
	for _, asked := range r.Report.Asked {
		if satisfied(asked.Requirement, have, r.State) {
			continue
		}
		wants = append(wants, want{Requirement: asked.Requirement, How: asked.How, Reason: asked.How})
	}
	explicit := slices.Clone(wants)
	for _, imported := range r.Report.Imports {
		if imported.Optional || slices.ContainsFunc(imported.Unless, func(module string) bool { return i.there(module, r) }) {
			continue
		}
		found, no := i.wantsOf(imported, r, have, explicit)
		wants, refused = append(wants, found...), append(refused, no...)
	}
	wants = append(wants, companions(wants, have)...)
	return merge(wants), slices.CompactFunc(refused, func(a, b installation.Refusal) bool { return a == b })
}

// companions returns what wants do not work without, where neither they nor what is there have it.
func companions(wants []want, have map[string]string) (more []want) {
	for _, w := range wants {
		all := names.Companions(w.Name)
		if len(all) == 0 || slices.ContainsFunc(all, func(c require.Requirement) bool {
			version, there := have[c.Name]
			return there && c.Allows(version) || slices.ContainsFunc(slices.Concat(wants, more), func(o want) bool { return o.Name == c.Name })
		}) {
			continue
		}
		more = append(more, want{Requirement: all[0], How: byImport, Module: w.Module, Reason: w.Name, ByHand: true})
	}
	return more
}

// wantsOf returns what one import takes.
func (i *Installer) wantsOf(imported scan.Import, r Request, have map[string]string, explicit []want) (wants []want, refused []installation.Refusal) {
	for _, module := range i.missing(imported, r) {
		if imported.Distribution != "" {
			name := require.Normalize(imported.Distribution)
			if _, there := have[name]; !there {
				wants = append(wants, want{Requirement: require.Requirement{Name: name}, How: byImport, Module: module,
					Reason: imported.Need, ByHand: true})
			}
			continue
		}
		w, no := i.wantOf(module, have, explicit)
		if w != nil {
			wants = append(wants, *w)
		}
		if no != nil {
			refused = append(refused, *no)
		}
	}
	return wants, refused
}

// wantOf returns what provides a module, or why nothing does.
func (i *Installer) wantOf(module string, have map[string]string, explicit []want) (*want, *installation.Refusal) {
	answer := names.Resolve(module, i.python)
	root, _, _ := strings.Cut(module, ".")
	if slices.ContainsFunc(explicit, func(w want) bool {
		return w.Name == require.Normalize(root) || answer.Status == names.Found && slices.Contains(alike(answer.Distribution), w.Name)
	}) {
		return nil, nil // what was asked for by name is what the import means
	}
	switch answer.Status {
	case names.Standard:
		return nil, nil
	case names.Refused:
		return nil, &installation.Refusal{Name: module, Code: string(problem.PackageRefused), Reason: answer.Explanation, Hint: answer.Hint}
	case names.Unknown:
		if len(explicit) > 0 {
			return nil, nil // one of those may well bring it; the import hook asks again if not
		}
		return nil, &installation.Refusal{Name: module, Code: string(problem.PackageUnknown), Reason: answer.Explanation, Hint: answer.Hint}
	}
	if answer.Reason == names.BySameName && len(explicit) > 0 {
		return nil, nil
	}
	asked := require.Requirement{Name: answer.Distribution, Extras: answer.Extras, Specifier: answer.Specifier}
	if len(asked.Extras) == 0 && slices.ContainsFunc(alike(asked.Name), func(name string) bool {
		version, there := have[name]
		return there && asked.Allows(version)
	}) {
		return nil, nil
	}
	return &want{
		Requirement: asked, How: byImport, Module: module, Reason: string(answer.Reason),
		ByHand: answer.Reason == names.ByOverride || answer.Reason == names.ByTable,
	}, nil
}

// alike returns a distribution and those that do as well.
func alike(name string) []string {
	if all := names.Interchangeable(name); len(all) > 0 {
		return all
	}
	return []string{name}
}

// there says whether a module can be imported, as far as a request tells.
func (i *Installer) there(module string, r Request) bool {
	root, _, _ := strings.Cut(module, ".")
	if names.IsStandard(root, i.python) || i.provides(r.State, module) {
		return true
	}
	return !i.shared(r.State, root) && !slices.Contains(r.Missing, root)
}

// missing returns the dotted modules of an import that are neither here nor what the kernel can find by itself.
func (i *Installer) missing(imported scan.Import, r Request) []string {
	root, _, _ := strings.Cut(imported.Module, ".")
	if root == "" || names.IsStandard(root, i.python) {
		return nil
	}
	if i.provides(r.State, root) {
		return nil
	}
	if !i.shared(r.State, root) {
		if !slices.Contains(r.Missing, root) {
			return nil // a module of the user's own
		}
		return i.closest(imported)
	}
	var out []string
	for _, module := range i.closest(imported) {
		if !i.provides(r.State, module) && !i.spans(r.State, module) {
			out = append(out, module)
		}
	}
	return out
}

// closest returns the dotted paths that say most exactly what an import means: with `from google.cloud import storage`, google.cloud.storage.
func (i *Installer) closest(imported scan.Import) []string {
	if imported.Distribution != "" || len(imported.Names) == 0 {
		return []string{imported.Module}
	}
	whole := names.Resolve(imported.Module, i.python)
	var out []string
	rest := false
	for _, name := range imported.Names {
		module := imported.Module + "." + name
		if a := names.Resolve(module, i.python); a.Status == names.Found && len(a.Key) > len(imported.Module) && a.Distribution != whole.Distribution {
			out = append(out, module)
		} else {
			rest = true
		}
	}
	if len(out) == 0 || rest && whole.Status == names.Found && whole.Reason != names.BySameName {
		out = append(out, imported.Module)
	}
	return out
}

// versions returns every distribution that a session has, with its version.
func (i *Installer) versions(s installation.State) map[string]string {
	all := make(map[string]string, len(i.options.Env.Packages)+len(s.Packages))
	for name, version := range i.options.Env.Packages {
		all[name] = version
	}
	for name, version := range s.Packages {
		all[name] = version
	}
	return all
}

// satisfied says whether a session has what a requirement asks for. What a distribution's extras have brought is known only where the session itself asked for them.
func satisfied(r require.Requirement, have map[string]string, s installation.State) bool {
	version, there := have[r.Name]
	if !there || !r.Allows(version) {
		return false
	}
	for _, extra := range r.Extras {
		if !slices.ContainsFunc(s.Requirements, func(text string) bool {
			old, err := require.Parse(text)
			return err == nil && old.Name == r.Name && slices.Contains(old.Extras, extra)
		}) {
			return false
		}
	}
	return true
}

// merge joins wants of the same distribution: what was asked for in words decides, and of imports the first.
func merge(wants []want) []want {
	var out []want
	for _, w := range wants {
		at := slices.IndexFunc(out, func(o want) bool { return o.Name == w.Name && o.Marker == w.Marker })
		if at < 0 {
			out = append(out, w)
			continue
		}
		o := &out[at]
		o.Extras = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(o.Extras), w.Extras...))))
		if o.How != byImport && w.How != byImport && w.Specifier != "" {
			o.Specifier = w.Specifier // as with two lines of pip, the later one
		}
		if o.Module == "" {
			o.Module = w.Module
		}
	}
	return out
}
