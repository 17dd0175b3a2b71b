package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/bodybudget"
	"cove/internal/http/client"
)

type batchCmd struct {
	serverFlags
	File    string `arg:"" help:"One JSON object on each line, {\"code\":\"...\"} or {\"prompt\":\"...\"}, with further fields as the API has them; - is standard input."`
	AtOnce  int    `default:"4" placeholder:"N" help:"How many run at once, at most 32 (default: 4)."`
	Session string `placeholder:"NAME" help:"Run all of it in this session of the server, one after the other (without: each in a session of its own)."`
	Keep    bool   `help:"Keep the sessions that are made."`
}

// Help is the long help.
func (batchCmd) Help() string {
	return `Runs many cells, or asks many questions, on a server: each in a session of its own, several at once. What comes of each is a line of JSON on standard output, in the order in which they end,
with the number of its line in "index" (from 0). One that fails ends no other. Ctrl-C has nothing more begin; what has begun goes on.

Examples:

    cove batch cells.jsonl --server http://127.0.0.1:8700 --at-once 8 > results.jsonl
    printf '{"code":"6*7"}\n{"prompt":"What is the 100th prime?","label":"prime"}\n' | cove batch -

Exit code: 0 all ended well; 1 something failed; 130 Ctrl-C; 125 cove or the server failed.`
}

const (
	// longestBatchLine bounds a line of the file, and largestBatch and mostOfBatch what is sent at once, in bytes and items.
	longestBatchLine, largestBatch, mostOfBatch = 2 << 20, 3 << 20, 1000
)

func (c *batchCmd) run(ctx context.Context, p *Program) (int, error) {
	base, key, err := c.remote(p.Config)
	if err != nil {
		return 0, err
	}
	if base == "" {
		return 0, problem.New(problem.Usage, "cove batch works on a server").WithHint("start one with `cove serve`, and give its address with --server, or as COVE_SERVER")
	}
	if c.AtOnce < 1 || c.AtOnce > 32 {
		return 0, problem.New(problem.Usage, "--at-once is from 1 to 32")
	}
	in := p.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return 0, problem.New(problem.InputUnreadable, "cannot read "+oneLine(c.File)).WithCause(err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	b := &batchRun{client: client.New(base, key), out: p.Out}
	defer b.client.Close()
	b.what = api.NewBatch{AtOnce: c.AtOnce, Keep: c.Keep}
	if c.Session != "" {
		if b.what.Session, err = sessionNamed(ctx, b.client, c.Session); err != nil {
			return 0, err
		}
	}
	if err := b.all(ctx, in); err != nil {
		return 0, err
	}
	if b.failed > 0 {
		return exitUncaught, nil
	}
	return 0, nil
}

// sessionNamed is the session with a name, which is there.
func sessionNamed(ctx context.Context, c *client.Client, name string) (string, error) {
	id, err := namedSession(ctx, c, name)
	if err == nil && id == "" {
		err = problem.New(problem.SessionNotFound, "the server has no session "+oneLine(name)).WithHint("make it with `cove run --session NAME`, or leave --session out")
	}
	return id, err
}

// batchRun sends the lines of a file, as many at once as a request takes.
type batchRun struct {
	client *client.Client
	what   api.NewBatch
	out    io.Writer
	sent   int // lines of the requests before
	failed int
}

func (b *batchRun) all(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestBatchLine)
	size, number := 0, 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var item api.BatchItem
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&item); err != nil {
			return problem.New(problem.Usage, fmt.Sprintf("line %d is not an item of a batch: %s", number, bodybudget.WhyNotJSON(err))).WithHint(`a line is {"code":"..."} or {"prompt":"..."}`)
		}
		if size += len(text); size > largestBatch || len(b.what.Items) >= mostOfBatch {
			if err := b.send(ctx); err != nil {
				return err
			}
			size = len(text)
		}
		b.what.Items = append(b.what.Items, item)
	}
	if err := lines.Err(); err != nil {
		return problem.New(problem.InputUnreadable, "cannot read the items").WithCause(err)
	}
	return b.send(ctx)
}

// send runs the items that were read, and writes their results.
func (b *batchRun) send(ctx context.Context) error {
	if len(b.what.Items) == 0 {
		return nil
	}
	for body, err := range b.client.Batch(ctx, b.what) {
		if err != nil {
			return err
		}
		var r api.BatchResult
		if json.Unmarshal(body, &r) != nil || r.Type != "result" {
			continue
		}
		r.Index += b.sent
		if !r.OK {
			b.failed++
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := b.out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	b.sent += len(b.what.Items)
	b.what.Items = nil
	return nil
}
