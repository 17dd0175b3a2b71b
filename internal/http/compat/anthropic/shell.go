package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// The tools of code_execution_20250825, by https://platform.claude.com/docs/en/agents-and-tools/tool-use/code-execution-tool.
const (
	shellTools = "code_execution_20250825"
	bashTool   = "bash_code_execution"
	editorTool = "text_editor_code_execution"
	resultKind = "_tool_result" // after a tool's name
)

// shellIdle is when the container of a message is paused that nobody uses.
const shellIdle = 5 * time.Minute

// shellPrompt is what the model is told of the place.
const shellPrompt = `You have a Linux machine of your own, in a sandbox. bash_code_execution runs a command there, and text_editor_code_execution views, creates and changes files. Python 3 with the usual packages for data is there: write a program into a file, or run python -c.
Commands begin in /mnt/data. Files that the user has sent are there, and the user gets what you write there. Each command is a process of its own: what is in files stays, variables and the current folder do not. Nobody answers a command that asks.`

// shell is a message whose model works with commands and files. It is a loop over the model that is run here: each call of the model's that is for the machine is done, and its result is
// what the model is asked with next.
type shell struct {
	s       *server
	c       *call
	in      *input
	model   string // as it is asked for
	session string
	seen    map[string]workspace.Entry // files of the workspace, by path
	count   int                        // calls that were performed
	spent   int64
	usage   model.Usage
}

// isShell says whether a tool is one of the machine's.
func isShell(name string) bool { return name == bashTool || name == editorTool }

// shellSchemas are the tools as they are offered.
func shellSchemas() []model.Tool {
	return []model.Tool{
		{Name: bashTool, Description: "Runs a command in bash and returns what it prints and its exit status.",
			Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","description":"The command."}},"required":["command"],"additionalProperties":false}`)},
		{Name: editorTool, Description: "Views a file or folder, creates a file (or replaces all of it), or replaces a text in a file that is there exactly once.",
			Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace"]},"path":{"type":"string"},` +
				`"view_range":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2,"description":"view: the first and the last line, from 1; -1 is the end."},` +
				`"file_text":{"type":"string","description":"create: the content."},"old_str":{"type":"string","description":"str_replace: the text to replace."},` +
				`"new_str":{"type":"string","description":"str_replace: what to put there."}},"required":["command","path"],"additionalProperties":false}`)},
	}
}

// commands answers a message with the tools of the machine.
func (s *server) commands(c *call, r *request, in *input, session, name string, a *answer) error {
	for _, action := range []auth.Action{auth.SessionsWrite, auth.SessionsExecute} {
		if err := c.who.Require(action); err != nil {
			return err
		}
	}
	m, err := s.Hub.OpenModel(c.Context(), c.who, name)
	switch {
	case err != nil:
		return refused(err, r)
	case !m.Capabilities().Tools:
		return invalid("tools: The model " + m.Name() + " calls no tools, which " + shellTools + " takes. Use code_execution_20260120: its code the model may also write as text.")
	}
	a.id = newID(messagePrefix)
	if name != r.Model {
		a.model = m.Name()
	}
	sh := &shell{s: s, c: c, in: in, model: name, session: session}
	if len(in.files) > 0 {
		if err := sh.place(c.Context()); err != nil {
			return refused(err, r)
		}
	}
	a.container = func() object { return s.shownContainer(c, sh.session) }
	req := model.Request{System: strings.TrimSpace(r.system(in.system) + "\n\n" + shellPrompt), Messages: in.history.messages, Tools: append(shellSchemas(), r.functions...),
		MaxTokens: r.tokens(), Choice: r.choice, Parallel: r.parallel, Temperature: r.Temperature, TopP: r.TopP, Format: r.format, Effort: r.effort}
	_, err = s.pump(c, a, sh.steps(m, req))
	if a.out != nil {
		return nil // there is nobody to tell, or it was told
	}
	return refused(err, r)
}

// place has the session there, with the files of the request in it.
func (sh *shell) place(ctx context.Context) error {
	if sh.session == "" {
		made, err := sh.s.Hub.CreateSession(ctx, sh.c.who, hub.NewSession{Life: containerLife, Idle: shellIdle})
		if err != nil {
			return err
		}
		sh.session = made.ID
	}
	for _, file := range sh.in.files {
		if _, err := sh.s.Hub.PutFile(ctx, sh.c.who, sh.session, file, sh.in.names[file]); err != nil {
			return err
		}
	}
	sh.in.files = nil
	if sh.seen == nil {
		sh.seen = map[string]workspace.Entry{}
		_, err := sh.written(ctx)
		return err
	}
	return nil
}

// said is an answer of the model's.
type said struct {
	text strings.Builder
	end  model.Finish
}

