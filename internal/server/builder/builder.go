// Package builder makes a session into what a list of steps says, as a Dockerfile does with an image: commands are run in it, files are copied into it, variables, a folder and a user are
// set for what comes. There is no Docker: the steps run in a session of their caller's, under the rules for its network, and what is made is that session, which others are forked from.
//
// What a session cannot be, as an image of somebody's, is refused before anything runs, by the line that asks for it.
package builder

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Kind is the kind of a step, named as in Dockerfiles.
type Kind string

// The kinds of steps.
const (
	Run     Kind = "RUN"
	Copy    Kind = "COPY"
	Env     Kind = "ENV"
	Arg     Kind = "ARG" // a variable for the steps that follow, not for what is made
	Workdir Kind = "WORKDIR"
	User    Kind = "USER"
)

// Step is a step of a Recipe. Texts but Command have $NAME, ${NAME}, ${NAME:-else} and ${NAME:+then} for variables, and \$ for a dollar.
type Step struct {
	Kind    Kind
	Line    int      // of the Dockerfile that it is from, from 1; 0: it is from none
	Command string   // of Run, for bash
	User    string   // of User; of Run the user for this one, "": who is set
	Pairs   []string // of Env and Arg: names and values in turn
	Dir     string   // of Workdir
	Sources []string // of Copy: paths in the archive, or patterns of path.Match
	To      string   // of Copy
	Owner   string   // of Copy: USER or USER:GROUP; "": who is set
	Mode    string   // of Copy: permission bits, octal; "": as they are
	Archive string   // of Copy: what the caller calls the archive with the sources, and their contents
	Force   bool     // nothing that was made before stands for it, nor for what follows
}

// Recipe is what to make.
type Recipe struct {
	Image string // that it begins with; see Begins. "": cove's own
	// Fetched says that its session begins from the image itself. Else cove's own session stands for that.
	Fetched bool
	Line    int // of Image
	Steps   []Step
	Start   string // a command for bash whose process belongs to what is made; "": none
	Ready   string // a command for bash that succeeds when that is ready; "": it is at once
	Force   bool   // everything is made anew
}

// Bounds of a recipe.
const (
	mostSteps   = 200
	mostSources = 100
	longestText = 100 << 10 // bytes of a command, or of a value
	mostValues  = 200       // variables of one step
)

// Fault is why something is not made.
type Fault struct {
	Step    int // from 1; 0 is the image that it begins with, and one more than there are steps is the start command
	Line    int // of the Dockerfile; 0: none
	Message string
}

// Error says which line is at fault, where there is one.
func (f *Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s", f.Line, f.Message)
	}
	return f.Message
}

