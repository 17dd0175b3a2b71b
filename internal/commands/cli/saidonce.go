package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/python/deps/require"
	"cove/internal/python/kernel"
)

// pipCell is code that begins with an installation in its only line, such as %pip install cowsay.
var pipCell = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*[%!]\s*(?:python3? -m )?(?:uv\s+)?pip3?\s+install\s[^\n]*\s*$`)
})

// What the pip of the sandbox says, each at the beginning of a line.
const (
	pipSatisfied = "Requirement already satisfied: "
	pipUnknown   = "ERROR: No matching distribution found for "
)

// pipAdvice are the lines after pipUnknown, as the pip of the sandbox has them.
var pipAdvice = []string{
	"Nothing can be installed from inside the sandbox: cove does it before the code runs. Write `%pip install NAME` with the name",
	"spelled out into the code, or just import the package. If the code did that, cove has said why it is not installed.",
}

// longestPipLine bounds the beginning of a line that is held back until it is known what the line says.
const longestPipLine = 4096

// pipOutput is what people see of the output of code that installs packages. cove has installed them when the code begins, and said so with what it took; that pip, which finds
// them there, says so too is left out, and so is that it does not find what cove has just said why it is not installed. A nil pipOutput shows all.
type pipOutput struct {
	installed map[string]bool // what cove has said that it installed
	refused   bool            // it has said why something is not
	held      map[string]string
	within    map[string]bool // the last line that was shown of a stream has no end yet
}

// pipOutputOf is the pipOutput for code, nil where that is not an installation.
func pipOutputOf(code string) *pipOutput {
	if !pipCell().MatchString(code) {
		return nil
	}
	return &pipOutput{installed: map[string]bool{}, held: map[string]string{}, within: map[string]bool{}}
}

// recordInstall remembers what was said of packages.
func (o *pipOutput) recordInstall(e kernel.Install) {
	if o == nil {
		return
	}
	for _, p := range e.Provision.Installed {
		o.installed[require.Normalize(p.Name)] = true
	}
	o.refused = o.refused || e.Failure != nil || len(e.Provision.Refused) > 0
}

// shown is what is shown now when a stream has said more. The beginning of a line that pip may be saying is held back.
func (o *pipOutput) shown(stream string, data []byte) []byte {
	if o == nil {
		return data
	}
	text := append([]byte(o.held[stream]), data...)
	o.held[stream] = ""
	var shown []byte
	for line := range bytes.Lines(text) {
		ended := bytes.HasSuffix(line, []byte("\n"))
		switch {
		case o.within[stream]:
		case !ended && len(line) < longestPipLine && o.mayRepeat(string(line)):
			o.held[stream] = string(line)
			return shown
		case o.repeats(string(line)):
			continue
		}
		shown = append(shown, line...)
		o.within[stream] = !ended
	}
	return shown
}

// takeHeld returns what was held back of a stream, where pip did not say it, and holds it no more.
func (o *pipOutput) takeHeld(stream string) []byte {
	if o == nil || o.held[stream] == "" {
		return nil
	}
	line := o.held[stream]
	if o.held[stream] = ""; o.repeats(line) {
		return nil
	}
	o.within[stream] = true
	return []byte(line)
}

// mayRepeat says whether a line that begins so may repeat what cove has said.
func (o *pipOutput) mayRepeat(begun string) bool {
	return slices.ContainsFunc(append([]string{pipSatisfied, pipUnknown}, pipAdvice...), func(one string) bool {
		return strings.HasPrefix(begun, one) || strings.HasPrefix(one, begun)
	})
}

// repeats says whether a line says again what cove has said.
func (o *pipOutput) repeats(line string) bool {
	line = strings.TrimRight(line, "\r\n")
	if o.refused && (strings.HasPrefix(line, pipUnknown) || slices.Contains(pipAdvice, line)) {
		return true
	}
	name, satisfied := strings.CutPrefix(line, pipSatisfied)
	end := strings.IndexAny(name, " [=<>!~;(@")
	return satisfied && end > 0 && o.installed[require.Normalize(name[:end])]
}
