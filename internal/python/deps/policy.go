package deps

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/names"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// PolicyOf returns the policy that the settings ask for.
func PolicyOf(c config.Config) Policy {
	return Policy{
		Install: c.Packages.Install, Unknown: c.Packages.MaxUnknown, MinAge: time.Duration(c.Packages.MinAge), NewName: time.Duration(c.Packages.NewName),
		Allow: c.Packages.Allow, AllowOnly: c.Packages.AllowOnly, Deny: c.Packages.Deny, Exempt: c.Packages.MinAgeExempt,
		Offline: c.Packages.Offline, Build: c.Packages.Build, BuildKnown: c.Packages.BuildKnown, Timeout: time.Duration(c.Packages.Timeout),
		Limits: layer.Limits{
			Wheels: c.Packages.MaxCount, Files: c.Packages.MaxFiles,
			Download: int64(c.Packages.MaxDownload), Unpacked: int64(c.Packages.MaxUnpacked),
		},
	}
}

// rules are what the gateway enforces of the policy. The base environment's packages have to pass where nothing but Allow may.
func (p Policy) rules(base map[string]string) gateway.Rules {
	// Many mirrors and private indexes tell no times at all; without Undated nothing of theirs could be used.
	r := gateway.Rules{MinAge: p.MinAge, Undated: true, AgeExempt: p.Exempt, Deny: p.Deny, Sources: p.Build, MaxFile: p.Limits.Download}
	if p.BuildKnown {
		r.Known, r.KnownAge = known, p.NewName
	}
	if p.AllowOnly {
		r.Allow = slices.Clone(p.Allow)
		for name := range base {
			r.Allow = append(r.Allow, name)
		}
		slices.Sort(r.Allow)
	}
	return r
}

// known says whether a project is among those with the most downloads.
func known(project string) bool { return names.Rank(project) > 0 }

// builds says whether anything may be built from source.
func (p Policy) builds() bool { return p.Build || p.BuildKnown }

// digest names what of the policy a plan depends on.
func (p Policy) digest() string {
	p.Install, p.Offline, p.Timeout, p.Limits, p.NewName, p.Unknown = true, false, 0, layer.Limits{}, 0, 0
	text, _ := json.Marshal(p) // numbers, switches and texts cannot fail
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// listed says whether a list has a distribution, or a prefix of it that a * ends. Entries for one version alone do not count.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if prefix, ok := strings.CutSuffix(entry, "*"); ok {
			tail := strings.TrimRight(prefix, "-_.")
			if tail == "" {
				return true
			}
			head := require.Normalize(tail)
			if tail != prefix {
				head += "-"
			}
			return strings.HasPrefix(name, head)
		}
		return require.Normalize(entry) == name
	})
}

// tier says what policy makes of a distribution without asking an index. byHand says that the table's own editors or a person chose it.
func (p Policy) tier(name string, byHand bool) Tier {
	switch {
	case listed(p.Deny, name):
		return TierRefused
	case listed(p.Allow, name):
		return TierAllowed
	case p.AllowOnly:
		return TierRefused
	case byHand || names.Rank(name) > 0:
		return TierTable
	}
	return TierOther
}

func approve(name string) string {
	return fmt.Sprintf("to approve it, add %s to packages.allow (COVE_PACKAGES_ALLOW)", name)
}

// admit returns the wants that policy lets through, and why it does not let through the others. It asks an index only about what is little known, and
// notes in the session's state what that was.
func (i *Installer) admit(ctx context.Context, wants []want, s *installation.State) (admitted []want, refused []installation.Refusal, err error) {
	for _, w := range wants {
		refusal, err := i.judge(ctx, &w, s)
		if err != nil {
			return nil, nil, err
		}
		if refusal != nil {
			refused = append(refused, *refusal)
			continue
		}
		admitted = append(admitted, w)
	}
	return admitted, refused, nil
}

func (i *Installer) judge(ctx context.Context, w *want, s *installation.State) (*installation.Refusal, error) {
	p := i.options.Policy
	refuse := func(code problem.DeniedCode, reason, hint string) (*installation.Refusal, error) {
		return &installation.Refusal{Name: w.asked(), Code: string(code), Reason: reason, Hint: hint}, nil
	}
	if !p.Install && w.How != byPerson {
		return refuse(problem.InstallOff, fmt.Sprintf("%s is not installed, since installing packages is switched off", w.Name),
			"set packages.install to true (COVE_PACKAGES_INSTALL=1)")
	}
	w.Tier = p.tier(w.Name, w.ByHand)
	switch {
	case w.Tier == TierRefused && listed(p.Deny, w.Name):
		return refuse(problem.PackageDenied, w.Name+" is on the list of packages that are never installed", "use another package, or take it off packages.deny")
	case w.Tier == TierRefused:
		return refuse(problem.PackageNeedsApproval, fmt.Sprintf("only approved packages are installed here, and %s is not one", w.Name), approve(w.Name))
	case w.Tier != TierOther:
		return nil, nil
	}
	if popular, slip := names.TypoOf(w.Name); slip {
		return refuse(problem.PackageNeedsApproval, fmt.Sprintf("%s is not a known package, and its name is very close to %s", w.Name, popular),
			fmt.Sprintf("use %s if that is what was meant; %s", popular, approve(w.Name)))
	}
	if w.How == byPerson {
		return nil, nil
	}
	if refusal := i.discreet(w, s); refusal != nil || i.lookedWell(w.Name) {
		return refusal, nil
	}
	return i.look(ctx, w)
}

