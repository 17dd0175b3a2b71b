package advice

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"

	"cove/internal/core/problem"
)

const (
	mostFindings = 2000 // of one file
	mostNotes    = 20
	mostImports  = 200
)

// seen is what a first look at a program tells.
type seen struct {
	Parsed       bool
	Types        bool        // it has annotations
	imports      []string    // modules, by their dotted names
	applications [][2]string // web applications: the variable, and "fastapi" or "flask"
}

// look parses the code and finds slow forms. It needs nothing but Python.
func (c *Checker) look(ctx context.Context, src Source, r *Report) (seen, error) {
	var s seen
	err := c.run(ctx, scriptRun{script: "slow", src: src}, func(one reply) error {
		if one.Kind != "source" {
			return r.add(one)
		}
		s = seen{Parsed: one.Parsed, Types: one.Types}
		for _, module := range one.Imports {
			if dotted().MatchString(module) && len(module) <= 200 && len(s.imports) < mostImports {
				s.imports = append(s.imports, module)
			}
		}
		for _, a := range one.Applications {
			if dotted().MatchString(a[0]) && !strings.Contains(a[0], ".") && (a[1] == "fastapi" || a[1] == "flask") {
				s.applications = append(s.applications, a)
			}
		}
		return nil
	})
	return s, err
}

// dotted is the name of a module. It becomes part of code.
var dotted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`) })

// quality has Ruff look at the code, and mypy where it has types.
func (c *Checker) quality(ctx context.Context, src Source, types bool, r *Report) error {
	tools := []string{"ruff"}
	if types {
		tools = append(tools, "mypy")
	}
	return r.tolerate(c.run(ctx, scriptRun{script: "quality", src: src, tools: tools, values: parameters{"types": types}}, r.add))
}

// measure runs the slow forms that a report has, and the faster ones.
func (c *Checker) measure(ctx context.Context, r *Report) error {
	var rules []string
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Rule, "slow-") {
			rules = append(rules, f.Rule)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	measured, err := c.Measure(ctx, rules)
	if err := r.tolerate(err); err != nil {
		return err
	}
	for i, f := range r.Findings {
		for _, m := range measured {
			if m.Rule == f.Rule {
				r.Findings[i].Measured = &m
			}
		}
	}
	return nil
}

// SlowForms are the rules for slow forms, each of which has a faster form to be measured beside.
func SlowForms() []string {
	return []string{
		"slow-iterrows", "slow-itertuples", "slow-apply-rows", "slow-apply-values", "slow-apply-text", "slow-concat-in-loop", "slow-array-append", "slow-cell-write",
		"slow-array-loop", "slow-filter-per-group", "slow-list-search", "slow-list-grown", "slow-list-front", "slow-sort-in-loop", "slow-string-building", "slow-list-sum",
	}
}

// Measure runs the slow forms of these rules and the faster ones on data of its own, and returns how long they took, in the order of SlowForms. A pair whose results
// differ is a problem: check_failed.
func (c *Checker) Measure(ctx context.Context, rules []string) ([]Measured, error) {
	asked := map[string]bool{}
	for _, rule := range rules {
		asked[rule] = true
	}
	var wanted []string
	for _, rule := range SlowForms() {
		if asked[rule] {
			wanted = append(wanted, rule)
		}
	}
	var out []Measured
	err := c.run(ctx, scriptRun{script: "measure", src: Source{Name: "slow forms"}, values: parameters{"rules": wanted}}, func(one reply) error {
		switch {
		case one.Kind != "measured" || !asked[one.Rule] || !(one.Slow > 0) || !(one.Fast > 0) || len(out) == len(wanted):
			return nil
		case !one.Same:
			return problem.New(problem.CheckFailed, "the slow and the fast form of "+one.Rule+" gave different results")
		}
		out = append(out, Measured{Rule: one.Rule, Slow: one.Slow, Fast: one.Fast, Size: one.Size})
		return nil
	})
	return out, err
}

// add adds a finding or a note.
func (r *Report) add(one reply) error {
	switch one.Kind {
	case "finding":
		if f, ok := one.finding(); ok && len(r.Findings) < mostFindings {
			r.Findings = append(r.Findings, f)
		}
	case "missing":
		r.note(missing(one).Error())
	case "note":
		r.note(sentence(one.Text))
	}
	return nil
}

func (r *Report) note(text string) {
	if len(r.Notes) < mostNotes {
		r.Notes = append(r.Notes, text)
	}
}

// tolerate makes a note of a check that failed by itself; the others go on.
func (r *Report) tolerate(err error) error {
	if p, ok := errors.AsType[*problem.Error](err); ok && problem.Has(p, problem.CheckFailed, problem.CheckToolMissing) {
		r.note(sentence(p.Error()))
		return nil
	}
	return err
}

// missing says that a tool could not be installed.
func missing(one reply) *problem.Error {
	name := clipped(one.Package, 60)
	return problem.New(problem.CheckToolMissing, name+" could not be installed in the sandbox, and its checks were left out").
		WithHint("see `cove packages resolve " + name + "`; packages are installed unless --no-install or the setting packages.install forbids it")
}
