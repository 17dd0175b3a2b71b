package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

const (
	// stopPatience is how long a stopped answer may take to say so, before it is left to itself.
	stopPatience = 5 * time.Second
	// listedFiles bounds what is listed of a workspace.
	listedFiles = 10_000
)

// remotely is locally on a server.
func (t *talking) remotely(i *interruption, inputs []input, out *outFolder, use func(talker) (int, error)) (code int, err error) {
	if flag := t.ownFlag(); flag != "" {
		return 0, problem.New(problem.Usage, flag+" is for this machine only; a server uses its own settings").
			WithHint("leave it out, or ask on this machine: --server ''")
	}
	defer out.close()
	c := client.New(t.base, t.key)
	defer c.Close()
	r := &remoteTalker{p: t.p, client: c, model: t.asked(), check: t.Check, askFirst: t.AskFirst, offers: t.offered(), tries: t.tries(), asks: &callAsker{toolAsker: t.asker(t.p), approve: approving(c)}}
	if t.MaxSteps != t.p.Config.Turn.MaxSteps {
		r.steps = t.MaxSteps
	}
	if t.Continue {
		if err := r.goOn(i.soft, t); err != nil {
			return 0, err
		}
	}
	if r.session == "" {
		if err := r.begin(i.soft, t); err != nil {
			return 0, err
		}
	}
	if err := sendInputs(i.soft, c, r.session, inputs, t.p.signs(t.Quiet)); err != nil {
		return 0, err
	}
	if err := t.set(i.soft, r.Runner(), t.p.Getenv); err != nil {
		return 0, err
	}
	out.live = t.p.signs(t.Quiet)
	return use(r)
}

