package eval

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

//go:embed judge.py
var judgeProgram string

const (
	// longestWhy bounds why a check is not passed, in bytes.
	longestWhy = 2000
	// longestVerdict bounds what is kept of a check's output, in bytes: the last line counts.
	longestVerdict = 4096
	// largestFile bounds the file that a check reads, in bytes.
	largestFile = 256 << 20
)

// judge applies a task's checks to what a turn has left. An error means that cove failed, or ctx ended.
func judge(ctx context.Context, s Session, t Task, answer string) ([]CheckResult, error) {
	var out []CheckResult
	for _, c := range t.Checks {
		r, err := c.apply(ctx, s, t, answer)
		if err != nil {
			return nil, err
		}
		r.Kind = c.Kind
		if r.Right {
			r.Why = ""
		}
		r.Why = bounded(strings.TrimSpace(r.Why), longestWhy)
		out = append(out, r)
	}
	return out, nil
}

func (c Check) apply(ctx context.Context, s Session, t Task, answer string) (CheckResult, error) {
	switch c.Kind {
	case CheckTests, CheckCode, CheckCompare:
		return c.run(ctx, s, t, answer)
	case CheckFile:
		return c.file(ctx, s)
	}
	return c.said(answer), nil
}

// run has judge.py judge what is in the session. It is right only when the interpreter says in the end what nothing but judge.py was told.
func (c Check) run(ctx context.Context, s Session, t Task, answer string) (CheckResult, error) {
	nonce := secret()
	spec, err := json.Marshal(map[string]any{
		"kind": c.Kind, "text": c.Text, "answer": answer, "entry": c.Entry, "prelude": c.Prelude, "unittest": c.Unittest, "own": t.Series == "",
		"names": c.Names, "result": c.Result, "before": t.Before, "nonce": nonce,
	})
	if err != nil {
		return CheckResult{}, fmt.Errorf("write down a check: %w", err)
	}
	code := fmt.Sprintf("exec(compile(%s, '<judge>', 'exec'), {'__name__': '_cove_judge', '_user': globals(), '_spec': __import__('json').loads(%s)})", literal(judgeProgram), literal(string(spec)))
	v, err := listen(ctx, s, code)
	if err != nil {
		return CheckResult{}, err
	}
	last := v.said[bytes.LastIndexByte(bytes.TrimRight(v.said, "\n"), '\n')+1:]
	r := CheckResult{Right: v.done.Outcome == kernel.OutcomeOK && strings.TrimSpace(string(last)) == nonce, Why: v.why}
	if r.Why == "" {
		r.Why = cmp.Or(v.done.Message, "the tests ended before their end ("+string(v.done.Outcome)+")")
	}
	return r, nil
}

// verdict is what came of code that nobody but the judge hears of.
type verdict struct {
	done kernel.Done
	said []byte // the end of standard output
	why  string // the exception
}

// listen runs code unrecorded and returns how it ended.
func listen(ctx context.Context, s Session, code string) (verdict, error) {
	var v verdict
	for e, err := range s.Unrecorded(ctx, code) {
		if err != nil {
			return v, err
		}
		switch e := e.(type) {
		case kernel.Stream:
			if e.Name == "stdout" {
				v.said = append(v.said, e.Data...)
				v.said = v.said[max(0, len(v.said)-longestVerdict):]
			}
		case kernel.Error:
			v.why = e.Name + ": " + e.Value
		case kernel.Done:
			v.done = e
		}
	}
	if ctx.Err() != nil {
		return v, problem.New(problem.GivenUp, "stopped before the answer was judged")
	}
	return v, nil
}

// file looks at a file in the workspace, which came from the sandbox and may be anything.
func (c Check) file(ctx context.Context, s Session) (CheckResult, error) {
	sum := sha256.New()
	w := &limitedWriter{to: sum, left: largestFile}
	err := s.Fetch(ctx, c.Path, w)
	switch {
	case ctx.Err() != nil:
		return CheckResult{}, problem.New(problem.GivenUp, "stopped before the answer was judged")
	case w.left < 0:
		return CheckResult{Why: fmt.Sprintf("%s is larger than %d bytes", c.Path, largestFile)}, nil
	case err != nil:
		return CheckResult{Why: c.Path + ": " + problem.Of(err).Message}, nil
	case c.Exact && hex.EncodeToString(sum.Sum(nil)) != c.Sum:
		return CheckResult{Why: c.Path + " has other content"}, nil
	}
	return CheckResult{Right: true}, nil
}

// limitedWriter fails when more is written than it has room for.
type limitedWriter struct {
	to   io.Writer
	left int64
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return w.to.Write(p)
}

// secret is a text that code in the sandbox cannot guess.
func secret() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// literal is a Python expression for a text. What JSON writes as a string is one.
func literal(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n")
}

// bounded cuts a text so that it has at most that many bytes and stays valid.
func bounded(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "…"
}
