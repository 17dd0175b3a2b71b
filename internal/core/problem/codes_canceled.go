package problem

// CanceledCode is a code of the kind Canceled: the caller gave up.
type CanceledCode string

// Kind implements Code.
func (CanceledCode) Kind() Kind { return Canceled }

func (c CanceledCode) String() string { return string(c) }

func (CanceledCode) sealed() {}

// The codes of the kind Canceled. The comment of each is its documentation for clients.
const (
	// The caller canceled the operation. Repeat it if its result is still needed.
	GivenUp = CanceledCode("canceled")
	// Nobody said in time whether the model's code may run (turn.approval_wait). Ask again.
	ApprovalLate = CanceledCode("approval_late")
	// No client brought the results of functions that code had called in time (turn.results_wait), and the code was stopped. Ask again.
	ResultsLate = CanceledCode("results_late")
	// The server was stopped at once, and what ran is lost. Try again when the server is back.
	Stopped = CanceledCode("stopped")
	// The client ended the request before its body was complete. Upload it again.
	UploadIncomplete = CanceledCode("upload_incomplete")
)
