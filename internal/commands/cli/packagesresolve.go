package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/names"
	"cove/internal/python/deps/require"
)

// Explain says what a module means: the answer of the table of names, and what policy makes of it.
type Explain func(module string) (names.Answer, deps.Tier)

type packagesResolve struct {
	Names  []string `arg:"" help:"Modules, as they are imported: sklearn, google.cloud.storage. - reads them from standard input, any number in a line."`
	Python string   `placeholder:"VERSION" help:"The Python whose standard library counts, such as 3.12 (default: that of the environment)."`
	JSON   bool     `name:"json" help:"Print one object a line as JSON."`
}

// Help is the long help.
func (packagesResolve) Help() string {
	return `Asks no index and installs nothing: cove has the answers built in.

Tiers: stdlib, part of Python; base, in the environment; table, a well-known package; allowed, approved by your settings; other, a
package that is little known and is looked at before it is installed; refused, not to be installed by this name; unknown.

Examples:

    cove packages resolve sklearn bs4 jwt google.cloud.storage
    cove packages resolve --json - < names.txt

Exit code: 0; 1 when a name is refused or unknown; 125 cove itself failed.`
}

var pythonVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^3\.[0-9]{1,2}$`) })

func (c *packagesResolve) run(ctx context.Context, p *Program) (int, error) {
	if p.ConfigErr != nil {
		return 0, p.ConfigErr
	}
	if c.Python != "" && !pythonVersion().MatchString(c.Python) {
		return 0, problem.New(problem.Usage, fmt.Sprintf("%q is not a version of Python", c.Python)).WithHint("write it like 3.12")
	}
	out := bufio.NewWriterSize(p.Out, 64<<10)
	r := &resolving{explain: p.explain(c.Python), out: out, json: c.JSON, width: widths(c.Names)}
	for _, name := range c.Names {
		var err error
		if name == "-" {
			err = r.stream(ctx, p.In)
		} else {
			err = r.one(name)
		}
		if err != nil {
			return 0, err
		}
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	if r.missed {
		return exitUncaught, nil
	}
	return 0, nil
}

// explain finds what names mean here, or what they mean for a Python of that version.
func (p *Program) explain(python string) Explain {
	if python == "" && p.Explain != nil {
		if explain := p.Explain(p.Config); explain != nil {
			return explain
		}
	}
	return func(module string) (names.Answer, deps.Tier) {
		a := names.Resolve(module, python)
		return a, tierOf(a)
	}
}

// tierOf is the tier of an answer where nothing is known of an environment.
func tierOf(a names.Answer) deps.Tier {
	switch {
	case a.Status == names.Standard:
		return deps.TierBase
	case a.Status != names.Found:
		return deps.TierRefused
	case a.Reason != names.BySameName || names.Rank(a.Distribution) > 0:
		return deps.TierTable
	}
	if _, slip := names.TypoOf(a.Distribution); slip {
		return deps.TierRefused
	}
	return deps.TierOther
}

// resolving answers one name after the other.
type resolving struct {
	explain Explain
	out     *bufio.Writer
	json    bool
	width   int
	headed  bool
	missed  bool // a name means nothing that can be installed
}

// widths is the width of the first column.
func widths(modules []string) int {
	width := len("MODULE")
	for _, m := range modules {
		if m == "-" {
			return 28
		}
		width = max(width, len(m))
	}
	return min(width, 50)
}

// stream answers names as they come. What is known is written out before it waits for more.
func (r *resolving) stream(ctx context.Context, in io.Reader) error {
	words := make(chan []string)
	failed := make(chan error, 1)
	over := make(chan struct{})
	defer close(over)
	go func() {
		defer close(words)
		failed <- readWords(in, words, over)
	}()
	for {
		select {
		case <-ctx.Done():
			return problem.New(problem.GivenUp, "stopped before all names were read")
		case batch, more := <-words:
			if !more {
				return <-failed
			}
			for _, name := range batch {
				if err := r.one(name); err != nil {
					return err
				}
			}
			if err := r.out.Flush(); err != nil {
				return err
			}
		}
	}
}

// longestLine bounds a line of names, in bytes.
const longestLine = 1 << 20

// readWords sends the words of all the lines that are there at a time; # begins a comment.
func readWords(in io.Reader, to chan<- []string, over <-chan struct{}) error {
	lines := bufio.NewReaderSize(in, longestLine)
	var batch []string
	for {
		line, err := lines.ReadSlice('\n')
		text, _, _ := strings.Cut(string(line), "#")
		batch = append(batch, strings.Fields(text)...)
		if err == nil && hasLine(lines) {
			continue
		}
		if !send(batch, to, over) {
			return nil
		}
		batch = nil
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			return problem.New(problem.InputUnreadable, "standard input has a line of more than a megabyte")
		default:
			return problem.New(problem.InputUnreadable, "standard input cannot be read").WithCause(err)
		}
	}
}

// hasLine says whether the next line can be read without waiting for it.
func hasLine(lines *bufio.Reader) bool {
	there, _ := lines.Peek(lines.Buffered()) // which never needs more than is there
	return bytes.IndexByte(there, '\n') >= 0
}

func send(batch []string, to chan<- []string, over <-chan struct{}) bool {
	select {
	case to <- batch:
		return true
	case <-over:
		return false
	}
}

// one answers one name.
func (r *resolving) one(module string) error {
	a, tier := r.explain(module)
	word := tierWord(a, tier)
	if word == "refused" || word == "unknown" {
		r.missed = true
	}
	if r.json {
		e := json.NewEncoder(r.out)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			names.Answer
			Tier string `json:"tier"`
		}{a, word})
	}
	if !r.headed {
		r.headed = true
		h := translated([]string{"MODULE", "PACKAGE", "TIER", "WHY"})
		fmt.Fprintf(r.out, "%s  %s  %s  %s\n", padded(h[0], r.width), padded(h[1], 28), padded(h[2], 7), h[3])
	}
	_, err := fmt.Fprintf(r.out, "%s  %-28s  %s  %s\n", padded(oneLine(module), r.width), packageWord(a), padded(tierText(word), 7), reasonWords(a))
	return err
}

func tierWord(a names.Answer, tier deps.Tier) string {
	if tier == deps.TierBase && a.Status != names.Standard {
		return string(tier) // whatever the table says, it is there
	}
	switch a.Status {
	case names.Standard, names.Unknown:
		return string(a.Status)
	case names.Refused:
		return string(deps.TierRefused)
	}
	return string(tier)
}

// tierText is a word of tierWord in the language of the process.
func tierText(word string) string {
	switch word {
	case string(names.Standard):
		return lang.Text("stdlib")
	case string(names.Unknown):
		return lang.Text("unknown")
	case string(deps.TierRefused):
		return lang.Text("refused")
	case string(deps.TierBase):
		return lang.Text("base")
	case string(deps.TierTable):
		return lang.Text("table")
	case string(deps.TierOther):
		return lang.Text("other")
	}
	return word
}

func packageWord(a names.Answer) string {
	if a.Distribution == "" {
		return "-"
	}
	if len(a.Extras) > 0 {
		return a.Distribution + "[" + strings.Join(a.Extras, ",") + "]"
	}
	return a.Distribution
}

// reasonWords is why, and what to do where there is no package, in the language of the process.
func reasonWords(a names.Answer) string {
	text := lang.Text(oneLine(a.Explanation))
	if a.Status == names.Unknown && names.Rank(require.Normalize(a.Module)) > 0 {
		return text + lang.Joint("; ") + lang.Text("it is the name of a package, for %pip install")
	}
	if a.Hint != "" {
		text += lang.Joint("; ") + lang.Text(oneLine(a.Hint))
	}
	if len(a.Suggestions) > 0 {
		text += lang.Joint("; ") + lang.Sprintf("similar: %s", oneLine(strings.Join(a.Suggestions, ", ")))
	}
	return text
}
