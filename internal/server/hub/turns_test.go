package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// line is one answer of a model.
type line struct {
	parts []model.Part
	err   error
	hang  bool   // until the request is given up
	first func() // what happens before it; may be nil
}

// voice is a model that says its lines in order, and all models of a server.
type voice struct {
	t        *testing.T
	mu       sync.Mutex
	lines    []line
	requests []model.Request
}

func (v *voice) Name() string                     { return "test/voice" }
func (v *voice) Capabilities() model.Capabilities { return model.Capabilities{Tools: true} }

func (v *voice) Open(_ context.Context, name string) (model.Model, error) {
	if name != "" && name != v.Name() {
		return nil, problem.New(problem.ModelUnknown, "there is no model "+name)
	}
	return v, nil
}

func (v *voice) List(context.Context) ([]hub.ModelInfo, error) {
	return []hub.ModelInfo{{ID: v.Name(), Provider: "test", Default: true}}, nil
}

func (v *voice) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		v.mu.Lock()
		n := len(v.requests)
		v.requests = append(v.requests, req)
		if n >= len(v.lines) {
			v.mu.Unlock()
			v.t.Errorf("the model was asked %d times", n+1)
			yield(nil, errors.New("nothing to say"))
			return
		}
		l := v.lines[n]
		v.mu.Unlock()
		if l.first != nil {
			l.first()
		}
		for _, p := range l.parts {
			if !yield(p, nil) {
				return
			}
		}
		if l.hang {
			<-ctx.Done()
			yield(nil, ctx.Err())
		} else if l.err != nil {
			yield(nil, l.err)
		}
	}
}

// asked returns the nth request's messages as text.
func (v *voice) asked(n int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n >= len(v.requests) {
		return ""
	}
	var out []string
	for _, m := range v.requests[n].Messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.Text:
				out = append(out, c.Text)
			case model.ToolCall:
				out = append(out, c.Name+c.Arguments)
			case model.ToolResult:
				out = append(out, c.Text)
			}
		}
	}
	return strings.Join(out, "|")
}

func words(text string) line {
	l := line{}
	for word := range strings.FieldsSeq(text) {
		l.parts = append(l.parts, model.TextDelta{Text: word + " "})
	}
	l.parts = append(l.parts, model.Finish{Reason: model.FinishStop, Usage: model.Usage{InputTokens: 10, OutputTokens: 1}})
	return l
}

func calls(calls ...model.ToolCall) line {
	l := line{}
	for n, c := range calls {
		l.parts = append(l.parts, model.CallDelta{Index: n, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	l.parts = append(l.parts, model.Finish{Reason: model.FinishCalls, Calls: calls, Usage: model.Usage{InputTokens: 10, OutputTokens: 1}})
	return l
}

func python(id, code string) model.ToolCall {
	text, _ := json.Marshal(map[string]string{"code": code})
	return model.ToolCall{ID: id, Name: "python", Arguments: string(text)}
}

func newTalk(t *testing.T, lines ...line) (*life, *voice, auth.Principal) {
	t.Helper()
	v := &voice{t: t, lines: lines}
	return newLife(t, func(o *hub.Options) { o.Models = v }), v, someone(auth.LocalProject)
}

func input(text string) []model.Message {
	return []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: text}}}}
}

func (l *life) begin(who auth.Principal, n hub.NewTurn) hub.Turn {
	l.t.Helper()
	turn, err := l.StartTurn(l.t.Context(), who, n)
	if err != nil {
		l.t.Fatal(err)
	}
	return turn
}