// steps asks the model and performs what it calls, until it has answered, calls what is the client's, or a limit is reached.
func (sh *shell) steps(m model.Model, req model.Request) steps {
	return func(ctx context.Context, _ *call, yield func(step) bool) {
		began := sh.s.Now()
		for {
			got, ok := sh.ask(ctx, m, req, yield)
			if !ok {
				return
			}
			calls := got.end.Calls
			for n := range calls {
				if calls[n].ID == "" {
					calls[n].ID = newID(callPrefix)
				}
			}
			ids := make(chan []string, 1)
			if !yield(step{apply: func(a *answer) (bool, error) {
				all, err := a.settle(calls)
				a.ran = a.ran || slices.ContainsFunc(calls, func(c model.ToolCall) bool { return isShell(c.Name) })
				ids <- all
				return false, err
			}}) {
				return
			}
			var blocks []string
			select {
			case blocks = <-ids:
			case <-ctx.Done():
				return
			}
			results, others, ok := sh.perform(ctx, calls, blocks, yield)
			if !ok {
				return
			}
			reason := stopReason(got.end.Reason)
			switch {
			case len(calls) > 0 && others:
				reason = "tool_use"
			case len(calls) > 0 && (sh.count >= sh.s.Steps || sh.s.Now().Sub(began) >= sh.s.Time || sh.s.Tokens > 0 && sh.spent >= sh.s.Tokens):
				reason = "pause_turn"
			case len(calls) > 0:
				req.Messages = append(slices.Clip(req.Messages), spoken(got, calls), model.Message{Role: model.RoleTool, Content: results})
				req.Choice = model.ToolChoice{} // what has to be called was called
				var err error
				if m, err = sh.s.Hub.OpenModel(ctx, sh.c.who, sh.model); err != nil { // the quota may be used up by now
					yield(step{err: err})
					return
				}
				continue
			}
			yield(step{apply: func(a *answer) (bool, error) { return true, a.finish(reason, sh.usage) }})
			return
		}
	}
}

// ask has the model say one thing, which is passed on as it comes.
func (sh *shell) ask(ctx context.Context, m model.Model, req model.Request, yield func(step) bool) (*said, bool) {
	out := &said{}
	for p, err := range m.Stream(ctx, req) {
		if err != nil {
			yield(step{err: err})
			return nil, false
		}
		switch p := p.(type) {
		case model.Finish:
			out.end = p
			continue
		case model.TextDelta:
			out.text.WriteString(p.Text)
		}
		if !yield(step{apply: func(a *answer) (bool, error) { return false, a.piece(p) }}) {
			return nil, false
		}
	}
	sh.usage = sh.usage.Plus(out.end.Usage)
	sh.spent += out.end.Usage.Total()
	return out, true
}

// spoken is what the model said, as it is sent back to it.
func spoken(s *said, calls []model.ToolCall) model.Message {
	m := model.Message{Role: model.RoleAssistant}
	if text := s.text.String(); strings.TrimSpace(text) != "" {
		m.Content = append(m.Content, model.Text{Text: text})
	}
	for _, call := range calls {
		call.Arguments = model.ArgumentsObject(call.Arguments)
		m.Content = append(m.Content, call)
	}
	return m
}

// perform does the calls that are for the machine, in order, and tells what came of each. Whether there are calls for the client, too, is said.
func (sh *shell) perform(ctx context.Context, calls []model.ToolCall, blocks []string, yield func(step) bool) (results []model.Content, others, ok bool) {
	for n, call := range calls {
		if !isShell(call.Name) {
			others = true
			continue
		}
		sh.count++
		result, told, err := sh.do(ctx, call)
		if ctx.Err() != nil {
			return nil, others, false
		}
		if err != nil {
			yield(step{err: err})
			return nil, others, false
		}
		told.CallID = call.ID
		results = append(results, told)
		id := blocks[n]
		if !yield(step{apply: func(a *answer) (bool, error) {
			return false, a.whole(call.Name+resultKind, object{"tool_use_id": id, "content": result})
		}}) {
			return nil, others, false
		}
	}
	return results, others, true
}

// do performs a call. An error ends the message: the place where it would be done cannot be had.
func (sh *shell) do(ctx context.Context, call model.ToolCall) (result object, told model.ToolResult, err error) {
	if err := sh.place(ctx); err != nil {
		return nil, told, err
	}
	if call.Name == editorTool {
		result, told = sh.edit(ctx, call.Arguments)
		return result, told, nil
	}
	result, told = sh.bash(ctx, call.Arguments)
	return result, told, nil
}

// toolError is the result of a call that came to nothing.
func toolError(tool, code, message string) (object, model.ToolResult) {
	o := object{"type": tool + resultKind + "_error", "error_code": code}
	if tool == editorTool {
		o["error_message"] = message
	}
	return o, model.ToolResult{Text: fmt.Sprintf("Error (%s): %s", code, message), IsError: true}
}

// toolFault says in the tool's words what went wrong.
func toolFault(tool string, err error) (object, model.ToolResult) {
	p, _ := problem.Public(err)
	code := "unavailable"
	switch {
	case problem.Has(p, problem.FileNotFound) && tool == editorTool:
		code = "file_not_found"
	case p.Kind == problem.Invalid, p.Kind == problem.NotFound, p.Kind == problem.Denied:
		code = "invalid_tool_input"
	case status429(p):
		code = "too_many_requests"
	case p.Kind == problem.Internal:
		return toolError(tool, code, "Internal server error")
	}
	return toolError(tool, code, sentence(p))
}

// status429 says whether a later call may be served.
func status429(p *problem.Error) bool { return faultOf(p).kind == "rate_limit_error" }

func stopReason(r model.FinishReason) string {
	switch r {
	case model.FinishCalls:
		return "tool_use"
	case model.FinishLength:
		return "max_tokens"
	case model.FinishFilter:
		return "refusal"
	}
	return "end_turn"
}
