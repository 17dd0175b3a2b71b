package build

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/require"
	"cove/internal/python/pyenv"
)

// longestAnswer bounds a resolver's answer, in bytes.
const longestAnswer = 512 << 10

// resolve returns the closure of what was asked for, without what the environment has at the same version.
func (b *Builder) resolve(ctx context.Context, g *gateway.Gateway, env *pyenv.Environment, r deps.Resolution) ([]pin, error) {
	room, err := b.open(ctx, g, env)
	if err != nil {
		return nil, err
	}
	defer room.close(ctx)
	for name, requirements := range map[string][]require.Requirement{"asked.txt": r.Requirements, "constraints.txt": r.Constraints} {
		var text strings.Builder
		for _, one := range requirements {
			text.WriteString(one.String() + "\n")
		}
		if _, err := room.link.WriteFile(ctx, inFolder+"/"+name, strings.NewReader(text.String()), 0o644); err != nil {
			return nil, room.explain(ctx, err)
		}
	}
	pins, err := ask(ctx, room, g, r, nil)
	if err != nil {
		return nil, err
	}
	pins = missing(pins, env)
	avoidable, err := avoidable(ctx, g, env, pins)
	if err != nil || len(avoidable) == 0 {
		return pins, err
	}
	// An older version with a wheel beats a newer one that has to be built.
	if better, err := ask(ctx, room, g, r, avoidable); err == nil {
		return missing(better, env), nil
	}
	return pins, ctx.Err()
}

func missing(pins []pin, env *pyenv.Environment) []pin {
	return slices.DeleteFunc(pins, func(p pin) bool {
		have, there := env.Packages[p.name]
		return there && require.Compare(have, p.version) == 0
	})
}

// avoidable returns the names of those that would have to be built although the index has wheels of them.
func avoidable(ctx context.Context, g *gateway.Gateway, env *pyenv.Environment, pins []pin) ([]string, error) {
	var out []string
	for _, p := range pins {
		project, err := g.Project(ctx, p.name)
		if err != nil {
			return nil, err
		}
		_, fits, err := deps.Fit(env, project, p.version)
		if err != nil {
			return nil, err
		}
		if !fits && slices.ContainsFunc(project.Files, func(f gateway.File) bool { return f.Wheel && f.Withheld == "" }) {
			out = append(out, p.name)
		}
	}
	return out, nil
}

// ask has uv resolve in a room. What it answers may have been made up by a hostile source distribution.
func ask(ctx context.Context, room *room, g *gateway.Gateway, r deps.Resolution, wheelsOnly []string) ([]pin, error) {
	words := []string{"pip", "compile", inFolder + "/asked.txt", "--constraints", inFolder + "/constraints.txt", "--no-header", "--no-annotate", "--no-sources"}
	for _, name := range wheelsOnly {
		words = append(words, "--only-binary", name)
	}
	answer, said := &head{limit: longestAnswer}, newTail()
	code, err := room.uv(ctx, answer, said, words...)
	if err != nil {
		return nil, err
	}
	if code == 0 {
		return checked(answer, r)
	}
	text := said.String()
	if fault := indexFault(g, text); fault != nil {
		return nil, fault
	}
	if strings.Contains(text, "No solution found") {
		return nil, problem.New(problem.ResolveFailed, "there are no versions that go together: "+plain(text)).
			WithHint("ask for other versions, or for fewer packages")
	}
	return nil, failed(names(r), text)
}

func names(r deps.Resolution) string {
	var out []string
	for _, one := range r.Requirements {
		out = append(out, one.Name)
	}
	return strings.Join(out, ", ")
}

var answerLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)==([A-Za-z0-9.!+_-]{1,200})$`)
})

// checked reads an answer and holds it against the question.
func checked(answer *head, r deps.Resolution) ([]pin, error) {
	unexpected := func(why string) error {
		return problem.New(problem.ResolveFailed, "the resolver in the sandbox gave an answer that is not valid: "+why).
			WithHint("one of the packages may manipulate the resolver: ask for the packages one by one")
	}
	if answer.over {
		return nil, unexpected("it is too long")
	}
	versions := map[string]string{}
	var pins []pin
	for line := range strings.Lines(answer.text.String()) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := answerLine().FindStringSubmatch(line)
		if m == nil {
			return nil, unexpected(fmt.Sprintf("%q is not the version of a package", clean(line, 100)))
		}
		name := require.Normalize(m[1])
		if _, twice := versions[name]; twice {
			return nil, unexpected(name + " is in it twice")
		}
		versions[name] = m[2]
		pins = append(pins, pin{name: name, version: m[2]})
	}
	if len(pins) > mostPackages {
		return nil, unexpected(fmt.Sprintf("it has more than %d packages", mostPackages))
	}
	for _, one := range r.Requirements {
		if version, there := versions[one.Name]; one.Marker == "" && (!there || !one.Allows(version)) {
			return nil, unexpected(fmt.Sprintf("%s was asked for", one))
		}
	}
	for _, one := range r.Constraints {
		if version, there := versions[one.Name]; there && one.Marker == "" && !one.Allows(version) {
			return nil, unexpected(fmt.Sprintf("%s has to hold", one))
		}
	}
	return pins, nil
}

// head keeps the beginning of what is written to it.
type head struct {
	text  bytes.Buffer
	limit int
	over  bool
}

func (h *head) Write(p []byte) (int, error) {
	if room := h.limit - h.text.Len(); len(p) > room {
		h.over = true
		h.text.Write(p[:room])
		return len(p), nil
	}
	return h.text.Write(p)
}