// hear follows a turn to its end.
func (l *life) hear(who auth.Principal, id string) (events []hub.Numbered[hub.TurnEvent], err error) {
	l.t.Helper()
	f, err := l.FollowTurn(l.t.Context(), who, id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for n, err := range f {
		if err != nil {
			return events, err
		}
		events = append(events, n)
	}
	return events, nil
}

// ask runs a turn to its answer and returns its record.
func (l *life) ask(who auth.Principal, n hub.NewTurn) hub.Turn {
	l.t.Helper()
	began := l.begin(who, n)
	events, err := l.hear(who, began.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, ok := events[len(events)-1].Event.(loop.Answer); !ok {
		l.t.Errorf("the turn ends with %#v", events[len(events)-1])
	}
	turn, err := l.Turn(l.t.Context(), who, began.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	return turn
}

func TestAConversation(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, calls(python("c1", "say hello\nremember one")), words("It said hello."), calls(python("c2", "recall")), words("One."), words("A branch."))
	first := l.ask(who, hub.NewTurn{Input: input("Please say hello to everybody who is listening here today, and to the others"), Source: "test"})
	if first.State != hub.TurnCompleted || first.Answer != "It said hello." || first.Steps != 1 || first.Usage != (model.Usage{InputTokens: 20, OutputTokens: 2}) || first.Session == "" {
		t.Fatalf("%+v", first)
	}
	c, err := l.Conversation(t.Context(), who, first.Conversation)
	if err != nil || c.Session != first.Session || c.Turns != 1 || c.Model != "test/voice" || c.Source != "test" ||
		c.Title != "Please say hello to everybody who is listening here today,…" {
		t.Errorf("%+v %v", c, err)
	}
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("And what do you remember?")})
	if second.Parent != first.ID || second.Session != first.Session || second.Answer != "One." {
		t.Errorf("%+v", second)
	}
	if got := v.asked(3); !strings.Contains(got, "to everybody") || !strings.Contains(got, "It said hello.") || !strings.HasSuffix(got, "|one") {
		t.Errorf("the model was told %s", got)
	}
	branch := l.ask(who, hub.NewTurn{Parent: first.ID, Input: input("Another question")})
	if got := v.asked(4); branch.Conversation != first.Conversation || strings.Contains(got, "remember?") || !strings.Contains(got, "It said hello.") {
		t.Errorf("the branch %+v begins from %s", branch, got)
	}
	line, err := l.Branch(t.Context(), who, branch.ID)
	if err != nil || len(line) != 2 || line[0].ID != first.ID {
		t.Errorf("%+v %v", line, err)
	}
	all, err := l.Turns(t.Context(), who, first.Conversation, hub.Page{Oldest: true})
	if err != nil || len(all.Items) != 3 || all.Items[0].ID != first.ID {
		t.Errorf("%+v %v", all, err)
	}
	found, err := l.Search(t.Context(), who, "remember?", hub.Page{})
	if err != nil || len(found.Items) == 0 {
		t.Errorf("%+v %v", found, err)
	}
}

func TestTheStepsOfATurnAreExecutions(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a"), python("c2", "say b\ncount 2")), words("Done."))
	turn := l.ask(who, hub.NewTurn{Input: input("go")})
	steps, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Turn: turn.ID}, hub.Page{Oldest: true})
	if err != nil || len(steps.Items) != 2 {
		t.Fatalf("%+v %v", steps, err)
	}
	for n, want := range []string{"[a]", "[b 0 1]"} {
		e := steps.Items[n]
		if e.Step != n+1 || e.State != hub.ExecutionState(kernel.OutcomeOK) || e.Session != turn.Session {
			t.Errorf("step %d is %+v", n+1, e)
		}
		if got, done := l.wait(who, e.ID); fmt.Sprint(got) != want || done.Outcome != kernel.OutcomeOK {
			t.Errorf("step %d printed %v and ended with %+v", n+1, got, done)
		}
	}
	events, err := l.hear(who, turn.ID)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for n, e := range events {
		if e.Seq != int64(n+1) || e.Gap || e.At.IsZero() {
			t.Errorf("event %d is %+v", n+1, e)
		}
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", e.Event), "loop."))
	}
	want := "Code Code Start Output Output Start Output Output Output Output Text Answer"
	if got := strings.Join(kinds, " "); got != want || turn.Events != int64(len(events)) {
		t.Errorf("%d events: %s\nwant %s", turn.Events, got, want)
	}
}

