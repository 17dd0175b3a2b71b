package hub

import (
	"context"
	"encoding/json"

	"cove/internal/auth"
	"cove/internal/interpreter"
	"cove/internal/model"
)

// NewConversation says what conversation to make.
type NewConversation struct {
	Title    string
	Session  string // an existing one to use, or ""
	Metadata map[string]string
	Source   string
}

// CreateConversation makes an empty conversation. Needs auth.ConversationsWrite.
func (h *Hub) CreateConversation(ctx context.Context, who auth.Principal, n NewConversation) (Conversation, error) {
	return Conversation{}, errTodo
}

// Conversation returns a conversation. Needs auth.ConversationsRead.
func (h *Hub) Conversation(ctx context.Context, who auth.Principal, id string) (Conversation, error) {
	return Conversation{}, errTodo
}

// Conversations lists conversations, the one used last first. Needs auth.ConversationsRead.
func (h *Hub) Conversations(ctx context.Context, who auth.Principal, f ConversationFilter, p Page) (Listing[Conversation], error) {
	return Listing[Conversation]{}, errTodo
}

// ConversationChange says what to change; nil fields stay.
type ConversationChange struct {
	Title    *string
	Metadata map[string]string
}

// ChangeConversation changes a conversation. Needs auth.ConversationsWrite.
func (h *Hub) ChangeConversation(ctx context.Context, who auth.Principal, id string, c ConversationChange) (Conversation, error) {
	return Conversation{}, errTodo
}

// DeleteConversation removes a conversation with all its turns. Needs auth.ConversationsWrite.
func (h *Hub) DeleteConversation(ctx context.Context, who auth.Principal, id string) error {
	return errTodo
}

// NewTurn says what a model is asked.
type NewTurn struct {
	Conversation string // "": a new one
	// Parent is the turn to go on from. "": the conversation's last, if it has one; an earlier one begins a branch. The Python of the session is
	// not taken back by that.
	Parent  string
	Session string // whose Python is used; "": the conversation's, or a new one
	Model   string // "": the server's default
	// Input is what the client says: words and images of the user, or results of the functions that the last turn called.
	Input  []model.Message
	Prompt string   // Input for people and for the search; "": its words
	Files  []string // stored files that are put into the workspace first
	// History comes before Input where the client keeps the conversation itself; then Parent must be "".
	History []model.Message

	Instructions string
	NoPython     bool // the model is not offered the interpreter
	Tools        []model.Tool
	Choice       model.ToolChoice
	Parallel     *bool
	MaxCalls     int // executions; 0: the server's limit
	MaxTokens    int // of each answer of the model
	Temperature  *float64
	TopP         *float64

	Source  string
	Foreign json.RawMessage // see Turn.Foreign
	Hidden  bool            // see Turn.Hidden
	Once    string          // see NewExecution.Once
}

// StartTurn begins a turn; it goes on whether or not anybody follows. Needs auth.ConversationsWrite, and auth.SessionsExecute unless NoPython.
// Problems: turn_running when the conversation has an unfinished turn.
func (h *Hub) StartTurn(ctx context.Context, who auth.Principal, n NewTurn) (Turn, error) {
	return Turn{}, errTodo
}

// Turn returns a turn. Needs auth.ConversationsRead.
func (h *Hub) Turn(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	return Turn{}, errTodo
}

// Turns lists the turns of a conversation, all branches, the oldest first. Needs auth.ConversationsRead.
func (h *Hub) Turns(ctx context.Context, who auth.Principal, conversation string, p Page) (Listing[Turn], error) {
	return Listing[Turn]{}, errTodo
}

// Branch returns a turn and those that it goes on from, the oldest first. Needs auth.ConversationsRead.
func (h *Hub) Branch(ctx context.Context, who auth.Principal, turn string) ([]Turn, error) {
	return nil, errTodo
}

// CancelTurn stops a turn and the code that it runs. It returns at once. Needs auth.ConversationsWrite.
func (h *Hub) CancelTurn(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	return Turn{}, errTodo
}

// DeleteTurn removes a finished turn. Turns that go on from it stay. Needs auth.ConversationsWrite.
func (h *Hub) DeleteTurn(ctx context.Context, who auth.Principal, id string) error {
	return errTodo
}

// SetForeign replaces Turn.Foreign. Needs auth.ConversationsWrite.
func (h *Hub) SetForeign(ctx context.Context, who auth.Principal, turn string, foreign json.RawMessage) error {
	return errTodo
}

// FollowTurn yields the events of a turn with Seq above after, as Follow does for an execution. It ends behind the interpreter.Answer, or
// with the error that ended the turn, also when it ended long ago. Needs auth.ConversationsRead.
func (h *Hub) FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (Follower[TurnEvent], error) {
	return nil, errTodo
}

// Search finds words in the project's history. Needs auth.ConversationsRead.
func (h *Hub) Search(ctx context.Context, who auth.Principal, query string, p Page) (Listing[Found], error) {
	return Listing[Found]{}, errTodo
}

// Models lists the models that can be asked. Needs auth.ModelsRead.
func (h *Hub) Models(ctx context.Context, who auth.Principal) ([]ModelInfo, error) {
	return nil, errTodo
}

// OpenModel connects to a model for a surface that passes requests through. Needs auth.ModelsRead.
func (h *Hub) OpenModel(ctx context.Context, who auth.Principal, name string) (model.Model, error) {
	return nil, errTodo
}

var _ = interpreter.Complete
