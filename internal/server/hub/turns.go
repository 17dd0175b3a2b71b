package hub

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"cove/internal/code/advice"
	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/server/auth"
)

// NewTurn says what a model is asked.
type NewTurn struct {
	Conversation string // "": a new one
	// Parent is the turn to go on from. "": the conversation's last, if it has one; an earlier one begins a branch. The session's variables and files do not go
	// back to that turn.
	Parent string
	// First begins another branch at the beginning of the conversation: the turn goes on from none. Then Parent must be "".
	First   bool   `json:",omitempty"`
	Session string // whose Python is used; "": the conversation's, or a new one
	// Network and Root are those of a new session; with one that is there already they must not be given.
	Network *Network `json:",omitempty"`
	Root    bool     `json:",omitempty"`
	Model   string   // "": the server's default
	// Input is what the client says: words and images of the user, or results of the functions that the last turn called.
	Input  []model.Message
	Prompt string   // Input as people and the search see it; "": the words of Input
	Files  []string // stored files that are put into the workspace first
	// Names are the workspace paths, by id, of those Files that are not put there under their own names.
	Names map[string]string
	// History comes before Input where the client keeps the conversation itself; then Parent must be "".
	History []model.Message

	Instructions string
	// InProject has the model follow the project's instructions before these: turns of cove's own interfaces. Foreign protocols send what their clients sent.
	InProject bool `json:",omitempty"`
	NoPython  bool // the model is not offered the interpreter
	Tools     []model.Tool
	Choice    model.ToolChoice
	// CodeTools are functions of the client's that code may call by itself: as functions of the module tools, or, with CodeGlobals, as names of its own that are to be awaited. The turn ends with such calls as with those of the
	// model, and the turn that brings the results goes on where the code waits.
	CodeTools   []tool.Tool
	CodeGlobals bool
	Servers     []string // of tools, by name, which code may call, too; see NewExecution.Servers
	AskBefore   []string // before calls of which of their tools the user is asked; see NewExecution.AskBefore
	Parallel    *bool
	Kernels     int    // in which the model may have code run besides the main one, and code of one answer at the same time; at most loop.MostKernels
	Tries       *Tries `json:",omitempty"` // has the question answered several times; nil: once
	MaxCalls    int    // executions; 0: the server's limit
	// Check has each program of the model's looked at when it has run. Look does that for a caller in this process, whose hub makes no sessions.
	Check bool
	Look  func(ctx context.Context, step int, code string) advice.Report `json:"-"`
	// Decide is asked about each program of the model's before it runs, by a caller in this process, where RunTurn has told of it with an Approval; nil: the
	// conversation and the rules for code say what waits, and ApproveTurn what becomes of it.
	Decide func(ctx context.Context, step int) (loop.Decision, error) `json:"-"`

	MaxTokens   int // of each answer of the model
	Temperature *float64
	TopP        *float64
	Format      model.Format // of the answer's words, which Instructions ask for too
	Effort      string       // see model.Request
	Stop        []string     `json:",omitempty"` // as loop.Turn.Stop
	Extra       map[string]json.RawMessage

	// Approval is that of a new conversation.
	Approval Approval `json:",omitempty"`

	Source string
	// Unattended says that no user can be asked for a word about code: what would wait for one because of the rules for code does not run.
	Unattended bool
	// Unnoticed says that the client hears no loop.Notice: what its session has lost is among the events of the first code, too.
	Unnoticed bool            `json:",omitempty"`
	Foreign   json.RawMessage // see Turn.Foreign
	Hidden    bool            // see Turn.Hidden
	heard     bool            // by a caller in this process that waits for its end, see RunTurn
	Once      string          // see NewExecution.Once; Foreign does not count for what makes two requests the same
	queued    *Question       // of the queue, that this is; nil: it comes from a client
}

// Turn returns a turn. Needs auth.ConversationsRead.
func (h *Hub) Turn(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Turn{}, err
	}
	return h.turn(ctx, who.Project, id)
}