func TestFunctionsOfTheClient(t *testing.T) {
	t.Parallel()
	asked := model.ToolCall{ID: "c2", Name: "look", Arguments: `{"at":"sky"}`}
	l, v, who := newTalk(t, calls(python("c1", "say a"), asked), words("Blue."))
	tools := []model.Tool{{Name: "look"}}
	first := l.ask(who, hub.NewTurn{Input: input("what colour?"), Tools: tools})
	if first.State != hub.TurnWaiting || first.Reason != string(loop.ClientCalls) || cmp.Diff([]model.ToolCall{asked}, first.Calls) != "" {
		t.Fatalf("%+v", first)
	}
	second := l.ask(who, hub.NewTurn{Parent: first.ID, Tools: tools, Prompt: "(the sky)",
		Input: []model.Message{{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "c2", Text: "it is blue"}}}}})
	if second.State != hub.TurnCompleted || second.Answer != "Blue." || second.Prompt != "(the sky)" || !strings.HasSuffix(v.asked(1), "|a|it is blue") {
		t.Errorf("%+v after %s", second, v.asked(1))
	}
}

func TestATurnIsCancelledInTheMiddleOfItsCode(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, calls(python("c1", "say a\nwait never")), words("Again."))
	turn := l.begin(who, hub.NewTurn{Input: input("go")})
	_, err := l.StartTurn(t.Context(), who, hub.NewTurn{Conversation: turn.Conversation, Input: input("too early")})
	fails(t, err, "turn_running")
	_, err = l.StartTurn(t.Context(), who, hub.NewTurn{Parent: turn.ID, Input: input("too early")})
	fails(t, err, "turn_running")
	fails(t, l.DeleteTurn(t.Context(), who, turn.ID), "turn_running")
	f, err := l.FollowTurn(t.Context(), who, turn.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var end error
	for n, err := range f {
		if end = err; err != nil {
			break
		}
		if out, ok := n.Event.(loop.Output); ok {
			if _, printed := out.Event.(kernel.Stream); printed {
				if _, err := l.CancelTurn(t.Context(), who, turn.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	fails(t, end, "canceled")
	got, err := l.Turn(t.Context(), who, turn.ID)
	if err != nil || got.State != hub.TurnCanceled || got.Steps != 1 || !strings.Contains(string(got.Problem), `"canceled"`) {
		t.Errorf("%+v %v", got, err)
	}
	steps, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Turn: turn.ID}, hub.Page{})
	if err != nil || len(steps.Items) != 1 || steps.Items[0].State != hub.ExecutionState(kernel.OutcomeInterrupted) {
		t.Errorf("%+v %v", steps, err)
	}
	if _, err := l.CancelTurn(t.Context(), who, turn.ID); err != nil {
		t.Errorf("once more: %v", err)
	}
	if next := l.ask(who, hub.NewTurn{Conversation: turn.Conversation, Input: input("and now?")}); next.Parent != turn.ID || !strings.Contains(v.asked(1), "stopped before an answer") {
		t.Errorf("%+v after %s", next, v.asked(1))
	}
}

func TestFollowersOfATurnComeAndGo(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "count 40\nwait door\ncount 40")), words(strings.Repeat("word ", 40)))
	turn := l.begin(who, hub.NewTurn{Input: input("go")})
	seen, after, ended := []string{}, int64(0), false
	for !ended {
		f, err := l.FollowTurn(t.Context(), who, turn.ID, after)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for n, err := range f {
			if err != nil {
				t.Fatal(err)
			}
			if n.Gap || n.Seq != after+1 {
				t.Fatalf("after %d comes %+v", after, n)
			}
			after = n.Seq
			seen = append(seen, fmt.Sprintf("%#v", n.Event))
			if after == 30 {
				l.toys.open("door")
			}
			if _, ended = n.Event.(loop.Answer); ended {
				break
			}
			if read++; read == 7 {
				break
			}
		}
	}
	events, err := l.hear(who, turn.ID)
	if err != nil || len(events) != len(seen) {
		t.Fatalf("%d events at once, %d in pieces, %v", len(events), len(seen), err)
	}
	late := 0
	f, err := l.FollowTurn(t.Context(), who, turn.ID, after-3)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range f {
		if err != nil {
			t.Fatal(err)
		}
		late++
	}
	if late != 3 {
		t.Errorf("of the last three events came %d", late)
	}
}

