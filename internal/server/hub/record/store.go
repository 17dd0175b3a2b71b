package record

import (
	"context"
	"time"

	"cove/internal/llm/model"
	"cove/internal/server/audit"
	"cove/internal/server/ownership"
	"cove/internal/server/stream"
)

// Store keeps records. Package store implements it on SQLite and PostgreSQL. What a method has written is durable when it returns without an error. What does
// not exist, or is another project's, is a problem of kind NotFound with the code that is named here. When the database cannot be reached the error is a
// problem of kind Unavailable with code "database_unavailable".
type Store interface {
	SessionStore
	ExecutionStore
	stream.Store // keeps events; the part of an event is the execution that emitted it
	ConversationStore
	ShareStore
	LinkStore
	VolumeStore
	FileStore
	UploadStore
	UsageStore
	AnswerStore
	Searcher
	Rememberer
	OwnerStore
	SessionUseStore
	ConnectionStore
	// Ping says whether the database answers.
	Ping(ctx context.Context) error
}

// ConnectionStore keeps the services of models that an admin connected, for all servers on the database. Not found: "connection_not_found".
type ConnectionStore interface {
	Connections(ctx context.Context) ([]Connection, error) // the one changed last first
	SetConnection(ctx context.Context, provider string, change func(*Connection) error) (Connection, error)
	DeleteConnection(ctx context.Context, provider string) error
}

// SessionFilter narrows a list of sessions. Zero fields do not.
type SessionFilter struct {
	State SessionState // "": all but deleted
	User  string
	Name  string // its beginning
	Meta  map[string]string
}

// SessionStore keeps sessions. Not found: "session_not_found".
type SessionStore interface {
	AddSession(ctx context.Context, s Session) error
	Session(ctx context.Context, project, id string) (Session, error)
	Sessions(ctx context.Context, project string, f SessionFilter, p Page) (Listing[Session], error)
	// UpdateSession reads the session, has change change it and writes it back, in one transaction. An error of change is returned
	// and nothing is written.
	UpdateSession(ctx context.Context, project, id string, change func(*Session) error) (Session, error)
	// SessionsWhere returns sessions of all projects for the life cycle: those in a state, those unused since, those expired by.
	// At most limit.
	SessionsWhere(ctx context.Context, w Where, limit int) ([]Session, error)
	// HeldDisk returns the sum of Session.Disk and of the sizes of the volumes and the stored files of a project, and of the uploads that will be such.
	HeldDisk(ctx context.Context, project string) (int64, error)
	// AbandonedSessions returns those of all projects that dead owners had in memory: of a home and of none, and of other homes those that are active.
	AbandonedSessions(ctx context.Context, home string, limit int) ([]Session, error)
}

// SessionUseStore finds out what sessions are used for.
type SessionUseStore interface {
	// SessionUses returns the conversations that use each of some sessions, by the session's ID, the one used last first, most of them at most.
	SessionUses(ctx context.Context, project string, sessions []string, most int) (map[string][]SessionUse, error)
}

// OwnerStore reads owners; see package owner.
type OwnerStore interface {
	// Owner returns an owner that lives. Not found: "owner_not_found".
	Owner(ctx context.Context, id string) (ownership.Record, error)
	// Home returns a home, and whether an owner lives there. Not found: "home_not_found".
	Home(ctx context.Context, id string) (h ownership.Home, served bool, err error)
	// Others is how many owners there are besides one.
	Others(ctx context.Context, id string) (int, error)
	// Neighbours is how many owners besides one live in a home.
	Neighbours(ctx context.Context, id, home string) (int, error)
}

// Where picks sessions for the life cycle; all that is set must hold.
type Where struct {
	States    []SessionState
	Home      string    // on whose disk they are; sessions without a home match every home
	Reach     string    // a home: those on its disk, without a home, and on the disks of homes where no owner lives
	Free      bool      // no living owner but By has them in memory
	By        string    // an owner
	InMemory  bool      // By has them in memory
	UsedUntil time.Time // not used after
	ExpiredBy time.Time
}

// ExecutionFilter narrows a list of executions.
type ExecutionFilter struct {
	Session, Kernel, Turn string
	State                 ExecutionState
}

