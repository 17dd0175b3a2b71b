package builder

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// mostDockerfile bounds a Dockerfile, in bytes.
const mostDockerfile = 1 << 20

// instruction is one of a Dockerfile, on one line or several.
type instruction struct {
	line int
	name string // in capitals
	rest string
}

// ParseDockerfile reads a Dockerfile. given are values for its ARG instructions, and may says which images sessions may begin from. Instructions that change nothing in a session (EXPOSE, LABEL, MAINTAINER) are left out; those that cove cannot
// do are errors. Errors are a *Fault with the line.
//
// Copies have no Archive: that is for the caller, who knows what it has of the context. ENTRYPOINT and CMD together are the start command, as Docker joins them.
func ParseDockerfile(text string, given map[string]string, may May) (Recipe, error) {
	if len(text) > mostDockerfile {
		return Recipe{}, &Fault{Message: fmt.Sprintf("the Dockerfile is larger than %d KiB", mostDockerfile>>10)}
	}
	all, err := instructions(text)
	if err != nil {
		return Recipe{}, err
	}
	p := &parsed{given: given, may: may, before: map[string]string{}}
	for _, in := range all {
		if err := p.take(in); err != nil {
			return Recipe{}, &Fault{Step: len(p.out.Steps) + 1, Line: in.line, Message: err.Error()}
		}
	}
	if !p.begun {
		return Recipe{}, &Fault{Message: "the Dockerfile has no FROM"}
	}
	p.out.Start = started(p.entry, p.command)
	return p.out, p.out.Check()
}

// instructions joins the lines of a Dockerfile to instructions, without comments and empty lines.
func instructions(text string) (all []instruction, err error) {
	escape := `\`
	var now *instruction
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		trimmed := strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		if strings.HasPrefix(trimmed, "#") {
			word := strings.ReplaceAll(strings.ToLower(trimmed), " ", "")
			if now == nil && len(all) == 0 && word == "#escape=`" {
				escape = "`"
			}
			continue
		}
		if trimmed == "" {
			continue // also between continued lines, as in Docker
		}
		if now == nil {
			name, rest, _ := strings.Cut(strings.ReplaceAll(trimmed, "\t", " "), " ")
			if strings.ContainsRune(trimmed, '\t') && !strings.Contains(name, "\t") {
				rest = strings.TrimLeft(trimmed[len(name):], " \t")
			}
			now = &instruction{line: i + 1, name: strings.ToUpper(name)}
			line = strings.TrimLeft(rest, " \t")
		}
		more := false
		if cut := strings.TrimRight(line, " \t"); strings.HasSuffix(cut, escape) {
			line, more = strings.TrimSuffix(cut, escape), true
		}
		now.rest += line
		if !more {
			now.rest = strings.TrimSpace(now.rest)
			all, now = append(all, *now), nil
		}
	}
	if now != nil {
		return nil, &Fault{Line: now.line, Message: now.name + ": its last line is continued, and there is none"}
	}
	return all, nil
}

// parsed is what is known of a Dockerfile while it is read.
type parsed struct {
	given   map[string]string
	may     May
	before  map[string]string // variables of ARG before FROM
	begun   bool
	out     Recipe
	entry   *command
	command *command
}

// command is that of ENTRYPOINT or CMD.
type command struct {
	words []string // as JSON has them
	line  string   // for the shell, where it is no JSON
}

// without are instructions that change nothing in a session.
var without = map[string]bool{"EXPOSE": true, "LABEL": true, "MAINTAINER": true}

func (p *parsed) take(in instruction) error {
	if in.rest == "" {
		return fmt.Errorf("%.40s: it says nothing", in.name)
	}
	if !p.begun && in.name != "FROM" && in.name != "ARG" {
		return fmt.Errorf("%.40s: the first instruction is FROM", in.name)
	}
	if without[in.name] {
		return nil
	}
	var err error
	switch in.name {
	case "FROM":
		return p.from(in)
	case "RUN":
		err = p.run(in)
	case "COPY", "ADD":
		err = p.copied(in)
	case "ENV":
		err = p.env(in)
	case "ARG":
		err = p.arg(in)
	case "WORKDIR":
		p.add(Step{Kind: Workdir, Line: in.line, Dir: normal(in.rest)})
	case "USER":
		p.add(Step{Kind: User, Line: in.line, User: normal(in.rest)})
	case "ENTRYPOINT":
		p.entry, p.command = commandOf(in.rest), nil // a new entry point forgets the base's command
	case "CMD":
		p.command = commandOf(in.rest)
	default:
		err = errors.New("cove does not have it; there are FROM, RUN, COPY, ENV, ARG, WORKDIR, USER, ENTRYPOINT and CMD")
	}
	if err != nil {
		return fmt.Errorf("%.40s: %w", in.name, err)
	}
	return nil
}

func (p *parsed) add(s Step) { p.out.Steps = append(p.out.Steps, s) }