// ownFlag is the first flag that was given and that no server asks for, or "".
func (t *talking) ownFlag() string {
	usual := t.p.Config
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--no-history", t.NoHistory}, {"--undoable", t.Undoable}, {"--no-install", t.NoInstall}, {"--offline", t.Offline}, {"--allow-build", t.AllowBuild}, {"--credential", len(t.Credential) > 0},
		{"--timeout", t.Timeout != usual.Sandbox.Timeout}, {"--max-output", t.MaxOutput != usual.Sandbox.MaxOutput}, {"--engine", t.Engine != usual.Sandbox.Engine},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// remoteTalker asks a server.
type remoteTalker struct {
	offers       offered
	asks         *callAsker
	p            *Program
	client       *client.Client
	model        string
	session      string
	conversation string
	parent       string // to go on from; "": the conversation's last turn
	steps        int    // 0: the server's limit
	check        bool
	tries        *api.Tries // of each question; nil: one
	last         string     // the last turn

	askFirst bool     // each program waits for the user's word
	decide   decision // nil: nobody can be asked here
}

var _ talker = (*remoteTalker)(nil)

// begin finds the session with the name that was given, or makes one.
func (r *remoteTalker) begin(ctx context.Context, t *talking) (err error) {
	r.session, err = sessionFor(ctx, r.client, t.sessionFlags, t.sandboxFlags, t.networkFlags, 0, t.p.signs(t.Quiet))
	return err
}

// namedSession returns the id of a server's session with that name, or "" where there is none.
func namedSession(ctx context.Context, c *client.Client, name string) (id string, err error) {
	for s, err := range c.Sessions(ctx, client.SessionFilter{Name: name}) {
		if err != nil {
			return "", err
		}
		if s.Name == name {
			return s.ID, nil
		}
	}
	return "", nil
}

// goOn finds the conversation to go on with, and its session.
func (r *remoteTalker) goOn(ctx context.Context, t *talking) error {
	found, err := find(ctx, remotePast{r.client}, t.goOnWith)
	if err != nil {
		return err
	}
	if found.execution != nil {
		return problem.New(problem.Usage, "an execution is not a conversation").WithHint("`cove history` lists conversations")
	}
	if t.goOnWith != "" && t.goOnWith == found.turns[0].ID {
		r.parent = t.goOnWith
	}
	r.conversation, r.session = found.conversation.ID, found.conversation.Session
	if always := string(hub.ApprovalAlways); r.askFirst {
		if _, err := r.client.ChangeConversation(ctx, r.conversation, api.ConversationChange{Approval: &always}); err != nil {
			return err
		}
	}
	if !t.Quiet {
		notef(r.p.Err, "going on with %q (%s)", oneLine(found.conversation.Title), r.conversation)
	}
	return nil
}

// sendInputs puts files of the user's into the workspace of a server's session.
func sendInputs(ctx context.Context, c *client.Client, session string, inputs []input, live *terminal.Live) error {
	t := newTransfer("sending", inputs, live)
	defer live.Over()
	for _, in := range inputs {
		if err := sendInput(ctx, c, session, in, t.next(in)); err != nil {
			return err
		}
	}
	return nil
}

func sendInput(ctx context.Context, c *client.Client, session string, in input, told func(int64)) error {
	f, err := os.Open(in.host)
	if err != nil {
		return unreadable(in.host, err)
	}
	defer func() { _ = f.Close() }()
	if _, err = c.Upload(ctx, session, filepath.ToSlash(in.name), &counting{from: f, told: told}); err != nil {
		return fmt.Errorf("send %s to the server: %w", in.host, err)
	}
	return nil
}

// counting tells how much was read.
type counting struct {
	from io.Reader
	n    int64
	told func(int64)
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.n += int64(n)
	c.told(c.n)
	return n, err
}

func (r *remoteTalker) Ask(ctx context.Context, prompt string) iter.Seq2[loop.Event, error] {
	return func(yield func(loop.Event, error) bool) {
		// When ctx ends the turn is stopped on the server, which then says how it ended.
		following, leave := context.WithCancelCause(context.WithoutCancel(ctx))
		defer leave(nil)
		abandon := context.AfterFunc(ctx, func() { leave(errStopped()) })
		n := api.NewTurn{Prompt: prompt, Session: r.session, Parent: r.parent, Model: r.model, MaxCalls: r.steps, Check: r.check, Servers: r.offers.tools, AskBefore: r.offers.ask, Kernels: r.offers.kernels, Tries: r.tries, Source: "cli"}
		if r.askFirst && r.conversation == "" {
			n.Approval = string(hub.ApprovalAlways)
		}
		turn, events, err := r.client.Ask(following, r.conversation, n)
		if err != nil {
			yield(nil, err)
			return
		}
		r.conversation, r.parent, r.last = turn.Conversation, "", turn.ID
		if abandon() {
			defer context.AfterFunc(ctx, func() { r.stop(turn.ID, leave) })()
		} else {
			r.stop(turn.ID, leave)
		}
		for e, err := range events {
			if _, gap := errors.AsType[*client.Gap](err); gap {
				e, err = loop.Notice{Text: "some output may be missing here"}, nil
			}
			r.asks.hear(following, e)
			goesOn := yield(e, err)
			if asked, ok := e.(loop.Approval); ok && goesOn && r.decide != nil {
				if err := r.word(ctx, turn.ID, asked); err != nil {
					goesOn = false
					yield(nil, err)
				}
			}
			if !goesOn {
				r.stop(turn.ID, leave)
				return
			}
		}
	}
}

// word has the user say whether code may run, and tells the server.
func (r *remoteTalker) word(ctx context.Context, turn string, asked loop.Approval) error {
	d, err := r.decide(ctx, asked)
	if err != nil {
		return err
	}
	_, err = r.client.ApproveTurn(ctx, turn, api.Word{Step: asked.Step, Run: d.Run, Code: d.Code, Note: d.Note})
	if problem.Has(err, problem.TurnNotWaiting) {
		notef(r.p.Err, "that was decided already, in another place or because nobody said it in time")
		return nil
	}
	return err
}

// approving tells a server what the user says about a call of a tool.
func approving(c *client.Client) func(ctx context.Context, execution string, number int, w tool.Word) error {
	return func(ctx context.Context, execution string, number int, w tool.Word) error {
		return c.ApproveCall(ctx, execution, number, api.CallWord{Run: w.Run, Note: w.Note})
	}
}

func (r *remoteTalker) stop(turn string, leave context.CancelCauseFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if _, err := r.client.CancelTurn(ctx, turn); err != nil {
		leave(errStopped())
		return
	}
	time.AfterFunc(stopPatience, func() { leave(errStopped()) })
}

func errStopped() error {
	return problem.New(problem.GivenUp, "the question was stopped before it was answered")
}

func (r *remoteTalker) Done()                             {}
func (r *remoteTalker) Guard(context.Context) func() bool { return func() bool { return true } }
func (r *remoteTalker) Renew()                            { r.conversation, r.parent, r.last = "", "", "" }
func (r *remoteTalker) Model() string                     { return r.model }
func (r *remoteTalker) Runner() runner {
	return &remoteRun{client: r.client, session: r.session, err: r.p.Err}
}
func (r *remoteTalker) Decides(decide decision) { r.decide = decide }

func (r *remoteTalker) Models(ctx context.Context) ([]api.Model, error) {
	return r.client.Models(ctx)
}

func (r *remoteTalker) Back(ctx context.Context) (string, error) {
	at := cmp.Or(r.parent, r.last)
	if at == "" {
		return "", nothingAsked()
	}
	turn, err := r.client.Turn(ctx, at)
	if err != nil {
		return "", err
	}
	if r.parent, r.last = turn.Parent, turn.Parent; turn.Parent == "" {
		r.Renew()
	}
	return turn.Prompt, nil
}

func (r *remoteTalker) Put(ctx context.Context, inputs []input) error {
	return sendInputs(ctx, r.client, r.session, inputs, r.p.live)
}

func (r *remoteTalker) Spent(ctx context.Context) (model.Usage, model.Cost) {
	turn, err := r.client.Turn(ctx, r.last)
	if err != nil {
		return model.Usage{}, model.Cost{} // the answer is there all the same
	}
	u := turnOf(turn).Usage
	if turn.Cost == nil {
		return u, model.Cost{}
	}
	return u, model.Cost{Amount: turn.Cost.Amount, Currency: turn.Cost.Currency}
}

func (r *remoteTalker) Use(_ context.Context, name string) (string, error) {
	r.model = name
	return name, nil
}

func (r *remoteTalker) Fetch(ctx context.Context, path string, w io.Writer) error {
	_, err := r.client.Download(ctx, r.session, path, w)
	return err
}

func (r *remoteTalker) List(ctx context.Context) ([]kernel.File, error) {
	var out []kernel.File
	for folders := []string{""}; len(folders) > 0 && len(out) < listedFiles; folders = folders[1:] {
		l, err := r.client.List(ctx, r.session, folders[0])
		if err != nil {
			return nil, err
		}
		for _, e := range l.Items {
			if e.Folder {
				folders = append(folders, e.Path)
				continue
			}
			out = append(out, kernel.File{Path: e.Path, Size: e.Size})
		}
	}
	return out, nil
}

func (p *Program) remotePast(base, key string) (past, error) {
	return remotePast{client.New(base, key)}, nil
}

// remotePast is the history of a server.
type remotePast struct{ client *client.Client }

func (r remotePast) close() error { r.client.Close(); return nil }

// Delete implements past.
func (r remotePast) Delete(ctx context.Context, conversation string) error {
	return r.client.DeleteConversation(ctx, conversation)
}

func (r remotePast) Conversations(ctx context.Context) iter.Seq2[hub.Conversation, error] {
	return mapped(r.client.Conversations(ctx, client.ConversationFilter{}), conversationOf)
}

func (r remotePast) Conversation(ctx context.Context, id string) (hub.Conversation, error) {
	c, err := r.client.Conversation(ctx, id)
	return conversationOf(c), err
}

func (r remotePast) Turn(ctx context.Context, id string) (hub.Turn, error) {
	t, err := r.client.Turn(ctx, id)
	return turnOf(t), err
}

func (r remotePast) Turns(ctx context.Context, conversation string) ([]hub.Turn, error) {
	return collected(mapped(r.client.Turns(ctx, conversation), turnOf))
}

// NewestTurn implements records.
func (r remotePast) NewestTurn(ctx context.Context, conversation string) (hub.Turn, bool, error) {
	t, found, err := r.client.NewestTurn(ctx, conversation)
	return turnOf(t), found, err
}

func (r remotePast) Rated(ctx context.Context) iter.Seq2[api.RatedTurn, error] {
	return r.client.RatedTurns(ctx)
}

func (r remotePast) Execution(ctx context.Context, id string) (hub.Execution, error) {
	x, err := r.client.Execution(ctx, id)
	return hub.Execution{ID: x.ID, Session: x.Session, Kernel: x.Kernel, Turn: x.Turn, Step: x.Step, Code: x.Code, State: x.State, ExitCode: x.ExitCode, Message: x.Message,
		Created: x.Created, Wall: time.Duration(x.Wall * float64(time.Second))}, err
}

func (r remotePast) TurnEvents(ctx context.Context, t hub.Turn) ([]loop.Event, error) {
	if !t.State.Final() {
		return nil, nil // to follow it would be to wait for its end
	}
	var out []loop.Event
	for e, err := range r.client.FollowTurn(ctx, t.ID, 0) {
		if _, gap := errors.AsType[*client.Gap](err); gap {
			continue
		}
		if err != nil {
			return out, unlessFailure(ctx, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// unlessFailure makes nothing of the problem that ended a turn long ago: it is in the turn itself.
func unlessFailure(ctx context.Context, err error) error {
	if p := problem.Of(err); ctx.Err() == nil && p.Kind != problem.NotFound && !problem.Has(p, problem.ServerUnreachable, problem.ServerUnexpected, problem.Unauthenticated) {
		return nil
	}
	return err
}

func (r remotePast) ExecutionEvents(ctx context.Context, x hub.Execution) ([]hub.Event, error) {
	if !x.State.Final() {
		return nil, nil
	}
	var out []hub.Event
	for e, err := range r.client.Follow(ctx, x.ID, 0) {
		if _, gap := errors.AsType[*client.Gap](err); gap {
			continue
		}
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (r remotePast) Search(ctx context.Context, query string) iter.Seq2[hub.Found, error] {
	return mapped(r.client.Search(ctx, query), func(f api.Found) hub.Found { return hub.Found(f) })
}

func conversationOf(c api.Conversation) hub.Conversation {
	return hub.Conversation{ID: c.ID, User: c.User, Session: c.Session, Title: c.Title, Model: c.Model, Metadata: c.Metadata, Created: c.Created, Used: c.Used, Turns: c.Turns, Source: c.Source}
}

func turnOf(t api.Turn) hub.Turn {
	out := hub.Turn{ID: t.ID, User: t.User, Key: t.Key, Conversation: t.Conversation, Parent: t.Parent, Session: t.Session, State: t.State, Model: t.Model, Prompt: t.Prompt,
		Answer: t.Answer, Reason: t.Reason, Problem: t.Problem, Steps: t.Steps, Created: t.Created, Usage: model.Usage{InputTokens: t.Usage.Input, OutputTokens: t.Usage.Output,
			CachedTokens: t.Usage.Cached, ReasoningTokens: t.Usage.Reasoning, Estimated: t.Usage.Estimated}}
	if t.Finished != nil {
		out.Finished = *t.Finished
	}
	if t.Tries != nil {
		out.Tries = &hub.TurnTries{Of: t.Tries.Of}
	}
	for _, r := range t.Reruns {
		if out.Marks == nil {
			out.Marks = &hub.TurnMarks{}
		}
		out.Marks.Reruns = append(out.Marks.Reruns, hub.Rerun{Step: r.Step, Execution: r.Execution, Session: r.Session, At: r.At})
	}
	return out
}
