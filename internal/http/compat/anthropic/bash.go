package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/server/hub"
)

const (
	// mostPrinted bounds what is kept of each of a command's two outputs, and mostTold what the model is told of it, in bytes.
	mostPrinted, mostTold = 128 << 10, 20 << 10
	// lateness is how much later than its limit a command may be said to have ended.
	lateness = 30 * time.Second
	// mostWalked and deepestWalk bound the files of a workspace that are looked at for what a command has written.
	mostWalked, deepestWalk = 5_000, 8
)

// printed is an output of a command, of which the beginning is kept.
type printed struct {
	strings.Builder
	lost int
}

func (p *printed) take(data []byte) {
	n := min(len(data), mostPrinted-p.Len())
	_, _ = p.Write(data[:n])
	p.lost += len(data) - n
}

func (p *printed) text() string {
	text := strings.ToValidUTF8(p.String(), "\ufffd")
	if p.lost > 0 {
		text = line(text) + fmt.Sprintf("[%d more bytes are not shown; write them into a file]\n", p.lost)
	}
	return text
}

// line is a text that ends with a line's end, where there is one.
func line(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// bash runs a command as a process of the session.
func (sh *shell) bash(ctx context.Context, arguments string) (object, model.ToolResult) {
	var in struct {
		Command string `json:"command"`
	}
	if json.Unmarshal([]byte(arguments), &in) != nil || strings.TrimSpace(in.Command) == "" {
		return toolError(bashTool, "invalid_tool_input", "The input is a JSON object with the command.")
	}
	if err := sh.s.Hub.CheckProgram(ctx, sh.c.who, ""); err != nil {
		return toolFault(bashTool, err)
	}
	var stdout, stderr printed
	exit, err := sh.run(ctx, process.Start{Line: in.Command, Followed: true, Timeout: sh.s.Timeout}, &stdout, &stderr)
	switch {
	case err != nil:
		return toolFault(bashTool, err)
	case exit.Reason == process.ForTime:
		o, told := toolError(bashTool, "execution_time_exceeded", fmt.Sprintf("The command ran for longer than the %s that it may.", sh.s.Timeout))
		told.Text = shorter(line(stdout.text())+line(stderr.text())) + told.Text
		return o, told
	case exit.Reason == process.ForMemory:
		stderr.take([]byte("The command used more memory than the container has.\n"))
	}
	files := []object{}
	written, err := sh.written(ctx)
	notes := []string{}
	if err == nil {
		var ids []string
		ids, notes = sh.s.keepFiles(sh.c, sh.session, &execution{files: written})
		for _, id := range ids {
			files = append(files, object{"type": "bash_code_execution_output", "file_id": id})
		}
	}
	complaints := stderr.text()
	for _, note := range notes {
		complaints = line(complaints) + note + "\n"
	}
	told := model.ToolResult{Text: shorter(line(stdout.text()) + complaints), IsError: exit.Status() != 0}
	if told.IsError {
		told.Text = line(told.Text) + fmt.Sprintf("[exit status %d]", exit.Status())
	}
	if told.Text == "" {
		told.Text = "(no output)"
	}
	if len(written) > 0 {
		told.Text = line(told.Text) + "[files written: " + strings.Join(written[:min(len(written), mostKept)], ", ") + "]"
	}
	return object{"type": "bash_code_execution_result", "stdout": stdout.text(), "stderr": complaints, "return_code": exit.Status(), "content": files}, told
}

// shorter is what a model is told of a text.
func shorter(text string) string {
	if len(text) <= mostTold {
		return text
	}
	head, tail := text[:mostTold*3/5], text[len(text)-mostTold*2/5:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[%d bytes in the middle were cut]\n", len(text)-len(head)-len(tail)) + strings.ToValidUTF8(tail, "")
}

// run runs a process to its end.
func (sh *shell) run(ctx context.Context, start process.Start, stdout, stderr *printed) (process.Exit, error) {
	p, err := sh.s.Hub.StartProcess(ctx, sh.c.who, sh.session, start)
	if err != nil {
		return process.Exit{}, err
	}
	ended := false
	defer func() {
		if !ended { // the client has left, or nobody hears of it any more
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateness)
			defer cancel()
			_ = sh.s.Hub.SignalProcess(ctx, sh.c.who, sh.session, p.ID, "KILL", true)
		}
	}()
	// The limit is kept inside the sandbox, which code may have made slow.
	ctx, cancel := context.WithTimeoutCause(ctx, sh.s.Timeout+lateness, problem.New(problem.Overloaded, "the sandbox does not end the command in time"))
	defer cancel()
	events, err := sh.s.Hub.FollowProcess(ctx, sh.c.who, sh.session, p.ID, 0)
	if err != nil {
		return process.Exit{}, err
	}
	for e, err := range events {
		if err != nil {
			return process.Exit{}, errors.Join(context.Cause(ctx), err)
		}
		switch e.Kind {
		case process.Stdout:
			stdout.take(e.Data)
		case process.Stderr:
			stderr.take(e.Data)
		case process.Ended:
			if e.Exit != nil {
				ended = true
				return *e.Exit, nil
			}
		}
	}
	return process.Exit{}, errors.Join(context.Cause(ctx), problem.New(problem.Fault, "the container did not say how the command ended"))
}

// written returns the files of the workspace that are new or have changed since it was asked last.
func (sh *shell) written(ctx context.Context) (all []string, err error) {
	now := map[string]workspace.Entry{}
	err = sh.s.Hub.Tree(ctx, sh.c.who, sh.session, false, func(ctx context.Context, t hub.Tree) error { return walk(ctx, t, "", 0, now) })
	for name, e := range now {
		if was, ok := sh.seen[name]; !ok || was.Stamp != e.Stamp || was.Size != e.Size || !was.Modified.Equal(e.Modified) {
			all = append(all, name)
		}
	}
	if err == nil {
		sh.seen = now
	}
	slices.Sort(all)
	return all, err
}

// walk finds files, folder by folder, without those that are hidden or come of running Python.
func walk(ctx context.Context, t hub.Tree, dir string, depth int, found map[string]workspace.Entry) error {
	entries, _, err := t.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if dir != "" && !strings.HasPrefix(e.Path, dir+"/") {
			e.Path = path.Join(dir, e.Path)
		}
		name := path.Base(e.Path)
		switch {
		case strings.HasPrefix(name, "."), name == "__pycache__", len(found) >= mostWalked:
		case !e.Folder:
			found[e.Path] = e
		case depth < deepestWalk:
			if err := walk(ctx, t, e.Path, depth+1, found); err != nil {
				return err
			}
		}
	}
	return nil
}