func TestAModelThatFails(t *testing.T) {
	t.Parallel()
	down := problem.New(problem.ModelUnavailable, "the provider of the model failed to answer").WithHint("later")
	l, _, who := newTalk(t, calls(python("c1", "say a")), line{err: down}, words("Better."))
	turn := l.begin(who, hub.NewTurn{Input: input("go")})
	_, err := l.hear(who, turn.ID)
	fails(t, err, "model_unavailable")
	got, err := l.Turn(t.Context(), who, turn.ID)
	var p map[string]string
	if err != nil || json.Unmarshal(got.Problem, &p) != nil || got.State != hub.TurnFailed || got.Usage.InputTokens != 10 || len(got.Messages) != 4 {
		t.Fatalf("%+v %v", got, err)
	}
	if diff := cmp.Diff(map[string]string{"kind": "unavailable", "code": "model_unavailable", "message": "the provider of the model failed to answer", "hint": "later"}, p); diff != "" {
		t.Error(diff)
	}
	_, err = l.hear(who, turn.ID)
	fails(t, err, "model_unavailable")
	l.ask(who, hub.NewTurn{Conversation: turn.Conversation, Input: input("again")})
}

func TestOperatorsSettingsAreNotToldToClients(t *testing.T) {
	t.Parallel()
	refused := problem.New(problem.ModelAuth, "10.0.0.7:8000 refused the key (401): no key sk-secret").WithHint("check OPENAI_BASE_URL (now http://10.0.0.7/v1)")
	full := fmt.Errorf("write %s: %w", "/var/lib/secret", syscall.ENOSPC)
	l, _, who := newTalk(t, line{err: refused}, line{err: full})
	for _, code := range []string{"model_auth", "disk_full"} {
		turn := l.begin(who, hub.NewTurn{Input: input("go")})
		_, err := l.hear(who, turn.ID)
		fails(t, err, code)
		turn, rerr := l.Turn(t.Context(), who, turn.ID)
		if rerr != nil {
			t.Fatal(rerr)
		}
		p := problem.Of(err)
		if told := p.Message + p.Hint + string(turn.Problem); strings.Contains(told, "10.0.0.7") || strings.Contains(told, "secret") || !strings.Contains(p.Hint, "operator") {
			t.Errorf("clients are told %s", told)
		}
	}
}

// TestAFullDiskIsSaid has sessions that find no room on the server's disk.
func TestAFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t)
	s := l.session(who)
	if _, err := l.PauseSession(t.Context(), who, s.ID); err != nil {
		t.Fatal(err)
	}
	l.toys.mu.Lock()
	l.toys.refuse = &os.PathError{Op: "mkdir", Path: "/var/lib/secret", Err: syscall.ENOSPC}
	l.toys.mu.Unlock()
	_, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello"})
	if p, _ := problem.Public(err); p == nil || httpstatus.Of(p) != 507 || p.Hint == "" {
		t.Errorf("an execution fails with %+v", p)
	}
	_, err = l.hear(who, l.begin(who, hub.NewTurn{Session: s.ID, Input: input("go")}).ID)
	fails(t, err, "disk_full")
}

