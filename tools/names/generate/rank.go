package main

import (
	"slices"
	"sort"
	"strings"

	"cove/internal/python/deps/names"
	"cove/internal/python/deps/require"
	"cove/tools/names/wheelfiles"
)

const (
	keptCandidates = 4
	// A distribution known by another name may ship a module by the way; it needs this many times the downloads of one that is known by that module.
	strayFactor = 20
	// And this many times when the module's name has nothing of its own, but another module's has.
	foreignFactor = 1000
	// A single weak source is not enough against a competitor.
	weakFactor = 10
	// Below this ratio of downloads between two projects that both are known by a module, none is the answer.
	ambiguousRatio = 3
)

// ambiguous stands before the candidates of a module that several projects have for their own.
const ambiguous = "?"

type candidate struct {
	dist    string
	score   float64
	primary bool // whether people know the distribution by this module
}

// table decides which distributions stand for each module, best first.
func table(c *claims) map[string][]string {
	claimed := map[string][]candidate{}
	for dist, modules := range c.of {
		kept := trusted(c, dist, modules)
		all := make([]string, 0, len(kept))
		for m := range kept {
			all = append(all, m)
		}
		primary := wheelfiles.Primary(dist, all)
		for m, from := range kept {
			top, _, _ := strings.Cut(m, ".")
			if inside := withinNamespace(m, dist); inside != "" {
				claimed[inside] = append(claimed[inside], candidate{dist, score(c, dist, m, primary, from) / weakFactor, false})
			}
			if shared, owned := names.Namespace(m); shared && !owned || wheelfiles.Byproduct(top) {
				continue
			}
			claimed[m] = append(claimed[m], candidate{dist, score(c, dist, m, primary, from), m == primary})
		}
	}
	out := map[string][]string{}
	for m, list := range claimed {
		out[m] = order(c, m, list)
	}
	return withoutRepetition(out)
}

// withoutRepetition drops the dotted names that say no more than a shorter one does.
func withoutRepetition(modules map[string][]string) map[string][]string {
	out := map[string][]string{}
	for m, dists := range modules {
		parent := m
		for cut := strings.LastIndexByte(parent, '.'); cut > 0; cut = strings.LastIndexByte(parent, '.') {
			if parent = parent[:cut]; modules[parent] != nil {
				break
			}
		}
		if parent == m || len(modules[parent]) == 0 || modules[parent][0] != dists[0] {
			out[m] = dists
		}
	}
	return out
}

// trusted drops the claims about a distribution that better knowledge of it contradicts.
func trusted(c *claims, dist string, modules map[string]source) map[string]source {
	out := map[string]source{}
	var pigar bool
	for _, from := range modules {
		pigar = pigar || from&fromPigar != 0
	}
	for m, from := range modules {
		agreeing := count(from &^ fromUPM)
		switch {
		case c.exact[dist]:
			if from&fromWheel == 0 {
				continue
			}
		case from&fromPigar != 0:
		case pigar && agreeing < 2 && from&(fromConda|fromTypeshed) == 0 && from&fromUPM == 0:
			continue
		case from == fromUPM && (pigar || leaked(c, dist, m)):
			continue
		}
		out[m] = from
	}
	return out
}

// leaked says whether a module of a distribution is rather that of one of its dependencies.
func leaked(c *claims, dist, module string) bool {
	for other := range c.needs[dist] {
		if c.of[other][module] != 0 || wheelfiles.Compact(other) == wheelfiles.Compact(module) {
			return true
		}
	}
	return false
}

func count(s source) int {
	n := 0
	for ; s != 0; s &= s - 1 {
		n++
	}
	return n
}

func score(c *claims, dist, module, primary string, from source) float64 {
	s := float64(c.projects.downloads[dist])
	if module != primary && from&(fromConda|fromTypeshed|fromPipreqs) == 0 {
		s /= strayFactor
		if wheelfiles.Likeness(dist, module) < 0.5 && wheelfiles.Likeness(dist, primary) > 0.8 {
			s /= foreignFactor / strayFactor
		}
	}
	if from&(fromWheel|fromPigar) == 0 && count(from) < 2 {
		s /= weakFactor
	}
	return s
}

func order(c *claims, module string, list []candidate) []string {
	base := require.Normalize(module)
	for _, l := range list {
		if l.dist == base && l.primary {
			demoteAddons(list, base+"-", l.score)
		}
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].score != list[j].score {
			return list[i].score > list[j].score
		}
		return c.projects.rank[list[i].dist] < c.projects.rank[list[j].dist]
	})
	var out []string
	if undecided(list) {
		out = append(out, ambiguous)
	}
	for _, l := range list[:min(len(list), keptCandidates)] {
		out = append(out, l.dist)
	}
	return out
}

// withinNamespace guesses the full name of the module of a distribution that is known to provide something in a shared namespace, but is not named after it, or
// returns "": autodoc-pydantic with a sphinxcontrib provides sphinxcontrib.autodoc_pydantic.
func withinNamespace(module, dist string) string {
	shared, owned := names.Namespace(module)
	name := strings.ReplaceAll(dist, "-", "_")
	if !shared || owned || strings.Contains(module, ".") || strings.HasPrefix(wheelfiles.Compact(dist), wheelfiles.Compact(module)) || !wheelfiles.Identifier(name) {
		return ""
	}
	return module + "." + name
}

// undecided says whether another project than the first, or one that may stand for it, has the module for its own and is nearly as popular.
func undecided(list []candidate) bool {
	for _, l := range list[1:] {
		if !interchangeable(list[0].dist, l.dist) {
			return list[0].primary && l.primary && list[0].score < ambiguousRatio*l.score
		}
	}
	return false
}

func interchangeable(dist, other string) bool {
	return slices.Contains(names.Interchangeable(dist), other)
}

// demoteAddons makes those distributions stand back that are named as additions to the one that is named like the module.
// It has to be the more popular one.
func demoteAddons(list []candidate, prefix string, base float64) {
	for i, l := range list {
		if strings.HasPrefix(l.dist, prefix) && l.score < base {
			list[i].primary = false
			list[i].score /= strayFactor
		}
	}
}