var (
	variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	octalMode    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0?[0-7]{3,4}$`) })
)

// Check returns what is wrong with a recipe, a *Fault, or nil.
func (r Recipe) Check() error {
	if _, err := Begins(r.Image); err != nil && !r.Fetched {
		return &Fault{Line: r.Line, Message: err.Error()}
	}
	if len(r.Steps) > mostSteps {
		return &Fault{Step: mostSteps + 1, Message: fmt.Sprintf("there are more than %d steps; join commands with &&", mostSteps)}
	}
	for i, s := range r.Steps {
		if fault := s.fault(); fault != "" {
			return &Fault{Step: i + 1, Line: s.Line, Message: fault}
		}
	}
	for _, text := range []string{r.Start, r.Ready} {
		if fault := textFault(text); fault != "" {
			return &Fault{Step: len(r.Steps) + 1, Message: "start command: " + fault}
		}
	}
	return nil
}

// textFault is what is wrong with a text, or "".
func textFault(all ...string) string {
	size := 0
	for _, text := range all {
		size += len(text)
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return "it has characters that are no text"
		}
	}
	if size > longestText {
		return fmt.Sprintf("it is longer than %d KiB", longestText>>10)
	}
	return ""
}

// fault is what is wrong with a step, or "".
func (s Step) fault() string {
	if fault := textFault(slices.Concat(s.Pairs, s.Sources, []string{s.Command, s.User, s.Dir, s.To, s.Owner, s.Mode, s.Archive})...); fault != "" {
		return string(s.Kind) + ": " + fault
	}
	switch s.Kind {
	case Run:
		if strings.TrimSpace(s.Command) == "" {
			return "RUN: there is no command"
		}
	case Env, Arg:
		if len(s.Pairs) == 0 || len(s.Pairs)%2 != 0 || len(s.Pairs) > 2*mostValues {
			return fmt.Sprintf("%s: it takes 1 to %d names, each with a value", s.Kind, mostValues)
		}
		for i := 0; i < len(s.Pairs); i += 2 {
			if !variableName().MatchString(s.Pairs[i]) {
				return fmt.Sprintf("%s: %.80q cannot be the name of a variable", s.Kind, s.Pairs[i])
			}
		}
	case Workdir:
		if s.Dir == "" {
			return "WORKDIR: there is no folder"
		}
	case User:
		if s.User == "" {
			return "USER: there is no user"
		}
	case Copy:
		return s.copyFault()
	default:
		return fmt.Sprintf("%.40q is no kind of step; there are RUN, COPY, ENV, ARG, WORKDIR and USER", string(s.Kind))
	}
	return ""
}

func (s Step) copyFault() string {
	switch {
	case len(s.Sources) == 0 || len(s.Sources) > mostSources || s.To == "":
		return fmt.Sprintf("COPY: it takes 1 to %d sources and where they go", mostSources)
	case s.Mode != "" && !octalMode().MatchString(s.Mode):
		return fmt.Sprintf("COPY: %.40q is no mode; it is octal, as 0755", s.Mode)
	}
	for _, source := range s.Sources {
		if _, err := cleanSource(source); err != nil {
			return "COPY: " + err.Error()
		}
	}
	return ""
}

// beginnings are the images that a session stands for, by what their names begin with.
var beginnings = []string{"python", "debian", "ubuntu", "buildpack-deps", "e2bdev/base", "e2bdev/code-interpreter", "daytonaio/sandbox", "daytonaio/workspace-project"}

// Begins says whether a session stands for an image, and what the difference is, for a log; "" where there is none to be told. A session is Debian's or Ubuntu's kin, as the host is, with cove's own
// Python, whatever version the image's tag says.
func Begins(image string) (note string, err error) {
	name := strings.TrimPrefix(strings.TrimPrefix(image, "docker.io/"), "library/")
	name, _, _ = strings.Cut(name, "@")
	name, tag, _ := strings.Cut(name, ":")
	switch {
	case image == "" || strings.HasPrefix(name, "e2bdev/"):
		note = ""
	default:
		note = "the image " + image + " is not fetched: a session of cove's stands for it, with the system of the host and cove's own Python"
	}
	if name == "python" && strings.HasPrefix(tag, "2") {
		return "", fmt.Errorf("the image %.200q cannot be had: a session has Python 3", image)
	}
	if image != "" && !slices.Contains(beginnings, name) {
		return "", fmt.Errorf("the image %.200q cannot be had: cove makes environments from its own session, which stands for %s; install what is needed with RUN", image, strings.Join(beginnings, ", "))
	}
	return note, nil
}

// May says whether sessions may begin from an image, and whether the server's operator has named it, as (*hub.Hub).MayBeginFrom does; nil: from none.
type May func(image string) (named bool, err error)

// Begin finds out what the recipe's session begins from: the image itself where the operator has named it, or allows it and cove's own session does not stand for it; else that. The error says
// why neither can be.
func (r *Recipe) Begin(may May) error {
	_, unknown := Begins(r.Image)
	if r.Image == "" || may == nil {
		return unknown
	}
	named, denied := may(r.Image)
	switch {
	case denied == nil && (named || unknown != nil):
		r.Fetched = true
		return nil
	case unknown != nil:
		return fmt.Errorf("%w; the operator of the server can allow the image itself in images.allow", unknown)
	}
	return nil
}

// States are names of what there is before the first step, after each, and after the start command: the same for what is made in the same way from the same. of names what is
// begun with. Where a step is to be made anew, its name and those of all that follow are "".
func (r Recipe) States(of string) []string {
	name := func(before string, v any) string {
		text, _ := json.Marshal(v) // strings alone
		sum := sha256.Sum256(append([]byte(before+"\n"), text...))
		return hex.EncodeToString(sum[:16])
	}
	from := []string{of, r.Image}
	if r.Fetched {
		from = append(from, "fetched")
	}
	last := name("cove 1", from)
	states := []string{last}
	forced := r.Force
	for _, s := range r.Steps {
		forced = forced || s.Force
		s.Line, s.Force = 0, false
		last = name(last, s)
		states = append(states, last)
		if forced {
			states[len(states)-1] = ""
		}
	}
	if r.Start != "" || r.Ready != "" {
		last = name(last, []string{r.Start, r.Ready})
	}
	if forced {
		return append(states, "")
	}
	return append(states, last)
}

// Final is the name of what is made in the end, also where it is to be made anew.
func (r Recipe) Final(of string) string {
	r.Force, r.Steps = false, slices.Clone(r.Steps)
	for i := range r.Steps {
		r.Steps[i].Force = false
	}
	states := r.States(of)
	return states[len(states)-1]
}