func TestTurnsThatCannotBegin(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t)
	start := func(change func(*auth.Principal, *hub.NewTurn)) error {
		who, n := who, hub.NewTurn{Input: input("go")}
		change(&who, &n)
		_, err := l.StartTurn(t.Context(), who, n)
		return err
	}
	for code, change := range map[string]func(*auth.Principal, *hub.NewTurn){
		"forbidden":              func(who *auth.Principal, _ *hub.NewTurn) { who.Scopes = []auth.Action{auth.ConversationsWrite} },
		"model_unknown":          func(_ *auth.Principal, n *hub.NewTurn) { n.Model = "other" },
		"tool_name_taken":        func(_ *auth.Principal, n *hub.NewTurn) { n.Tools = []model.Tool{{Name: "python"}} },
		"input_empty":            func(_ *auth.Principal, n *hub.NewTurn) { n.Input = nil },
		"conversation_not_found": func(_ *auth.Principal, n *hub.NewTurn) { n.Conversation = "cnv_x" },
		"turn_not_found":         func(_ *auth.Principal, n *hub.NewTurn) { n.Parent = "trn_x" },
		"session_not_found":      func(_ *auth.Principal, n *hub.NewTurn) { n.Session = "ses_x" },
		"file_not_found":         func(_ *auth.Principal, n *hub.NewTurn) { n.Files = []string{"fil_x"} },
		"turn_invalid":           func(_ *auth.Principal, n *hub.NewTurn) { n.Parent, n.History = "trn_x", input("x") },
	} {
		fails(t, start(change), code)
	}
	left, err := l.Conversations(t.Context(), who, hub.ConversationFilter{}, hub.Page{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("conversations of turns that did not begin: %+v %v", left, err)
	}
}

func TestOthersHearNothing(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, words("Secret."))
	turn := l.ask(who, hub.NewTurn{Input: input("go"), NoPython: true})
	if turn.Session != "" {
		t.Errorf("a turn without Python has the session %s", turn.Session)
	}
	other, ctx := someone("prj_other"), t.Context()
	for name, call := range map[string]func() error{
		"turn":   func() error { _, err := l.Turn(ctx, other, turn.ID); return err },
		"branch": func() error { _, err := l.Branch(ctx, other, turn.ID); return err },
		"cancel": func() error { _, err := l.CancelTurn(ctx, other, turn.ID); return err },
		"delete": func() error { return l.DeleteTurn(ctx, other, turn.ID) },
		"follow": func() error { _, err := l.FollowTurn(ctx, other, turn.ID, 0); return err },
		"note":   func() error { return l.SetForeign(ctx, other, turn.ID, json.RawMessage(`{}`)) },
		"parent": func() error {
			_, err := l.StartTurn(ctx, other, hub.NewTurn{Parent: turn.ID, Input: input("x")})
			return err
		},
	} {
		if err := call(); problem.Of(err) == nil || problem.Of(err).Code != "turn_not_found" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range map[string]func() error{
		"conversation": func() error { _, err := l.Conversation(ctx, other, turn.Conversation); return err },
		"turns":        func() error { _, err := l.Turns(ctx, other, turn.Conversation, hub.Page{Oldest: true}); return err },
		"change": func() error {
			_, err := l.ChangeConversation(ctx, other, turn.Conversation, hub.ConversationChange{})
			return err
		},
		"delete": func() error { return l.DeleteConversation(ctx, other, turn.Conversation) },
	} {
		if err := call(); problem.Of(err) == nil || problem.Of(err).Code != "conversation_not_found" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.SetForeign(ctx, who, turn.ID, json.RawMessage(`{"id":"resp_1"}`)); err != nil {
		t.Error(err)
	}
	if got, err := l.Turn(ctx, who, turn.ID); err != nil || string(got.Foreign) != `{"id":"resp_1"}` {
		t.Errorf("%s %v", got.Foreign, err)
	}
}

func TestAServerThatWasKilledInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a\nwait never")), line{hang: true})
	turn := l.begin(who, hub.NewTurn{Input: input("go")})
	stored(t, l, turn.ID, 3) // code, start and what was printed; the other turn comes after, as its line does
	hidden := l.begin(who, hub.NewTurn{Input: input("secret"), Hidden: true, NoPython: true})
	n := l.killed()
	got, err := n.Turn(t.Context(), who, turn.ID)
	if err != nil || got.State != hub.TurnLost || !strings.Contains(string(got.Problem), "turn_lost") || got.Events <= 3 {
		t.Errorf("%+v %v", got, err)
	}
	heard, err := n.hear(who, turn.ID)
	fails(t, err, "turn_lost")
	if !slices.ContainsFunc(heard, func(e hub.Numbered[hub.TurnEvent]) bool { return e.Gap }) {
		t.Errorf("what was lost is not told: %+v", heard)
	}
	steps, err := n.Executions(t.Context(), who, hub.ExecutionFilter{Turn: turn.ID}, hub.Page{})
	if err != nil || len(steps.Items) != 1 || steps.Items[0].State != hub.ExecutionLost {
		t.Fatalf("%+v %v", steps, err)
	}
	if printed, done := n.wait(who, steps.Items[0].ID); fmt.Sprint(printed) != "[a]" || string(done.Outcome) != string(hub.ExecutionLost) {
		t.Errorf("%v %+v", printed, done)
	}
	if _, err := n.Turn(t.Context(), who, hidden.ID); problem.Of(err) == nil || problem.Of(err).Code != "turn_not_found" {
		t.Errorf("the hidden turn is still there: %v", err)
	}
	if _, err := n.Conversation(t.Context(), who, hidden.Conversation); problem.Of(err) == nil {
		t.Error("the conversation of the hidden turn is still there")
	}
}