// ExecutionStore keeps executions. Not found: "execution_not_found".
type ExecutionStore interface {
	// AddExecution writes an execution together with the audit row of the request, where there is one.
	AddExecution(ctx context.Context, e Execution, asked ...audit.Row) error
	Execution(ctx context.Context, project, id string) (Execution, error)
	Executions(ctx context.Context, project string, f ExecutionFilter, p Page) (Listing[Execution], error)
	// StartExecution records that a queued execution runs.
	StartExecution(ctx context.Context, id string, at time.Time) error
	// FinishExecution writes the final state and the last events in one transaction, unless the execution has a final state already: then nothing is
	// written and first is false.
	FinishExecution(ctx context.Context, e Execution, last []stream.Event) (first bool, err error)
	// ExecutionsSince returns at most limit executions of a session that began and ended after a time, the oldest first.
	ExecutionsSince(ctx context.Context, project, session string, since time.Time, limit int) ([]Execution, error)
	// AbandonedExecutions returns those of all projects that have not ended and whose owners are dead.
	AbandonedExecutions(ctx context.Context, limit int) ([]Execution, error)
}

// ConversationFilter narrows a list of conversations.
type ConversationFilter struct{ Session, User, Source string }

// ConversationStore keeps conversations and their turns. Not found: "conversation_not_found", "turn_not_found".
type ConversationStore interface {
	AddConversation(ctx context.Context, c Conversation) error
	Conversation(ctx context.Context, project, id string) (Conversation, error)
	Conversations(ctx context.Context, project string, f ConversationFilter, p Page) (Listing[Conversation], error)
	UpdateConversation(ctx context.Context, project, id string, change func(*Conversation) error) (Conversation, error)
	// DeleteConversation removes it with its shares and its turns, their executions and events. turn_running as with AddTurn.
	DeleteConversation(ctx context.Context, project, id string) error
	TurnStore
	ForkStore
	QuestionStore
}

// TurnStore keeps turns.
type TurnStore interface {
	TurnReader
	TurnTexts
	TurnNotes
	// AddTurn writes the turn and touches its conversation, and takes the question Turn.Taken out of the queue: question_not_found where it is not there any more, or not as it
	// was. turn_running where another living owner has a turn in the conversation that has not ended and is
	// not hidden.
	AddTurn(ctx context.Context, t Turn) error
	// FinishTurn writes the final state with the last events, as FinishExecution does.
	FinishTurn(ctx context.Context, t Turn, last []stream.Event) (first bool, err error)
	// EndWaiting gives a turn that waits for results of its client's another final state, with its problem as JSON. It does nothing to others.
	EndWaiting(ctx context.Context, project, turn string, state TurnState, why []byte) error
	// SetWaiting writes what a turn that has not ended waits for, or nil.
	SetWaiting(ctx context.Context, project, turn string, w *Waiting) error
	DeleteTurn(ctx context.Context, project, turn string) error
}

// TurnNotes keeps what is added to a turn after it was recorded.
type TurnNotes interface {
	// SetForeign replaces what the turn's surface keeps with it.
	SetForeign(ctx context.Context, project, turn string, foreign []byte) error
	SetTries(ctx context.Context, project, turn string, t TurnTries) error
	SetRating(ctx context.Context, project, turn string, r *Rating) error // nil: none
	// MarkTurn changes the marks of a turn, which change gets as they are, and returns them; nil: none.
	MarkTurn(ctx context.Context, project, turn string, change func(*TurnMarks) error) (*TurnMarks, error)
}

// TurnReader finds turns.
type TurnReader interface {
	Turn(ctx context.Context, project, id string) (Turn, error)
	Turns(ctx context.Context, project, conversation string, p Page) (Listing[Turn], error)
	// RatedTurns lists a project's turns that have a rating, the newest first, with ID, Conversation, Model, Prompt, Answer, Created and Rating alone.
	RatedTurns(ctx context.Context, project string, p Page) (Listing[Turn], error)
	// TurnEnded says whether a turn has its final state, without reading the turn.
	TurnEnded(ctx context.Context, project, id string) (bool, error)
	// RunningTurns returns at most limit turns of a project that have not ended and are not hidden, the oldest first, with ID, Project, Conversation, State
	// and Waiting alone.
	RunningTurns(ctx context.Context, project string, limit int) ([]Turn, error)
	// Branch returns the turn and those that it goes on from, the oldest first.
	Branch(ctx context.Context, project, turn string) ([]Turn, error)
	// AbandonedTurns returns those of all projects that have not ended and whose owners are dead.
	AbandonedTurns(ctx context.Context, limit int) ([]Turn, error)
}

