//nolint:revive // aliases have their comments where the types are
package hub

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/server/hub/changes"
	"cove/internal/server/hub/files"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
	"cove/internal/server/hub/turns"
	"cove/internal/sessions/ondisk"
)

// What package live is asked with and returns, and what it needs of a session in memory.
type (
	Attachment      = live.Attachment
	WidgetMove      = live.WidgetMove
	NewExecution    = live.NewExecution
	FileSystem      = live.FileSystem
	FilesUse        = live.FilesUse
	Follower[E any] = live.Follower[E]
	Numbered[E any] = live.Numbered[E]
	Live            = live.Live
	Networked       = live.Networked
	Kernels         = live.Kernels
	Inspector       = live.Inspector
	Programs        = live.Programs
	PortDialer      = live.PortDialer
	Tree            = live.Tree
	TreeReader      = live.TreeReader
	Installer       = live.Installer
	Images          = live.Images
	InputReply      = live.InputReply
	Parker          = live.Parker
	Point           = live.Point
	NewSession      = live.NewSession
	SessionChange   = live.SessionChange
	ToolServers     = live.ToolServers
	Used            = live.Used
)

// Bounds of package live.
const (
	MostConnections = live.MostConnections
	SessionMemory   = live.SessionMemory
	MostUses        = live.MostUses
)

// What package files is asked with.
type (
	NewFile       = files.NewFile
	NewUpload     = files.NewUpload
	Piece         = files.Piece
	VolumeFolders = files.VolumeFolders
)

// What package turns is asked with and returns.
type (
	Word               = turns.Word
	CheckKind          = turns.CheckKind
	NewCheck           = turns.NewCheck
	Checked            = turns.Checked
	NewConversation    = turns.NewConversation
	ConversationChange = turns.ConversationChange
	ForkState          = turns.ForkState
	NewFork            = turns.NewFork
	Models             = turns.Models
	ModelInfo          = turns.ModelInfo
	QuestionChange     = turns.QuestionChange
)

// Kinds of checks, and what a fork goes on with.
const (
	CheckFindings  = turns.CheckFindings
	CheckReference = turns.CheckReference
	CheckOpenAPI   = turns.CheckOpenAPI
	CheckBenchmark = turns.CheckBenchmark
	StateThen      = turns.StateThen
	StateNow       = turns.StateNow
	StateNone      = turns.StateNone
)

// What package changes reports.
type (
	Change     = changes.Change
	ChangeKind = changes.ChangeKind
)

// The kinds of changes.
const (
	ChangedConversation = changes.ChangedConversation
	ChangedTurn         = changes.ChangedTurn
	ChangedSession      = changes.ChangedSession
	ChangedExecution    = changes.ChangedExecution
	ChangedMuch         = changes.ChangedMuch
)

// The records and stores of package record, under the names by which all who use the hub know them.
type (
	AnswerDay          = record.AnswerDay
	Work               = record.Work
	AnswerStore        = record.AnswerStore
	Connection         = record.Connection
	TurnCopy           = record.TurnCopy
	ForkStore          = record.ForkStore
	Page               = record.Page
	Listing[T any]     = record.Listing[T]
	Event              = record.Event
	TurnEvent          = record.TurnEvent
	Limits             = record.Limits
	Quota              = record.Quota
	Reach              = record.Reach
	SessionLink        = record.SessionLink
	LinkStore          = record.LinkStore
	TurnMarks          = record.TurnMarks
	Undone             = record.Undone
	Rerun              = record.Rerun
	Network            = record.Network
	Secrets            = record.Secrets
	NetworkLimits      = record.NetworkLimits
	Rememberer         = record.Rememberer
	Question           = record.Question
	Held               = record.Held
	QuestionBounds     = record.QuestionBounds
	QuestionStore      = record.QuestionStore
	Taken              = record.Taken
	Rating             = record.Rating
	Redaction          = record.Redaction
	CodePolicy         = record.CodePolicy
	CodeRules          = record.CodeRules
	Share              = record.Share
	ShareStore         = record.ShareStore
	Store              = record.Store
	ConnectionStore    = record.ConnectionStore
	SessionFilter      = record.SessionFilter
	SessionStore       = record.SessionStore
	SessionUseStore    = record.SessionUseStore
	OwnerStore         = record.OwnerStore
	Where              = record.Where
	ExecutionFilter    = record.ExecutionFilter
	ExecutionStore     = record.ExecutionStore
	ConversationFilter = record.ConversationFilter
	ConversationStore  = record.ConversationStore
	TurnStore          = record.TurnStore
	TurnNotes          = record.TurnNotes
	TurnReader         = record.TurnReader
	TurnTexts          = record.TurnTexts
	FileStore          = record.FileStore
	UploadStore        = record.UploadStore
	UsageStore         = record.UsageStore
	Addition           = record.Addition
	Searcher           = record.Searcher
	Retainer           = record.Retainer
	Tries              = record.Tries
	TurnTries          = record.TurnTries
	Asked              = record.Asked
	Choice             = record.Choice
	NewTurn            = record.NewTurn
	SessionState       = record.SessionState
	Session            = record.Session
	SessionOrigin      = record.SessionOrigin
	SessionImage       = record.SessionImage
	Rollback           = record.Rollback
	Kernel             = record.Kernel
	ExecutionState     = record.ExecutionState
	Execution          = record.Execution
	Conversation       = record.Conversation
	ConversationOrigin = record.ConversationOrigin
	Approval           = record.Approval
	Waiting            = record.Waiting
	TurnState          = record.TurnState
	Turn               = record.Turn
	TurnOrigin         = record.TurnOrigin
	TurnFile           = record.TurnFile
	Context            = record.Context
	File               = record.File
	Upload             = record.Upload
	Usage              = record.Usage
	ProjectUsage       = record.ProjectUsage
	Found              = record.Found
	UploadBounds       = record.UploadBounds
	SessionUse         = record.SessionUse
	Volume             = record.Volume
	VolumeMount        = record.VolumeMount
	VolumeStore        = record.VolumeStore
)

