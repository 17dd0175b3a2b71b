package problem

// InternalCode is a code of the kind Internal: a fault of cove's own.
type InternalCode string

// Kind implements Code.
func (InternalCode) Kind() Kind { return Internal }

func (c InternalCode) String() string { return string(c) }

func (InternalCode) sealed() {}

// The codes of the kind Internal. The comment of each is its documentation for clients.
const (
	// The content of a stored file is missing on the server. Upload the file again.
	ContentMissing = InternalCode("content_missing")
	// The database file is damaged or is not a database. Move it aside, and restore a backup.
	DatabaseCorrupt = InternalCode("database_corrupt")
	// The session did not report how the execution ended. Run the code again.
	ExecutionUnfinished = InternalCode("execution_unfinished")
	// An execution ended without its last event. Ask again.
	ExecutionWithoutEnd = InternalCode("execution_without_end")
	// The program in the sandbox broke the protocol with its host. Use another session.
	GuestFault = InternalCode("guest_fault")
	// The server failed; its log has the details. Tell the operator the request_id.
	Fault = InternalCode("internal")
	// The question ended without an answer. Ask again.
	NoAnswer = InternalCode("no_answer")
	// The execution ended without an outcome. Run the code again.
	NoOutcome = InternalCode("no_outcome")
	// The server cannot end executions or turns that a former server left. Report this as a fault of cove.
	RecoverStuck = InternalCode("recover_stuck")
	// The session is in memory already. Report this as a fault of cove.
	SessionAttached = InternalCode("session_attached")
	// The turn ended without an answer. Ask again.
	TurnUnfinished = InternalCode("turn_unfinished")
	// The turn ended, but its end could not be recorded. Ask again.
	TurnUnrecorded = InternalCode("turn_unrecorded")
	// The Python interpreter of the template could not be started. Run `cove doctor`.
	WarmUpFailed = InternalCode("warm_up_failed")
)