// discreet refuses to tell an index a name that code may have put together for that: the operator of the index, or an eavesdropper on the way to it, reads what data
// in the sandbox says. A session has so many unknown names, and none that looks like no project's.
func (i *Installer) discreet(w *want, s *installation.State) *installation.Refusal {
	most := i.options.Policy.Unknown
	why := ""
	switch {
	case i.options.Policy.Offline || slices.Contains(s.Looked, w.Name):
		return nil
	case names.Improbable(w.Name):
		why = "does not look like the name of one"
	case len(s.Looked) >= most:
		why = fmt.Sprintf("this session has asked for %d such names, as many as it may (packages.max_unknown)", most)
	default:
		s.Looked = append(slices.Clip(s.Looked), w.Name)
		return nil
	}
	return &installation.Refusal{Name: w.asked(), Code: string(problem.PackageNeedsApproval), Hint: approve(w.Name),
		Reason: fmt.Sprintf("%s is not among the 15,000 best known packages and %s, so no index was asked for it", w.Name, why)}
}

// look asks the index about a distribution that the table does not know.
func (i *Installer) look(ctx context.Context, w *want) (*installation.Refusal, error) {
	if !i.mayLook() {
		return &installation.Refusal{Name: w.asked(), Code: string(problem.PackageNeedsApproval), Hint: approve(w.Name),
			Reason: fmt.Sprintf("%s is not among the 15,000 best known packages, and so many unknown names were asked for that it was not looked up", w.Name)}, nil
	}
	g, err := i.gateway(ctx)
	if err != nil {
		return nil, err
	}
	project, err := g.Project(ctx, w.Name)
	if refusal, ok := refusalOf(w, err); ok {
		return refusal, nil
	}
	if _, old := os.Stat(i.lookPath(w.Name)); err != nil && old == nil && gateway.IndexFailed(err) {
		return nil, nil // it was well when it could be asked
	}
	if err != nil {
		return nil, err
	}
	least := i.options.Policy.NewName
	why := ""
	switch {
	case project.Status == "quarantined":
		return &installation.Refusal{Name: w.asked(), Code: string(problem.PackageQuarantined), Reason: "the index has put " + w.Name + " under quarantine", Hint: "use another package"}, nil
	case !slices.ContainsFunc(project.Files, func(f gateway.File) bool { return f.Wheel }):
		why = "has no wheel"
	case project.Releases < 2:
		why = "has only one release"
	case least > 0 && project.FirstUpload.IsZero():
		why = "does not say since when it exists"
	case least > 0 && i.now().Sub(project.FirstUpload) < least:
		why = fmt.Sprintf("exists only since %s", project.FirstUpload.UTC().Format(time.DateOnly))
	default:
		i.lookWell(w.Name)
		return nil, nil
	}
	return &installation.Refusal{
		Name: w.asked(), Code: string(problem.PackageNeedsApproval), Hint: approve(w.Name),
		Reason: fmt.Sprintf("%s is not among the 15,000 best known packages and %s, so it is not installed without approval", w.Name, why),
	}, nil
}

// refusalOf turns what an index says of one project into a refusal. Problems that are not the project's own are none.
func refusalOf(w *want, err error) (*installation.Refusal, bool) {
	var p *problem.Error
	if !errors.As(err, &p) {
		return nil, false
	}
	switch p.Code {
	case string(problem.PackageUnknown):
		r := &installation.Refusal{Name: w.asked(), Code: p.Code, Reason: "the package index has no package named " + w.Name, Hint: "check the name"}
		switch {
		case w.Module != "" && w.ByHand:
			r.Reason = fmt.Sprintf("%s provides the module %s, and the package index does not have it", w.Name, w.Module)
			r.Hint = "use an index that has it (packages.index, or what uv or pip are set to use)"
		case w.Module != "":
			r.Reason = fmt.Sprintf("no package is known to provide the module %s, and the package index has none of that name", w.Module)
			r.Hint = "check the name; if another package provides it, install that by its name with %pip install"
		}
		return r, true
	case string(problem.PackageDenied), string(problem.PackageQuarantined):
		return &installation.Refusal{Name: w.asked(), Code: p.Code, Reason: p.Message, Hint: p.Hint}, true
	}
	return nil, false
}

// mostLooks bounds what hostile code can make us ask an index, in an hour.
const mostLooks = 300

func (i *Installer) mayLook() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if now.Sub(i.looksSince) > time.Hour {
		i.looksSince, i.looks = now, 0
	}
	i.looks++
	return i.looks <= mostLooks
}

// lookFresh is how long a look at a project that ended well holds: it cannot grow younger, but it can be quarantined.
const lookFresh = 24 * time.Hour

func (i *Installer) lookPath(name string) string {
	return filepath.Join(i.dir, "looks", i.sources+"-"+name)
}

func (i *Installer) lookedWell(name string) bool {
	info, err := os.Stat(i.lookPath(name))
	if err != nil {
		return false
	}
	age := i.now().Sub(info.ModTime())
	return i.options.Policy.Offline || age >= 0 && age < lookFresh
}

func (i *Installer) lookWell(name string) {
	path := i.lookPath(name)
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = os.WriteFile(path, []byte(i.options.Policy.NewName.String()+"\n"), 0o600) // without it the next look asks again
	}
}
