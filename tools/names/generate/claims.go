package main

import (
	"strings"

	"cove/internal/python/deps/require"
	"cove/tools/names/wheelfiles"
)

// source says where a claim comes from; sources are bits, so that a set of them is one number.
type source int

const (
	fromWheel    source = 1 << iota // the distribution's own list of files: exact
	fromPigar                       // the top-level names of a wheel, as pigar's authors saw it
	fromUPM                         // what appeared in an environment after an install; leaks dependencies
	fromConda                       // a recipe of conda-forge imports it in its test
	fromTypeshed                    // there are stubs of that distribution for it
	fromPipreqs                     // a list kept by hand
)

// projects are the most downloaded projects, all names normalized.
type projects struct {
	order     []string
	rank      map[string]int
	downloads map[string]int64
	updated   string
}

// claims are statements of the kind "this distribution provides that module". Distributions outside of the list are dropped.
type claims struct {
	projects *projects
	of       map[string]map[string]source // distribution -> module -> who says so
	needs    map[string]map[string]bool   // distribution -> what it depends on
	exact    map[string]bool              // distributions whose own list of files is known
}

func newClaims(p *projects) *claims {
	return &claims{projects: p, of: map[string]map[string]source{}, needs: map[string]map[string]bool{}, exact: map[string]bool{}}
}

func (c *claims) add(from source, dist, module string) {
	dist = require.Normalize(strings.TrimSpace(dist))
	if c.projects.rank[dist] == 0 || stubs(dist) || !importable(module) {
		return
	}
	if c.of[dist] == nil {
		c.of[dist] = map[string]source{}
	}
	c.of[dist][module] |= from
	if from == fromWheel {
		c.exact[dist] = true
	}
}

func (c *claims) requires(dist, other string) {
	dist, other = require.Normalize(dist), require.Normalize(other)
	if c.needs[dist] == nil {
		c.needs[dist] = map[string]bool{}
	}
	c.needs[dist][other] = true
}

// unfit are distributions that ship modules of others, or names of which no import means them.
var unfit = map[string]bool{"os-sys": true, "workspace-mcp": true, "pywin32": true, "boto3-stubs-full": true, "boto3-stubs-lite": true, "types-boto3-full": true, "types-boto3-lite": true, "types-aiobotocore-full": true, "types-aiobotocore-lite": true}

// stubs says whether a distribution holds only type stubs, which nobody imports, or is unfit. Those for single services of AWS are packages of their own.
func stubs(dist string) bool {
	aws := strings.HasPrefix(dist, "types-aiobotocore") || strings.HasPrefix(dist, "types-boto3")
	return strings.HasPrefix(dist, "types-") && !aws || strings.HasSuffix(dist, "-stubs") || strings.HasPrefix(dist, "pyobjc-") || unfit[dist]
}

func importable(module string) bool {
	if module == "" || len(module) > 120 {
		return false
	}
	for part := range strings.SplitSeq(module, ".") {
		if !wheelfiles.Identifier(part) {
			return false
		}
	}
	return true
}