// TurnTexts are what turns said and heard.
type TurnTexts interface {
	// TurnHistory returns the messages of the turn and of those that it goes on from, the oldest first.
	TurnHistory(ctx context.Context, project, turn string) ([]model.Message, error)
	// TurnsSize returns how many bytes the records of a conversation's turns have, or, with turn, the record of that turn; 0 where there are none.
	TurnsSize(ctx context.Context, project, conversation, turn string) (int64, error)
}

// FileStore keeps the records of stored files. Not found: "file_not_found".
type FileStore interface {
	AddFile(ctx context.Context, f File) error
	File(ctx context.Context, project, id string) (File, error)
	Files(ctx context.Context, project, purpose string, p Page) (Listing[File], error)
	DeleteFile(ctx context.Context, project, id string) (File, error)
	// UnusedContent returns those of the hashes that no file has any more.
	UnusedContent(ctx context.Context, hashes []string) ([]string, error)
	ExpiredFiles(ctx context.Context, by time.Time, limit int) ([]File, error)
}

// UploadStore keeps uploads. Not found: "upload_not_found".
type UploadStore interface {
	// AddUpload refuses when its key, its project or the server has as many uploads already: too_many_uploads.
	AddUpload(ctx context.Context, u Upload, most UploadBounds) error
	Upload(ctx context.Context, project, id string) (Upload, error)
	UpdateUpload(ctx context.Context, project, id string, change func(*Upload) error) (Upload, error)
	// FinishUpload writes the record of the file that an upload has become, and its id into the upload, in one transaction.
	FinishUpload(ctx context.Context, f File, id string, expires time.Time) (Upload, error)
	DeleteUpload(ctx context.Context, project, id string) error
	// ExpiredUploads returns those of all projects, the oldest first.
	ExpiredUploads(ctx context.Context, by time.Time, limit int) ([]Upload, error)
	// OverUploads returns those of the ids that no upload has any more whose bytes are needed.
	OverUploads(ctx context.Context, ids []string) ([]string, error)
}

// UsageStore counts what is used. Counters survive a restart.
type UsageStore interface {
	// AddUsage adds to the day's counters of a project and of a key ("" for none). An addition that is repeated, because it failed and may nevertheless have
	// happened, is made once.
	AddUsage(ctx context.Context, project, key string, a Addition, u Usage) error
	// Usage returns the days from first to last (2026-11-21), of a project, or of one key of it.
	Usage(ctx context.Context, project, key, first, last string) ([]Usage, error)
	// UsageOfAll returns what all projects have used together, by day.
	UsageOfAll(ctx context.Context, first, last string) ([]Usage, error)
	// UsageByProject returns what each project has used in some days, those with the most processor time first.
	UsageByProject(ctx context.Context, first, last string, most int) ([]ProjectUsage, error)
}

// Addition identifies an addition to counters: By adds to a day's counters of a project and a key one at a time, with a new Number each time. The zero Addition
// is never taken for a repeated one.
type Addition struct {
	By     string
	Number int64
}

// Searcher finds words in what was asked, answered, run and printed. Texts are indexed by AddTurn, FinishTurn and FinishExecution
// (code, and the first 64 KiB of what was printed), Chinese by pairs of characters.
type Searcher interface {
	// Search returns matches that have all the query's words, the newest first. The last word may be the beginning of one.
	Search(ctx context.Context, project, query string, p Page) (Listing[Found], error)
}

// Retainer deletes what is older than the operator keeps. Package store implements it; the hub does not need it.
type Retainer interface {
	// Retain deletes conversations and executions unused since, and audit rows from before audit. Zero times delete nothing of these.
	Retain(ctx context.Context, unusedSince, audit time.Time) (deleted int, err error)
}
