package record

import (
	"encoding/json"
	"time"

	"cove/internal/code/redact"
	"cove/internal/code/screen"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// SessionState is a state of a session's life cycle.
//
//	create ─▶ active ◀──next request── paused
//	            │  ──idle, Pause, drain──▶
//	            └──its sandbox or the server died──▶ lost ──next request──▶ active (from its last snapshot, or anew)
//	any ──Delete, end of life──▶ (gone; the row stays as deleted for the history)
type SessionState string

// The states.
const (
	SessionActive  SessionState = "active"
	SessionPaused  SessionState = "paused"
	SessionLost    SessionState = "lost"
	SessionDeleted SessionState = "deleted"
)

// Session is a user's claim on a sandbox.
type Session struct {
	ID         string // ident.Session
	Project    string
	User       string
	Key        string // that made it
	Name       string // for people; "" is fine
	Metadata   map[string]string
	State      SessionState
	Reason     string // why it is lost
	Created    time.Time
	Used       time.Time
	Expires    time.Time     // when it is deleted unless it is extended; zero: never
	Idle       time.Duration // without use, until it is paused; 0: never
	Packages   string        // the set: standard, standard-2024 or minimal
	Memory     int64         // bytes that it may take
	Taken      int64         // bytes that it takes now, beside what all sessions share; 0: not known, as of one that is not in memory here. It is not recorded
	CPUs       float64
	Volumes    []VolumeMount
	Image      *SessionImage // that it begins from; nil: the server's own system
	System     int64         // bytes that its root may change outside of the workspace; 0: it has no root
	Executions int
	Disk       int64          // bytes of its snapshot; 0 while none exists
	Saved      time.Time      // of its snapshot; zero while none exists
	Network    *Network       // where its programs may connect to; nil: nowhere
	Secrets    *Secrets       // for Network.Credentials
	Rollback   *Rollback      // what it lost, until a client acknowledges that; nil: nothing
	Origin     *SessionOrigin // of a fork; nil: it began empty, or was forked by a version that did not keep it
	Home       string         // on whose disk it is; see package owner. "": from before there were homes, or restored from a backup
	// Owner is the process that has the session in memory, or that died with it and whose loss the home has not settled yet; "": none.
	Owner string

	Uses []SessionUse // only where they were asked for: no row has them
}

// SessionOrigin says which session a fork goes on from.
type SessionOrigin struct {
	Session string    `json:"session"`
	At      time.Time `json:"at,omitzero"`    // the fork has what ran there until then; zero: nothing
	Undo    bool      `json:"undo,omitempty"` // UndoTurns made the fork, and nobody has named it since
}

// SessionImage is the OCI image that a session begins from.
type SessionImage struct {
	Reference string `json:"reference"` // as it was asked for
	Digest    string `json:"digest"`    // of its manifest: "sha256:..."
}

// Rollback says that a session went back to its saved state, and what was lost by that. Files that clients had put in are not lost: the journal keeps them
// until the session is saved.
type Rollback struct {
	At         time.Time `json:"at"`          // when that was found out
	To         time.Time `json:"to,omitzero"` // zero: the session started anew
	Reason     string    `json:"reason"`
	Executions []string  `json:"executions"`     // ids of executions whose effects are lost, at most 100, the oldest first
	More       int       `json:"more,omitempty"` // further ones
	Files      []string  `json:"files"`          // paths that these executions made or changed, at most 1,000
	Told       bool      `json:"told,omitempty"` // a client was told, by an execution's event or a turn's notice
}

// Kernel is an interpreter of a session.
type Kernel struct {
	Name string // "main" or the caller's
	Busy bool
}

// ExecutionState is a state of an execution. All but the first two are final, and an execution reaches exactly one of those.
type ExecutionState string

// The states; the final ones but Lost are kernel.Outcome.
const (
	ExecutionQueued  ExecutionState = "queued"
	ExecutionRunning ExecutionState = "running"
	ExecutionLost    ExecutionState = "lost" // the server died meanwhile; what the code did is not known
)

// Final says whether nothing more happens.
func (s ExecutionState) Final() bool { return s != ExecutionQueued && s != ExecutionRunning }

// Execution is one run of code.
type Execution struct {
	ID       string // ident.Execution
	Project  string
	User     string
	Key      string
	Session  string
	Kernel   string
	Turn     string // of which it is a step, or ""
	Step     int
	Detached bool // it may outlive its turn, and has a stream of its own
	Code     string
	State    ExecutionState
	ExitCode int
	Message  string // a sentence about the end, if the state needs one
	Lost     kernel.Loss
	Created  time.Time
	Started  time.Time // zero until it runs
	Finished time.Time // zero until it is final
	Wall     time.Duration
	CPU      time.Duration    // processor time of its sandbox, see tally; 0: it could not be measured
	Events   int64            // the last event's Seq
	Dropped  int64            // bytes of output that are not kept
	Owner    string           // the process that runs it, or has run it; see package ownership
	Edited   bool             // the user changed the model's code before it ran
	Cautions []screen.Finding // what a look at the code found before it ran
	Redacted redact.Counts    // what was taken out of what it emitted
}

// Conversation is the turns of a user with a model, bound to a session.
type Conversation struct {
	ID       string // ident.Conversation
	Project  string
	User     string
	Session  string // "" until a turn needs one
	Title    string
	Model    string // of the last turn
	Metadata map[string]string
	Created  time.Time
	Used     time.Time
	Turns    int
	Source   string // the surface that it came through: "cli", "api", "openai"
	Approval Approval
	Origin   *ConversationOrigin // of a fork; nil: it is none
}

// ConversationOrigin is what a conversation is a fork of. It may have been deleted since.
type ConversationOrigin struct {
	Conversation string `json:"conversation"`
	Turn         string `json:"turn"` // the last one that the two have in common, as it is called there
}

// Approval says whether code of the model's waits for the user's word before it runs.
type Approval string

// The approvals. A turn keeps what its conversation had when it began.
const (
	ApprovalNever  Approval = ""
	ApprovalAlways Approval = "always"
)

// Waiting is code of a turn that waits for its user's word.
type Waiting struct {
	Step  int       `json:"step"`
	Code  string    `json:"code"`
	Why   string    `json:"why,omitempty"` // what in it calls for a look, where the rules for code ask
	Since time.Time `json:"since"`
}

// TurnState is a state of a turn.
type TurnState string

// The states.
const (
	TurnRunning   TurnState = "running"
	TurnCompleted TurnState = "completed" // Answer and Reason say how
	TurnWaiting   TurnState = "waiting"   // for results of the client's functions, which the next turn brings
	TurnFailed    TurnState = "failed"    // Problem says why
	TurnCanceled  TurnState = "canceled"  //
	TurnLost      TurnState = "lost"      // the server died meanwhile
)

// Final says whether nothing more happens.
func (s TurnState) Final() bool { return s != TurnRunning }

// Turn is one request to a model and everything until its answer.
type Turn struct {
	ID           string // ident.Turn
	Project      string
	User         string
	Key          string
	Conversation string
	Parent       string // the turn before it in its branch, or ""
	Session      string
	State        TurnState
	Model        string
	Prompt       string          // the user's words, for people and for the search
	Answer       string          // the final text
	Reason       string          // loop.AnswerReason
	Problem      json.RawMessage // of a failed turn: kind, code, message, hint
	Messages     []model.Message // what the turn adds to the conversation, the input included; see loop.Answer
	Calls        []model.ToolCall
	Usage        model.Usage
	Cost         model.Cost // of Usage by the prices at the turn's end
	Context      Context
	Steps        int
	Created      time.Time
	Finished     time.Time
	Events       int64 // the last event's Seq
	// Foreign is what the surface that made the turn keeps with it, as OpenAI's response object.
	Foreign json.RawMessage
	// Hidden says that the client asked not to store the turn: it exists while it runs, and for a moment afterwards.
	Hidden bool
	Owner  string // the process that runs it, or has run it; see package ownership
	// Waiting is what a running turn waits for; nil: it does not.
	Waiting *Waiting
	Files   []TurnFile // that it brought, as they were called then
	// Origin is the turn that this one is a copy of, which a fork has; nil: it was asked here.
	Origin *TurnOrigin
	Tries  *TurnTries // what it has to do with tries; nil: nothing
	Rating *Rating    // what a person says of the answer; nil: nothing
	Marks  *TurnMarks // nil: none
	Work   Work       // of a turn that has just ended: it is counted, and not kept with the turn
	// Taken is the question of the queue that a turn is when it begins. It is not kept with the turn.
	Taken Taken
}

// TurnOrigin is a turn that was copied, and its session, which has the point from before it. Both may have been deleted since.
type TurnOrigin struct {
	Turn    string `json:"turn"`
	Session string `json:"session,omitempty"`
}

// TurnFile is a stored file that a turn brought; it may have been deleted since.
type TurnFile struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Context is how much of what a model takes at once a turn used.
type Context struct {
	Used int64 // tokens of the turn's last request and its answer; 0: not known
	Size int64 // that the model takes; 0: not known
}

// File is a stored file, beside any session. Its content is kept by its hash.
type File struct {
	ID      string // ident.File
	Project string
	User    string
	Name    string
	Size    int64
	SHA256  string // hex
	Purpose string // the caller's word; OpenAI's surface has some
	Home    string // on whose disk its content was put, as Session.Home
	Created time.Time
	Expires time.Time // zero: never
}

// Upload is a file that comes in pieces. It becomes a stored file when it is whole.
type Upload struct {
	ID       string // ident.Upload
	Project  string
	User     string
	Key      string
	Name     string
	Size     int64  // of the whole file
	Received int64  // bytes that have come and are on the disk: the next piece begins there
	File     string // the stored file that it has become; "" until then
	Stored   *File  // that file, where a method of Hub returns the upload
	Home     string // on whose disk its bytes are, as Session.Home
	Created  time.Time
	Expires  time.Time
}

// Usage is what was used in one day (UTC).
type Usage struct {
	Day          string  `json:"day" format:"date"` // 2026-11-21
	Executions   int64   `json:"executions"`
	WallSeconds  float64 `json:"wall_seconds"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	Turns        int64   `json:"turns"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	Cost         float64 `json:"cost,omitempty" doc:"Of the tokens, by the prices of the time; models without prices are not in it"`
	Currency     string  `json:"currency,omitempty" doc:"Of the cost"`
	UploadBytes  int64   `json:"upload_bytes"`
}

// ProjectUsage is what a project has used in some days; it has no Day.
type ProjectUsage struct {
	Project string
	Usage
}

// Found is a place where a search matched.
type Found struct {
	Conversation string
	Turn         string // or "" where an execution without a turn matched
	Execution    string
	Session      string
	At           time.Time
	Field        string // "prompt", "answer", "code" or "output"
	Snippet      string // the text around the match, at most 200 characters
}