// Values of fields of records.
const (
	LinkRead         = record.LinkRead
	LinkWrite        = record.LinkWrite
	LinkPort         = record.LinkPort
	LinkMachine      = record.LinkMachine
	CodeOff          = record.CodeOff
	CodeNote         = record.CodeNote
	CodeAsk          = record.CodeAsk
	CodeRefuse       = record.CodeRefuse
	MostTries        = record.MostTries
	ChosenByCheck    = record.ChosenByCheck
	ChosenByMost     = record.ChosenByMost
	ChosenByModel    = record.ChosenByModel
	ChosenFirst      = record.ChosenFirst
	SessionActive    = record.SessionActive
	SessionPaused    = record.SessionPaused
	SessionLost      = record.SessionLost
	SessionDeleted   = record.SessionDeleted
	ExecutionQueued  = record.ExecutionQueued
	ExecutionRunning = record.ExecutionRunning
	ExecutionLost    = record.ExecutionLost
	ApprovalNever    = record.ApprovalNever
	ApprovalAlways   = record.ApprovalAlways
	TurnRunning      = record.TurnRunning
	TurnCompleted    = record.TurnCompleted
	TurnWaiting      = record.TurnWaiting
	TurnFailed       = record.TurnFailed
	TurnCanceled     = record.TurnCanceled
	TurnLost         = record.TurnLost
)

// DefaultLimits are the limits of a server on this machine without settings.
func DefaultLimits() Limits { return record.DefaultLimits() }

// CallOfCode takes the id of a call that code made apart.
func CallOfCode(id string) (execution string, number int, ok bool) { return live.CallOfCode(id) }

// LiveOf returns a session on the disk that is leased as a session in memory.
func LiveOf(s *ondisk.LeasedSession) (Live, error) { return live.SessionOf(s) }

// Patiently calls do again while it fails because something is full for the moment.
func Patiently(ctx context.Context, do func() error, full ...problem.Code) error {
	return live.Patiently(ctx, do, full...)
}

// TitleOf is the first words of a prompt, as a conversation without a title gets them.
func TitleOf(prompt string) string { return turns.TitleOf(prompt) }

// CleanTitle returns what a model wrote as a title; see turns.CleanTitle.
func CleanTitle(text string) string { return turns.CleanTitle(text) }

// Outdated says of each turn of a branch whether code of it or before it ran again after its answer was written; see turns.Outdated.
func Outdated(branch []Turn) []bool { return turns.Outdated(branch) }

// ErrForkTooLarge is the problem of a branch that a fork cannot copy.
func ErrForkTooLarge() *problem.Error { return turns.ErrForkTooLarge() }

// ErrTurnRunning is the problem of a conversation in which a turn runs.
func ErrTurnRunning() *problem.Error { return turns.ErrTurnRunning() }