func TestHiddenTurns(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say whisper")), words("Hush."))
	turn := l.ask(who, hub.NewTurn{Input: input("secretly"), Hidden: true, Foreign: json.RawMessage(`{"a":1}`)})
	if turn.State != hub.TurnCompleted || turn.Answer != "Hush." || string(turn.Foreign) != `{"a":1}` {
		t.Fatalf("%+v", turn)
	}
	if err := l.SetForeign(t.Context(), who, turn.ID, json.RawMessage(`{"a":2}`)); err != nil {
		t.Fatal(err)
	}
	if again, err := l.Turn(t.Context(), who, turn.ID); err != nil || string(again.Foreign) != `{"a":2}` {
		t.Errorf("%+v %v", again, err)
	}
	if c, err := l.Conversation(t.Context(), who, turn.Conversation); err != nil || c.Title != "" {
		t.Errorf("%+v %v", c, err)
	}
	_, err := l.StartTurn(t.Context(), who, hub.NewTurn{Parent: turn.ID, Input: input("go on")})
	fails(t, err, "turn_not_found")
	if err := l.DeleteTurn(t.Context(), who, turn.ID); err != nil {
		t.Fatal(err)
	}
	_, err = l.Turn(t.Context(), who, turn.ID)
	fails(t, err, "turn_not_found")
	_, err = l.Conversation(t.Context(), who, turn.Conversation)
	fails(t, err, "conversation_not_found")
	if steps, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Turn: turn.ID}, hub.Page{}); err != nil || len(steps.Items) != 0 {
		t.Errorf("%+v %v", steps, err)
	}
}

func TestASessionThatWasDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, calls(python("c1", "say a")), words("One."), words("Two."))
	first := l.ask(who, hub.NewTurn{Input: input("go")})
	if err := l.DeleteSession(t.Context(), who, first.Session); err != nil {
		t.Fatal(err)
	}
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("and on")})
	events, err := l.hear(who, second.ID)
	if err != nil {
		t.Fatal(err)
	}
	notice, ok := events[0].Event.(loop.Notice)
	if !ok || !strings.Contains(notice.Text, "was deleted") || second.Session == first.Session || !strings.Contains(v.asked(2), "The Python session is a new one") {
		t.Errorf("%+v: %+v after %s", second, events[0], v.asked(2))
	}
	if c, err := l.Conversation(t.Context(), who, first.Conversation); err != nil || c.Session != second.Session {
		t.Errorf("%+v %v", c, err)
	}
}

func TestConversationsAreDeletedWithWhatRuns(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a\nwait never")))
	turn := l.begin(who, hub.NewTurn{Input: input("go")})
	stored(t, l, turn.ID, 3)
	if err := l.DeleteConversation(t.Context(), who, turn.Conversation); err != nil {
		t.Fatal(err)
	}
	_, err := l.Turn(t.Context(), who, turn.ID)
	fails(t, err, "turn_not_found")
	if events, err := l.store.Events(t.Context(), turn.ID, "", 0, 10, 1<<30); err != nil || len(events) != 0 {
		t.Errorf("%+v %v", events, err)
	}
}

