package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

type showCmd struct {
	ownSignals // while it pages, they are the pager's
	serverFlags
	ID      string `arg:"" optional:"" complete:"conversation" help:"cnv_..., trn_... or exe_..., a number of cove history, or last, which is what is meant without one."`
	All     bool   `help:"Also show the branches that were left when the conversation went back to an earlier question."`
	JSON    bool   `name:"json" help:"Print it as JSON: one object per turn, with its events."`
	NoPager bool   `help:"Do not page it."`
}

// Help is the long help.
func (showCmd) Help() string {
	return `Examples:

    cove show
    cove show 3
    cove show exe_06f1k3t3y4m0v8s2k5r7w9x1z4`
}

func (c *showCmd) run(ctx context.Context, p *Program) (int, error) {
	var text []byte
	code, err := p.stoppable(ctx, func(ctx context.Context) (code int, err error) {
		text, err = c.text(ctx, p)
		return 0, err
	})
	if code != 0 || err != nil {
		return code, err
	}
	return 0, p.paged(ctx, text, c.NoPager || c.JSON)
}

func (c *showCmd) text(ctx context.Context, p *Program) (text []byte, err error) {
	err = p.withPast(ctx, c.serverFlags, func(from past) error {
		found, err := find(ctx, from, c.ID)
		if err != nil {
			return err
		}
		if found.execution == nil && !c.All && len(found.turns) > 1 {
			found.turns = branch(found.turns)
		}
		if c.JSON {
			return showJSON(ctx, p, from, found)
		}
		text, err = showText(ctx, p, from, found)
		return err
	})
	return text, err
}

// showJSON writes a line for each turn, or one for the execution.
func showJSON(ctx context.Context, p *Program, from recordings, t thing) error {
	if x := t.execution; x != nil {
		events, err := from.ExecutionEvents(ctx, *x)
		if err != nil {
			return err
		}
		list := []json.RawMessage{}
		for _, e := range events {
			if text, err := transcript.Event(e); err == nil {
				list = append(list, text)
			}
		}
		return p.printLine(map[string]any{"id": x.ID, "turn": x.Turn, "session": x.Session, "code": x.Code, "state": x.State, "created": x.Created, "seconds": x.Wall.Seconds(), "events": list})
	}
	for _, turn := range t.turns {
		events, err := from.TurnEvents(ctx, turn)
		if err != nil {
			return err
		}
		list := []json.RawMessage{}
		for _, e := range events {
			if text, err := transcript.TurnEvent(e); err == nil {
				list = append(list, text)
			}
		}
		line := map[string]any{"id": turn.ID, "conversation": turn.Conversation, "parent": turn.Parent, "state": turn.State, "model": turn.Model, "prompt": turn.Prompt,
			"answer": turn.Answer, "reason": turn.Reason, "steps": turn.Steps, "created": turn.Created, "events": list,
			"usage": map[string]any{"input_tokens": turn.Usage.InputTokens, "output_tokens": turn.Usage.OutputTokens}}
		if len(turn.Problem) > 0 {
			line["problem"] = turn.Problem
		}
		if err := p.printLine(line); err != nil {
			return err
		}
	}
	return nil
}

// showText is the thing as a person reads it. It is told by the narrator, so that it looks as it did when it happened.
func showText(ctx context.Context, p *Program, from recordings, t thing) ([]byte, error) {
	var out bytes.Buffer
	n := newNarrator(p, p.Out, nil)
	n.to = &out
	if x := t.execution; x != nil {
		events, err := from.ExecutionEvents(ctx, *x)
		fmt.Fprintf(&out, "%s  %s  %s\n", x.ID, dateTime(x.Created), x.State)
		n.event(loop.Start{Step: 1, Code: x.Code})
		tellOutputs(n, events)
		n.finish()
		return out.Bytes(), err
	}
	c := t.conversation
	fmt.Fprintf(&out, "%s\n%s\n", n.strong(oneLine(c.Title)), n.dim(oneLine(fmt.Sprintf("%s  %s  %s", c.ID, dateTime(c.Created), c.Model))))
	if files := fileNames(c); len(files) > 0 {
		fmt.Fprintln(&out, n.dim(lang.Sprintf("files: %s", oneLine(strings.Join(files, ", ")))))
	}
	for _, turn := range t.turns {
		events, err := from.TurnEvents(ctx, turn)
		if err != nil {
			return nil, err
		}
		var e escapes
		fmt.Fprintf(&out, "\n%s %s\n\n", n.strong("›"), n.strong(strings.TrimSpace(e.clean([]byte(turn.Prompt)))))
		tellTurn(n, turn, events)
	}
	return out.Bytes(), nil
}

func tellOutputs(n *narrator, events []hub.Event) {
	var made []string
	for _, e := range events {
		switch e := e.(type) {
		case kernel.Display, kernel.Result:
			n.output(e)
			if isFigure(e) {
				n.note("figure")
			}
		case kernel.File:
			made = append(made, e.Path)
		default:
			n.output(e)
		}
	}
	if len(made) > 0 {
		n.note("files: " + strings.Join(made, ", "))
	}
}

