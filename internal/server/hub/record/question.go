package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cove/internal/code/advice"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/server/auth"
)

// Question is what a model is to be asked in a conversation when the turns before it have ended. It waits in the conversation's queue, and is either there or a turn.
type Question struct {
	ID           string // ident.Question
	Project      string
	User         string // who put it, or changed it last, and whose rights it is asked with
	Key          string
	Scopes       []auth.Action // what that caller was limited to
	Conversation string
	Place        int64 // in the queue, the first one lowest
	Turn         NewTurn
	Files        []TurnFile // that it brings, as they were called when it was put
	Size         int64      // of Turn as it is kept, in bytes
	Created      time.Time
	Changed      time.Time // another one with each change of what is asked
	Held         *Held     // why it could not be asked when it was its turn; nil: that was not tried
	Again        time.Time // when that is tried again by itself; zero: never
}

// Held says why a question stays in the queue.
type Held struct {
	Kind    problem.Kind `json:"kind"`
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
	Since   time.Time    `json:"since"`
}

// QuestionBounds are how many questions may wait.
type QuestionBounds struct {
	Conversation, Key, Project int
	Room                       int64 // bytes, of a project
}

// QuestionStore keeps the queues of conversations. Not found: question_not_found. What changes a queue touches its conversation.
type QuestionStore interface {
	// AddQuestion writes a question after the others of its conversation. Problems: too_many_questions, conversation_not_found.
	AddQuestion(ctx context.Context, q Question, most QuestionBounds) error
	// Questions returns a conversation's queue, the first one first.
	Questions(ctx context.Context, project, conversation string) ([]Question, error)
	UpdateQuestion(ctx context.Context, project, conversation, id string, change func(*Question) error) (Question, error)
	DeleteQuestion(ctx context.Context, project, conversation, id string) error
	// DueQuestions returns of each queue that could go on the first question, with ID, Project and Conversation alone: of those without an unfinished turn where that question
	// is not held, or is to be tried again by now.
	DueQuestions(ctx context.Context, now time.Time) ([]Question, error)
	// UndoTurn removes a turn that did not begin and puts the question that it was back in its place, together; where there is no such turn it does nothing.
	UndoTurn(ctx context.Context, t Turn, q Question) error
}

// Taken is a question as a turn takes it out of the queue.
type Taken struct {
	ID      string
	Changed time.Time
}

// MostTries bounds the tries of a question.
const MostTries = 10

// Tries say how a question is answered several times.
type Tries struct {
	Number int      `json:"number"`
	Models []string `json:"models,omitempty"` // who answers, the first one again after the last; none: the turn's model
	// Check is code that runs in the session of a try when it has answered, with the answer's words as the variable answer. A try is right for which it runs without an error and ends with a value that is not
	// false; "": what most tries answer is right.
	Check string `json:"check,omitempty"`
	// Again is the turn that asked before, in a server that died: its tries count that had ended, and this turn takes its place. Clients do not set it.
	Again string `json:"again,omitempty"`
}

// TurnTries is what a turn has to do with tries.
type TurnTries struct {
	Of      string `json:"of,omitempty"`      // of a try: the turn that it is a try of
	Place   int    `json:"place,omitempty"`   // of a try: which it is, from 1
	Number  int    `json:"number,omitempty"`  // of the turn that asked: how many there are at most
	Chosen  string `json:"chosen,omitempty"`  // of the turn that asked: the try that it has the answer of
	Why     Choice `json:"why,omitempty"`     // of the turn that asked: why that one
	Agree   int    `json:"agree,omitempty"`   // of the turn that asked: how many answered as the chosen one
	Failed  bool   `json:"failed,omitempty"`  // of the turn that asked: no try passed the check
	Passed  *bool  `json:"passed,omitempty"`  // of a try: whether the check passed; nil: there was none
	Saved   bool   `json:"saved,omitempty"`   // of a try: its session is on the disk as the try has left it
	Request *Asked `json:"request,omitempty"` // of a turn that asked and has not ended: what it asked
}

// IsTry says whether a turn is one of several tries of another one.
func (t Turn) IsTry() bool { return t.Tries != nil && t.Tries.Of != "" }

// Asked is what a turn with tries asked, for the case that it has to be asked again.
type Asked struct {
	Turn   NewTurn       `json:"turn"`
	Scopes []auth.Action `json:"scopes,omitempty"` // that the caller was limited to
}

// Choice says why a try was chosen.
type Choice string

// The choices.
const (
	ChosenByCheck Choice = "check"     // it passed the check
	ChosenByMost  Choice = "agreement" // most answered as it did
	ChosenByModel Choice = "vote"      // the model said so
	ChosenFirst   Choice = "first"     // nothing said which is right; it was the first without a failure
)

// Validate returns what is wrong with asking for tries.
func (t *Tries) Validate(n NewTurn) error {
	switch {
	case t == nil:
		return nil
	case t.Number < 2 || t.Number > MostTries:
		return problem.New(problem.TurnInvalid, fmt.Sprintf("a question has 2 to %d tries", MostTries))
	case len(t.Models) > t.Number:
		return problem.New(problem.TurnInvalid, "there are more models than tries")
	case n.NoPython:
		return problem.New(problem.TurnInvalid, "tries are of code, and the turn has none")
	case len(n.Tools)+len(n.CodeTools)+len(n.Servers) > 0:
		return problem.New(problem.TurnInvalid, "a turn with tries has no tools: each try would call them").WithHint("leave the tools out, or ask once")
	case n.Hidden:
		return problem.New(problem.TurnInvalid, "a turn with tries is stored")
	case n.Approval == ApprovalAlways || n.Decide != nil:
		return ErrTriesAsk()
	}
	for _, m := range n.Input {
		if slices.ContainsFunc(m.Content, func(c model.Content) bool { _, is := c.(model.ToolResult); return is }) {
			return problem.New(problem.TurnInvalid, "results are for the turn that waits for them, and are not tried several times").WithHint("send the results alone")
		}
	}
	return nil
}

// ErrTriesAsk is the problem of tries of code that waits for approval.
func ErrTriesAsk() error {
	return problem.New(problem.TurnInvalid, "code that waits for approval is not tried several times").WithHint("ask once, or without approval")
}

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
	Heard     bool            `json:"-"` // by a caller in this process that waits for its end, see RunTurn
	Once      string          // see NewExecution.Once; Foreign does not count for what makes two requests the same
	Queued    *Question       `json:"-"` // of the queue, that this is; nil: it comes from a client
}

// Fingerprint returns a hash of a request's content, for its idempotency key.
func (n NewTurn) Fingerprint() (string, error) {
	if n.Once == "" {
		return "", nil
	}
	n.Foreign = nil
	text, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("write down the request of a turn: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
