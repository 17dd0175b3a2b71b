package advice

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

//go:embed scripts/*.py
var scripts embed.FS

const (
	outputLimit  = 8 << 20          // bytes that one script may print
	longestLine  = 64 << 10         // bytes of one object
	mostReplies  = 50_000           // objects of one script
	longestText  = 1000             // characters of one text of a finding
	longestError = 4000             // characters of what a program or tool said at its end
	mostSeconds  = 3600             // that one tool may take where the execution has no bound
	grace        = 20 * time.Second // for a script to say what it found, beside the time of what it runs
)

// reply is one object that a script prints. Which fields it has depends on its kind.
type reply struct {
	Kind string `json:"kind"`

	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Message  string   `json:"message"`
	Better   string   `json:"better"`

	Parsed       bool        `json:"parsed"`
	Types        bool        `json:"types"`
	Imports      []string    `json:"imports"`
	Applications [][2]string `json:"applications"`

	Package string `json:"package"`
	Why     string `json:"why"`
	Text    string `json:"text"`

	Slow float64 `json:"slow"`
	Fast float64 `json:"fast"`
	Size int     `json:"size"`
	Same bool    `json:"same"`

	File     string  `json:"file"`
	Python   float64 `json:"python"`
	Native   float64 `json:"native"`
	System   float64 `json:"system"`
	Peak     int64   `json:"peak"`
	Seconds  float64 `json:"seconds"`
	Exit     *int    `json:"exit"`
	Output   string  `json:"output"`
	Measured bool    `json:"measured"`

	Described    int `json:"described"`
	Undocumented int `json:"undocumented"`

	Program string    `json:"program"`
	Values  []float64 `json:"values"`
	Memory  int64     `json:"memory"`
}

// parameters are what a script is told; it finds them as TASK.
type parameters map[string]any

// scriptRun is one run of a script.
type scriptRun struct {
	script string // of the folder scripts, without .py
	values parameters
	tools  []string      // modules that the script imports and can do without
	times  int           // how many times the usual time it may take; 0 means 1
	beside time.Duration // that its tools may take beside the usual time
	wanted *seen         // what the program needs that is going to be run; nil: none is
	src    Source
}

// run runs a script and hands what it prints to each. What the script itself failed with is a problem: check_failed.
func (c *Checker) run(ctx context.Context, j scriptRun, each func(reply) error) error {
	code, err := c.code(j)
	if err != nil {
		return err
	}
	r := replies{each: each}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed kernel.Error
	var done kernel.Done
	for e, err := range c.Session.Execute(ctx, kernel.Request{Code: code, Mode: kernel.Cell, Timeout: c.bound(j), OutputLimit: outputLimit}) {
		if err != nil {
			return err
		}
		switch e := e.(type) {
		case kernel.Stream:
			if e.Name == "stdout" && r.err == nil {
				r.write(e.Data)
			}
			if r.err != nil {
				stop()
			}
		case kernel.Install:
			if c.Told != nil {
				c.Told(e)
			}
		case kernel.Error:
			failed = e
		case kernel.Done:
			done = e
		}
	}
	switch {
	case r.err != nil:
		return r.err
	case ctx.Err() != nil:
		return problem.New(problem.GivenUp, "the check was stopped").WithCause(context.Cause(ctx))
	case done.Outcome == kernel.OutcomeOK:
		return nil
	}
	return checkFailed(j, failed, done)
}

// checkFailed says how a script ended that did not end well.
func checkFailed(j scriptRun, failed kernel.Error, done kernel.Done) error {
	why := done.Message
	if done.Outcome == kernel.OutcomeError {
		why = clipped(failed.Name+": "+failed.Value, longestError)
	}
	p := problem.New(problem.CheckFailed, fmt.Sprintf("the %s of %s ended without a result: %s", j.script, j.src.Name, why))
	if done.Outcome == kernel.OutcomeTimeout {
		return p.WithHint("allow it more time")
	}
	if done.Outcome == kernel.OutcomeMemory {
		return p.WithHint("allow the sandbox more memory")
	}
	return p
}

// bound is how long a script may take; 0 means that it has no bound.
func (c *Checker) bound(j scriptRun) time.Duration {
	if c.Timeout <= 0 {
		return 0
	}
	return c.Timeout*time.Duration(max(1, j.times)) + j.beside + grace
}

// code puts the text together that the kernel runs.
func (c *Checker) code(j scriptRun) (string, error) {
	seconds := mostSeconds
	if c.Timeout > 0 {
		seconds = max(1, int(c.Timeout.Seconds()))
	}
	t := parameters{"file": j.src.file(), "text": j.src.Text, "notebook": j.src.Notebook, "seconds": seconds}
	for name, value := range j.values {
		t[name] = value
	}
	values, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("write the values of %s: %w", j.script, err)
	}
	var b strings.Builder
	modules := j.tools
	if j.wanted != nil {
		for _, line := range j.src.requirements() {
			b.WriteString(line + "\n")
		}
		modules = slices.Concat(modules, j.wanted.imports)
	}
	// What a function imports that nobody calls is installed all the same, for the processes that the script starts.
	b.WriteString("\n\ndef _wanted():\n    pass\n")
	for _, module := range modules {
		b.WriteString("    import " + module + "\n")
	}
	// The values have code in them, and the session looks at code for what it imports: it is not to see any in them.
	b.WriteString("\n\nimport base64, json\nTASK = json.loads(base64.b64decode(\"" + base64.StdEncoding.EncodeToString(values) + "\"))\n")
	for _, name := range []string{"common", j.script} {
		text, err := scripts.ReadFile("scripts/" + name + ".py")
		if err != nil {
			return "", fmt.Errorf("read a script: %w", err)
		}
		b.Write(text)
	}
	return b.String(), nil
}

// replies cuts what a script prints into objects. Lines that are none are passed over: libraries print too.
type replies struct {
	each func(reply) error
	line []byte
	long bool // the line is too long and not kept
	n    int
	err  error
}

func (r *replies) write(data []byte) {
	for len(data) > 0 && r.err == nil {
		part, rest, ended := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(r.line)+len(part) > longestLine {
			r.long = true
		}
		if !r.long {
			r.line = append(r.line, part...)
		}
		if !ended {
			return
		}
		if !r.long {
			r.object(r.line)
		}
		r.line, r.long = r.line[:0], false
	}
}

func (r *replies) object(line []byte) {
	var one reply
	if len(line) == 0 || line[0] != '{' || !utf8.Valid(line) || json.Unmarshal(line, &one) != nil {
		return
	}
	if r.n++; r.n > mostReplies {
		r.err = problem.New(problem.CheckFailed, fmt.Sprintf("the check gave more than %d results, and was stopped", mostReplies))
		return
	}
	r.err = r.each(one)
}

// finding makes a finding of a reply, or says that it is none that can be believed.
func (r reply) finding() (Finding, bool) {
	f := Finding{Rule: r.Rule, Severity: r.Severity, Line: r.Line, Column: max(1, r.Column), Message: sentence(r.Message), Better: sentence(r.Better)}
	known := f.Severity == Note || f.Severity == Warning || f.Severity == Error
	return f, known && ruleName().MatchString(f.Rule) && f.Line > 0 && f.Message != ""
}

var ruleName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,60}$`) })

// sentence makes one bounded line of a text, of characters that can be printed.
func sentence(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return clipped(strings.Join(strings.Fields(text), " "), longestText)
}

// clipped bounds a text, in characters.
func clipped(text string, most int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if n := 0; len(text) > most {
		for at := range text {
			if n == most {
				return text[:at] + "…"
			}
			n++
		}
	}
	return text
}