func isFigure(e kernel.Event) bool {
	var data kernel.Bundle
	switch e := e.(type) {
	case kernel.Display:
		data = e.Data
	case kernel.Result:
		data = e.Data
	}
	_, content := figureOf(data, func() string { return "-" })
	return content != nil
}

func tellTurn(n *narrator, turn hub.Turn, events []loop.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case loop.Output:
			tellOutputs(n, []hub.Event{e.Event})
		case loop.Code: // the complete code comes with Start
		default:
			n.event(e)
		}
	}
	said := n.hasSaid(turn.Answer)
	n.finish()
	if turn.Answer != "" && !said {
		n.raw("\n")
		if answer := n.safe([]byte(strings.TrimRight(turn.Answer, "\n"))); n.words != nil {
			n.rows(append(n.words.Add(stripColours(answer)), n.words.Rest()...))
		} else {
			n.raw(answer + "\n")
		}
	}
	n.said.Reset()
	switch {
	case turn.State == hub.TurnCanceled:
		n.note("this turn was stopped")
	case len(turn.Problem) > 0:
		var p struct{ Message, Hint string }
		_ = json.Unmarshal(turn.Problem, &p)
		n.note("failed: " + p.Message)
	case !turn.State.Final():
		n.note("this turn is " + string(turn.State))
	case turn.State != hub.TurnCompleted:
		n.note("this turn was " + string(turn.State))
	case turn.Reason != string(loop.Complete):
		n.note("ended: " + turn.Reason)
	}
}

func (n *narrator) strong(text string) string {
	if !n.colour || text == "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// paged writes text through less where a person looks at it and it does not fit on the screen.
func (p *Program) paged(ctx context.Context, text []byte, never bool) error {
	fd, tty := terminal.Descriptor(p.Out)
	if tty && !never {
		if _, height, err := term.GetSize(fd); err == nil && bytes.Count(text, []byte("\n")) >= height {
			if less, err := exec.LookPath("less"); err == nil {
				return p.page(ctx, less, text)
			}
		}
	}
	_, err := p.Out.Write(text)
	return err
}

func (p *Program) page(ctx context.Context, less string, text []byte) error {
	cmd := exec.CommandContext(ctx, less, "-R", "-F", "-X")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), unwrapped(p.Out), unwrapped(p.Err)
	cmd.Env = append(os.Environ(), "LESSSECURE=1") // what is shown comes from a model
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}
	return err
}

// unwrapped is the file that w writes to, for a program that looks whether it is a terminal.
func unwrapped(w io.Writer) io.Writer {
	if f := terminal.OpenFile(w); f != nil {
		return f
	}
	return w
}

type exportCmd struct {
	serverFlags
	ID     string `arg:"" optional:"" complete:"conversation" help:"cnv_..., trn_... or exe_..., a number of cove history, or last, which is what is meant without one."`
	Format string `default:"" enum:"ipynb,md,py," placeholder:"FORMAT" help:"ipynb, a Jupyter notebook; md, Markdown; py, a program. Without: what the ending of --out says, or else ipynb."`
	Out    string `short:"o" placeholder:"FILE" help:"The file to write. Without: standard output."`
}

// Help is the long help.
func (exportCmd) Help() string {
	return `Examples:

    cove export -o sales.ipynb
    cove export 3 --format md
    cove export cnv_06f1k3t3y4m0v8s2k5r7w9x1z4 --format py -o analysis.py`
}

func (c *exportCmd) run(ctx context.Context, p *Program) (int, error) {
	format := c.Format
	if format == "" {
		format = cmp.Or(strings.TrimPrefix(filepath.Ext(c.Out), "."), "ipynb")
	}
	write := map[string]func(io.Writer, notebook.Document) error{"ipynb": notebook.WriteIPYNB, "md": notebook.WriteMarkdown, "py": notebook.WritePython}[format]
	if write == nil {
		return 0, problem.New(problem.Usage, "the ending of "+oneLine(c.Out)+" says no format that cove writes").WithHint("add --format ipynb, md or py")
	}
	return 0, p.withPast(ctx, c.serverFlags, func(from past) error {
		d, err := c.document(ctx, from)
		if err != nil {
			return err
		}
		if c.Out == "" || c.Out == "-" {
			return write(p.Out, d)
		}
		_, err = writeWhole(c.Out, 0o666, func(w io.Writer) error { return write(w, d) })
		if err == nil {
			notef(p.Err, "%s: %s", c.Out, count(len(d.Cells()), "cell"))
		}
		return err
	})
}

func (c *exportCmd) document(ctx context.Context, from past) (notebook.Document, error) {
	found, err := find(ctx, from, c.ID)
	if err != nil {
		return notebook.Document{}, err
	}
	if found.execution == nil && len(found.turns) > 1 {
		found.turns = branch(found.turns)
	}
	d, err := found.document(ctx, from)
	d.Python = found.conversation.Metadata[metaPython]
	if err == nil && found.execution == nil && len(d.Turns) == 0 {
		err = problem.New(problem.ConversationEmpty, "the conversation has no turns yet")
	}
	return d, err
}