// turn returns a turn's record; for a hidden turn that is the one in memory.
func (h *Hub) turn(ctx context.Context, project, id string) (Turn, error) {
	if t, ok := h.turns.record(id); ok && t.Project == project && t.Hidden {
		return t, nil
	}
	if _, err := h.recall(ctx, project, "", id); err != nil {
		return Turn{}, err
	}
	return h.o.Store.Turn(ctx, project, id)
}

// Turns lists the turns of a conversation, all branches. Needs auth.ConversationsRead.
func (h *Hub) Turns(ctx context.Context, who auth.Principal, conversation string, p Page) (Listing[Turn], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Listing[Turn]{}, err
	}
	p, err := p.orDefault()
	if err != nil {
		return Listing[Turn]{}, err
	}
	if _, err := h.o.Store.Conversation(ctx, who.Project, conversation); err != nil {
		return Listing[Turn]{}, err
	}
	if _, err := h.recall(ctx, who.Project, conversation, ""); err != nil {
		return Listing[Turn]{}, err
	}
	return h.o.Store.Turns(ctx, who.Project, conversation, p)
}

// Branch returns a turn and those that it goes on from, the oldest first. Needs auth.ConversationsRead.
func (h *Hub) Branch(ctx context.Context, who auth.Principal, turn string) ([]Turn, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	t, err := h.turn(ctx, who.Project, turn)
	if err != nil {
		return nil, err
	}
	if _, err := h.recall(ctx, who.Project, t.Conversation, ""); err != nil {
		return nil, err
	}
	return h.o.Store.Branch(ctx, who.Project, turn)
}

const (
	// largestConversation bounds the records of a conversation that a turn goes on in, in bytes: each turn reads them and sends them to the model.
	largestConversation = 64 << 20
	// copiesOfRecord is how much memory reading a record takes, as a multiple of its length.
	copiesOfRecord = 4
)

// recall reserves memory for the records of a conversation's turns, or of one turn, and returns their length.
func (h *Hub) recall(ctx context.Context, project, conversation, turn string) (int64, error) {
	size, err := h.o.Store.TurnsSize(ctx, project, conversation, turn)
	if err != nil {
		return 0, err
	}
	return size, bodybudget.Recall(ctx, copiesOfRecord*size)
}

// CancelTurn stops a turn and the code that it runs, and returns at once. Of a turn that has ended it stops the code that waits for results of the client. Needs auth.ConversationsWrite.
func (h *Hub) CancelTurn(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	t, err := Turn{}, who.Require(auth.ConversationsWrite)
	if err == nil {
		if running := h.turns.running(id); running != nil && running.project == who.Project {
			running.stop(canceledTurn()) // also while the store is away
		}
		t, err = h.turn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
	case !t.State.Final():
		err = h.runsElsewhere(ctx, problem.TurnElsewhere, "turn", t.Owner)
	case t.State == TurnWaiting:
		h.forsakeTurn(ctx, t, "the turn that waited for results was cancelled")
	}
	h.audit(ctx, who, "turn.cancel", id, "", err)
	return t, err
}

func canceledTurn() *problem.Error {
	return problem.New(problem.GivenUp, "the turn was cancelled")
}

// ErrTurnRunning is the problem of a conversation in which a turn has not ended.
func ErrTurnRunning() *problem.Error {
	return problem.New(problem.TurnRunning, "the conversation has a turn that has not ended").
		WithHint("wait for its end, cancel it, or begin another conversation")
}

// DeleteTurn removes a finished turn. Turns that go on from it stay. Needs auth.ConversationsWrite. Problems: turn_running.
func (h *Hub) DeleteTurn(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.ConversationsWrite)
	var t Turn
	if err == nil {
		t, err = h.turn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
	case !t.State.Final():
		err = ErrTurnRunning()
	case t.State == TurnWaiting:
		h.forsakeTurn(ctx, t, "the turn that waited for results was deleted")
	}
	switch {
	case err != nil:
	case t.Hidden:
		err = h.forgetTurn(ctx, t)
	default:
		if err = h.o.Store.DeleteTurn(ctx, who.Project, id); err == nil && t.Tries != nil {
			h.forgetTries(t.Project, t.Conversation, id)
		}
	}
	h.audit(ctx, who, "turn.delete", id, "", err)
	return err
}

