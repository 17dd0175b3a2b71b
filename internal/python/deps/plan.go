package deps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// plan finds versions for wants that go together with what the session has. It changes as little as it can: first nothing that is
// there, then nothing that is imported, and at last nothing that the kernel itself runs on, which takes a new interpreter.
func (i *Installer) plan(ctx context.Context, wants []want, j installOptions, told func(installation.Progress)) (outcome, error) {
	s := &search{Installer: i, opts: j, told: told, o: outcome{wants: wants, cached: true}}
	if j.again {
		s.o.asks = anew
	}
	end, err := walk(func(at step) (verdict, error) { return s.do(ctx, at) })
	if end == stepFound {
		s.explain()
	}
	return s.o, err
}

// search is one search for a plan. Each step leaves in o what it has found out; see walk for their order.
type search struct {
	*Installer
	opts    installOptions
	told    func(installation.Progress)
	o       outcome
	relaxed []relaxation
	why     error // what changing came to, for salvaging
}

func (s *search) do(ctx context.Context, at step) (verdict, error) {
	switch at {
	case stepSettle:
		return verdictOf(s.settle(ctx, &s.o, s.opts, s.told))
	case stepRecall:
		return s.recallChange(ctx), nil
	case stepMend:
		changed, relaxed, err := s.mend(ctx, &s.o)
		s.relaxed = append(s.relaxed, relaxed...)
		switch {
		case err == nil && len(s.o.wants) == 0:
			return emptied, nil
		case changed:
			return mended, err
		}
		return unsolved, err
	case stepBuild:
		if !s.options.Policy.builds() || s.options.Builder == nil || !speaksOfWheels(s.o.plan.Conflict) {
			return unsolved, nil
		}
		done, err := s.build(ctx, &s.o, s.opts, s.told)
		if !s.options.Policy.Build && problem.Has(err, problem.BuildUnavailable, problem.BuildFailed, problem.BuildTimeout, problem.NoWheel, problem.ResolveFailed) {
			return unsolved, nil // nobody has asked for it
		}
		return verdictOf(done, err)
	case stepChange:
		err := s.change(ctx, &s.o, s.opts, s.told)
		if problem.Has(err, unsolvable...) && !s.opts.single && len(s.o.wants) > 1 && len(s.o.wants) <= mostAlone {
			s.why = err
			return unsolved, nil
		}
		return solved, err
	case stepSalvage:
		o, err := s.salvage(ctx, s.o, s.opts, s.told, s.why)
		s.o = o
		return solved, err
	}
	return unsolved, fmt.Errorf("plan an installation: nothing is to be done in step %s", at)
}

// verdictOf is the verdict of a step that says whether it has found a plan.
func verdictOf(done bool, err error) (verdict, error) {
	if done {
		return solved, err
	}
	return unsolved, err
}

// recallChange looks whether the answer to the next question is remembered: with that nothing has to be looked into. What comes of it counts only when it is a plan.
func (s *search) recallChange(ctx context.Context) verdict {
	if !s.o.cached || s.o.asks != anyhow {
		return unsolved
	}
	o := s.o
	o.asks = remembered
	if s.change(ctx, &o, s.opts, s.told) != nil {
		return unsolved
	}
	o.asks = s.o.asks
	s.o = o
	return solved
}

// mostAlone is up to how many wants those that stand in the way are looked for one by one.
const mostAlone = 30

var unsolvable = []problem.Code{problem.ResolveFailed, problem.NoWheel}

// salvage leaves out the wants that make the whole impossible, and plans the rest. whole is why it is.
func (i *Installer) salvage(ctx context.Context, o outcome, j installOptions, told func(installation.Progress), whole error) (outcome, error) {
	var best outcome
	var kept []want
	refused := o.refused
	j.single = true
	for _, w := range o.wants {
		next, err := i.plan(ctx, append(slices.Clone(kept), w), j, told)
		switch {
		case problem.Has(err, unsolvable...):
			p := problem.Of(err)
			refused = append(refused, installation.Refusal{Name: w.asked(), Code: p.Code, Reason: p.Message, Hint: p.Hint})
		case err != nil:
			return o, err
		default:
			best, kept = next, next.wants
			refused = append(refused, next.refused...)
		}
	}
	if len(kept) == 0 {
		return o, whole
	}
	best.refused = refused
	return best, nil
}

// question asks for what is wanted beside what the session has asked for before. What is asked for anew replaces an earlier requirement of the same name.
func (o *outcome) question(s installation.State, pinned, prefer map[string]string) question {
	q := question{New: namesOf(o.wants), Pinned: pinned, Prefer: prefer}
	for _, text := range s.Requirements {
		r, err := require.Parse(text)
		if err == nil && !slices.ContainsFunc(o.wants, func(w want) bool { return w.Name == r.Name }) {
			q.Old = append(q.Old, text)
		}
	}
	return q
}

// try asks a question, and says whether it has a solution. The plan is kept in both cases.
func (i *Installer) try(ctx context.Context, o *outcome, q question, told func(installation.Progress)) (bool, error) {
	var p plan
	var cached bool
	var note string
	var err error
	if o.asks == remembered {
		p, err = i.known(q)
		cached = true
	} else {
		p, cached, note, err = i.solve(ctx, q, o.asks == anew, told)
	}
	if err != nil {
		return false, err
	}
	o.plan, o.cached = p, o.cached && cached
	for _, note := range append(slices.Clone(p.Notes), note) {
		if note != "" && !slices.Contains(o.notes, note) {
			o.notes = append(slices.Clone(o.notes), note)
		}
	}
	return p.Conflict == "", nil
}