func (p *parsed) from(in instruction) error {
	words := strings.Fields(in.rest)
	switch {
	case p.begun:
		return errors.New("FROM: there is one already; cove does not build in several stages")
	case strings.HasPrefix(words[0], "--"):
		return fmt.Errorf("FROM: cove does not have the option %.80s", words[0])
	case len(words) != 1 && (len(words) != 3 || !strings.EqualFold(words[1], "as")):
		return errors.New("FROM: it takes the name of an image")
	}
	p.begun = true
	p.out.Image, p.out.Line = expand(normal(words[0]), func(name string) string { return p.before[name] }), in.line
	if p.out.Image == "scratch" {
		return errors.New("FROM: cove does not build from nothing")
	}
	if err := p.out.Begin(p.may); err != nil {
		return fmt.Errorf("FROM: %w", err)
	}
	return nil
}

func (p *parsed) run(in instruction) error {
	if strings.HasPrefix(in.rest, "--") {
		return fmt.Errorf("cove does not have the option %.80s", strings.Fields(in.rest)[0])
	}
	line := in.rest
	if words, ok := jsonWords(in.rest); ok {
		line = shellLine(words)
	} else if strings.Contains(line, "<<") && !strings.Contains(line, "<<<") {
		return errors.New("cove does not read texts behind <<; copy a script, and run that")
	}
	p.add(Step{Kind: Run, Line: in.line, Command: line})
	return nil
}

func (p *parsed) copied(in instruction) error {
	s := Step{Kind: Copy, Line: in.line}
	rest := in.rest
	for strings.HasPrefix(rest, "--") {
		option, behind, _ := strings.Cut(rest, " ")
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "--chown":
			s.Owner = value
		case "--chmod":
			s.Mode = value
		case "--link":
		case "--from":
			return errors.New("cove does not build in several stages, so it has no --from")
		default:
			return fmt.Errorf("cove does not have the option %.80s", name)
		}
		rest = strings.TrimSpace(behind)
	}
	words, ok := jsonWords(rest)
	if !ok && rest != "" {
		var err error
		if words, err = split(rest); err != nil {
			return err
		}
	}
	if len(words) < 2 {
		return errors.New("it takes sources and where they go")
	}
	s.Sources, s.To = words[:len(words)-1], words[len(words)-1]
	for _, source := range s.Sources {
		switch {
		case strings.HasPrefix(source, "<<"):
			return errors.New("cove does not read texts behind <<; copy a file")
		case in.name == "ADD" && (strings.Contains(source, "://") || strings.HasPrefix(source, "git@")):
			return errors.New("cove fetches nothing from an address; RUN curl does, where the session may connect to it")
		case in.name == "ADD" && strings.Contains(source, ".t") && (strings.HasSuffix(source, ".tar") || strings.Contains(source, ".tar.") || strings.HasSuffix(source, ".tgz")):
			return errors.New("cove does not unpack what it copies; COPY the archive, and RUN tar")
		}
	}
	p.add(s)
	return nil
}

// env reads NAME=VALUE pairs, or a NAME and all that follows.
func (p *parsed) env(in instruction) error {
	words, err := split(in.rest)
	if err != nil {
		return err
	}
	s := Step{Kind: Env, Line: in.line}
	if !strings.Contains(words[0], "=") {
		name, value, _ := strings.Cut(in.rest, " ")
		if value = strings.TrimSpace(value); value == "" {
			return errors.New("it takes a name and a value")
		}
		s.Pairs = []string{name, normal(value)}
		p.add(s)
		return nil
	}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("%.80q is no NAME=VALUE", w)
		}
		s.Pairs = append(s.Pairs, name, value)
	}
	p.add(s)
	return nil
}

func (p *parsed) arg(in instruction) error {
	words, err := split(in.rest)
	if err != nil {
		return err
	}
	s := Step{Kind: Arg, Line: in.line}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !variableName().MatchString(name) {
			return fmt.Errorf("%.80q cannot be the name of a variable", name)
		}
		if text, told := p.given[name]; told {
			value = literal(text)
		} else if global, told := p.before[name]; told && !ok {
			value = literal(global)
		}
		if !p.begun {
			p.before[name] = expand(value, func(name string) string { return p.before[name] })
			continue
		}
		s.Pairs = append(s.Pairs, name, value)
	}
	if p.begun {
		p.add(s)
	}
	return nil
}

func commandOf(text string) *command {
	if words, ok := jsonWords(text); ok {
		return &command{words: words}
	}
	return &command{line: text}
}

// started joins ENTRYPOINT and CMD to one line for the shell: an entry point in JSON gets the command as arguments, another does not.
func started(entry, cmd *command) string {
	switch {
	case entry == nil && cmd == nil:
		return ""
	case entry == nil:
		entry, cmd = cmd, nil
	}
	if entry.words == nil {
		return entry.line
	}
	words := entry.words
	if cmd != nil && cmd.words != nil {
		words = append(words[:len(words):len(words)], cmd.words...)
	} else if cmd != nil {
		words = append(words[:len(words):len(words)], "/bin/sh", "-c", cmd.line)
	}
	return shellLine(words)
}

// jsonWords reads the form ["a", "b"].
func jsonWords(text string) (words []string, ok bool) {
	return words, strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &words) == nil && len(words) > 0
}