// SetForeign replaces Turn.Foreign, which is the surface's own record and leaves no row in the audit log. Needs auth.ConversationsWrite.
func (h *Hub) SetForeign(ctx context.Context, who auth.Principal, turn string, foreign json.RawMessage) error {
	if err := who.Require(auth.ConversationsWrite); err != nil {
		return err
	}
	if h.turns.setForeign(who.Project, turn, foreign) {
		return nil
	}
	return h.o.Store.SetForeign(ctx, who.Project, turn, foreign)
}

// Search finds words in the project's history. Needs auth.ConversationsRead.
func (h *Hub) Search(ctx context.Context, who auth.Principal, query string, p Page) (Listing[Found], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Listing[Found]{}, err
	}
	p, err := p.orDefault()
	if err != nil {
		return Listing[Found]{}, err
	}
	return h.o.Store.Search(ctx, who.Project, query, p)
}

// Models lists the models that can be asked. Needs auth.ModelsRead.
func (h *Hub) Models(ctx context.Context, who auth.Principal) ([]ModelInfo, error) {
	if err := who.Require(auth.ModelsRead); err != nil {
		return nil, err
	}
	if h.o.Models == nil {
		return nil, nil
	}
	return h.o.Models.List(ctx)
}

// OpenModel connects to a model for a surface that passes requests through. The tokens are counted for the caller. Needs auth.ModelsRead and
// auth.ConversationsWrite. Problems: quota_tokens and those of opening it.
func (h *Hub) OpenModel(ctx context.Context, who auth.Principal, name string) (model.Model, error) {
	for _, action := range []auth.Action{auth.ModelsRead, auth.ConversationsWrite} { // asking a model costs, unlike listing models
		if err := who.Require(action); err != nil {
			return nil, err
		}
	}
	if err := h.mayAsk(ctx, who.Project, who.Key); err != nil {
		return nil, err
	}
	m, err := h.openModel(ctx, name)
	if err != nil {
		return nil, err
	}
	return metered{m, h.o.Turns.Time, func(u model.Usage) {
		h.spend(ctx, who, used(u, h.about(m.Name()).Cost(u)))
	}}, nil
}

func (h *Hub) openModel(ctx context.Context, name string) (model.Model, error) {
	if h.o.Models == nil {
		return nil, problem.New(problem.ModelMissing, "the server has no model").WithHint("the operator has to configure one")
	}
	m, err := h.o.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return model.Observed(m), nil
}

// about is what is known of a model.
func (h *Hub) about(name string) model.About {
	if h.o.About == nil {
		return model.About{}
	}
	return h.o.About(name)
}

// used is what the tokens of a model add to the day's counters.
func used(u model.Usage, c model.Cost) Usage {
	return Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: c.Amount, Currency: c.Currency}
}

// metered is a model that counts the tokens of every answer, and bounds an answer by the time of a turn.
type metered struct {
	model.Model
	time  time.Duration
	spend func(model.Usage)
}

func (m metered) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		ctx, cancel := timed(ctx, m.time)
		defer cancel()
		said, finished := int64(0), false
		defer func() {
			if !finished && said > 0 {
				m.spend(model.Estimate(req, said)) // a caller that leaves before the end has used the tokens all the same
			}
		}()
		for part, err := range m.Model.Stream(ctx, req) {
			switch p := part.(type) {
			case model.TextDelta:
				said += int64(len(p.Text))
			case model.ReasoningDelta:
				said += int64(len(p.Text))
			case model.CallDelta:
				said += int64(len(p.Name) + len(p.Arguments))
			case model.Finish:
				finished = true
				m.spend(p.Usage)
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

var _ loop.Executor = (*stepper)(nil)