// change tries with other versions of what is installed. Its error says why nothing goes.
func (i *Installer) change(ctx context.Context, o *outcome, j installOptions, told func(installation.Progress)) error {
	firm, err := i.kernel()
	if err != nil {
		return err
	}
	have := i.versions(j.state)
	loaded := map[string]string{}
	if !j.nothing {
		if loaded, err = i.loaded(j, have); err != nil {
			return err
		}
	}
	imported := maps.Clone(firm)
	maps.Copy(imported, loaded)
	before := o.plan.Conflict
	if !j.nothing {
		done, err := i.near(ctx, o, o.question(j.state, imported, have), told)
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		before = o.plan.Conflict
	}
	maps.Copy(have, j.prefer)
	all := o.question(j.state, firm, have)
	all.New, all.Old, o.scope = slices.Concat(all.New, all.Old), nil, alone
	done, err := i.try(ctx, o, all, told)
	if err != nil {
		return err
	}
	if !done {
		return i.unsolvable(ctx, o, firm)
	}
	if !j.nothing {
		o.restart = conflictOf(before, loaded, o.plan.Versions, namesOf(o.wants))
	}
	return nil
}

// loaded returns the distributions of the modules that the kernel has imported. Where it says more than is there, less is believed.
func (i *Installer) loaded(j installOptions, have map[string]string) (map[string]string, error) {
	base, err := i.base()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	take := func(owners []string) {
		for _, name := range owners {
			if version, there := have[name]; there {
				out[name] = version
			}
		}
	}
	for _, module := range j.loaded {
		take(base.Modules[module])
		if base.Namespaces[module] { // which part of it is imported is not known
			for dotted, owners := range base.Modules {
				if strings.HasPrefix(dotted, module+".") {
					take(owners)
				}
			}
		}
		for _, name := range j.state.Layers {
			if l := i.layer(name); l != nil {
				take(l.Owners[module])
			}
		}
	}
	return out, nil
}

// unsolvable says why there is no solution at all.
func (i *Installer) unsolvable(ctx context.Context, o *outcome, firm map[string]string) error {
	asked := strings.Join(namesOf(o.wants), ", ")
	if name, spec, who := demand(o.plan.Conflict, firm); name != "" {
		return problem.New(problem.ResolveFailed, fmt.Sprintf("%s needs %s%s, and the interpreter itself runs on %s %s", who, name, spec, name, firm[name])).
			WithHint("ask for another version of " + who)
	}
	if name := i.wheelless(ctx, o.plan.Conflict); name != "" {
		if !slices.ContainsFunc(o.wants, func(w want) bool { return w.Name == name }) {
			name += ", which " + asked + " needs,"
		}
		return i.noWheel(name)
	}
	message := fmt.Sprintf("no versions were found that let %s be installed", asked)
	for _, reason := range i.withheld(o) {
		message += "; " + reason
	}
	if why := shorten(o.plan.Conflict); why != "" {
		message += ": " + why
	}
	return problem.New(problem.ResolveFailed, message).WithHint("ask for other versions, or leave the versions out")
}

// wheelless returns the project of which uv's words say that it has nothing to install, when that is for want of wheels.
func (i *Installer) wheelless(ctx context.Context, words string) string {
	if m := noWheels().FindStringSubmatch(words); m != nil {
		return require.Normalize(m[1])
	}
	m := noVersions().FindStringSubmatch(words)
	g, err := i.gateway(ctx)
	if m == nil || err != nil {
		return ""
	}
	name := require.Normalize(m[1])
	project, err := g.Project(ctx, name)
	if err != nil || len(project.Files) == 0 || slices.ContainsFunc(project.Files, func(f gateway.File) bool { return f.Wheel }) {
		return ""
	}
	return name
}

// withheld says which of the files in question the rules keep back.
func (i *Installer) withheld(o *outcome) []string {
	i.mu.Lock()
	g := i.gate
	i.mu.Unlock()
	if g == nil {
		return nil
	}
	reasons := g.Reasons()
	var out []string
	for _, name := range sortedKeys(reasons) {
		if slices.ContainsFunc(o.wants, func(w want) bool { return w.Name == name }) || mentions(o.plan.Conflict, name) {
			out = append(out, fmt.Sprintf("files of %s were left out: %s", name, strings.Join(reasons[name], ", ")))
		}
	}
	return out
}

// build has the wheels made that do not exist.
func (i *Installer) build(ctx context.Context, o *outcome, j installOptions, told func(installation.Progress)) (bool, error) {
	q := o.question(j.state, i.versions(j.state), nil)
	p, cached, err := i.built(ctx, q, told)
	if err != nil {
		return false, err
	}
	o.plan, o.cached = p, o.cached && cached
	return true, nil
}

// explain adds what a person should know about the plan that was found.
func (s *search) explain() {
	for _, r := range s.relaxed {
		version := s.o.plan.Versions[r.name]
		if version == "" {
			continue
		}
		s.o.notes = append(slices.Clone(s.o.notes), fmt.Sprintf("%s==%s was asked for, but %s; %s %s was taken instead", r.name, r.pin, r.why, r.name, version))
	}
}