func TestOneTurnForOneIdempotencyKey(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, words("Once."))
	n := hub.NewTurn{Input: input("go"), NoPython: true, Once: "key"}
	first := l.ask(who, n)
	n.Foreign = json.RawMessage(`{"id":"another"}`)
	if again := l.ask(who, n); again.ID != first.ID || len(v.requests) != 1 {
		t.Errorf("%s and %s after %d questions", first.ID, again.ID, len(v.requests))
	}
	n.Input = input("go away")
	_, err := l.StartTurn(t.Context(), who, n)
	fails(t, err, "idempotency_mismatch")
}

func TestTokensAreCounted(t *testing.T) {
	t.Parallel()
	v := &voice{t: t, lines: []line{words("One."), words("Two.")}}
	l := newLife(t, func(o *hub.Options) { o.Models, o.Limits.Project = v, hub.Quota{Tokens: 15} })
	who := someone(auth.LocalProject)
	m, err := l.OpenModel(t.Context(), who, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range m.Stream(t.Context(), model.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	l.ask(who, hub.NewTurn{Input: input("go"), NoPython: true})
	_, err = l.StartTurn(t.Context(), who, hub.NewTurn{Input: input("go"), NoPython: true})
	fails(t, err, "quota_tokens")
	_, err = l.OpenModel(t.Context(), who, "")
	fails(t, err, "quota_tokens")
}

func TestADrainStopsTurns(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, line{hang: true})
	turn := l.begin(who, hub.NewTurn{Input: input("go"), NoPython: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := l.store.Turn(t.Context(), who.Project, turn.ID)
	if err != nil || got.State != hub.TurnFailed || !strings.Contains(string(got.Problem), "draining") {
		t.Errorf("%+v %v", got, err)
	}
	_, err = l.StartTurn(t.Context(), who, hub.NewTurn{Input: input("go")})
	fails(t, err, "draining")
}

func TestFilesComeFirst(t *testing.T) {
	t.Parallel()
	v := &voice{t: t, lines: []line{words("Read.")}}
	l, tree := newTreeLife(t, func(o *hub.Options) { o.Models = v })
	who := someone(auth.LocalProject)
	file, err := l.AddFile(t.Context(), who, hub.NewFile{Name: "sales.csv"}, strings.NewReader("a,b"))
	if err != nil {
		t.Fatal(err)
	}
	turn := l.ask(who, hub.NewTurn{Input: input("read"), Files: []string{file.ID}})
	if got := tree.names(); fmt.Sprint(got) != "[sales.csv]" || turn.Answer != "Read." {
		t.Errorf("%v in the workspace of %+v", got, turn)
	}
	if kept, err := l.Turn(t.Context(), who, turn.ID); err != nil || fmt.Sprint(kept.Files) != fmt.Sprintf("[{%s sales.csv 3}]", file.ID) {
		t.Errorf("the turn brought %v, %v", kept.Files, err)
	}
	if _, err := l.CancelTurn(t.Context(), who, turn.ID); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteTurn(t.Context(), who, turn.ID); err != nil {
		t.Fatal(err)
	}
	fails(t, l.DeleteTurn(t.Context(), who, turn.ID), "turn_not_found")
	actions := fmt.Sprint(l.audited(who))
	for _, want := range []string{"turn.start ok", "session.file.put ok", "turn.cancel ok", "turn.delete ok", "turn.delete turn_not_found"} {
		if !strings.Contains(actions, want) {
			t.Errorf("%s is not in the audit log: %s", want, actions)
		}
	}
}

func TestATurnWhoseSessionIsDeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a\nwait never")))
	turn := l.begin(who, hub.NewTurn{Input: input("go")})
	stored(t, l, turn.ID, 3)
	if err := l.DeleteSession(t.Context(), who, turn.Session); err != nil {
		t.Fatal(err)
	}
	_, err := l.hear(who, turn.ID)
	fails(t, err, "session_not_found")
	if got, err := l.Turn(t.Context(), who, turn.ID); err != nil || got.State != hub.TurnFailed || len(got.Messages) == 0 {
		t.Errorf("%+v %v", got, err)
	}
}
