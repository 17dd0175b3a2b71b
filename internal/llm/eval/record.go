package eval

import "time"

// Record is what came of one task. One is a line of JSON in the folder of a run; fields may be added.
type Record struct {
	Task         string        `json:"task"`
	Series       string        `json:"series,omitempty"`
	Judged       bool          `json:"judged"` // false: cove or a service failed, and the task counts as not done
	Right        bool          `json:"right"`
	Checks       []CheckResult `json:"checks,omitempty"`
	Answer       string        `json:"answer"`                 // at most longestAnswer bytes
	Reason       string        `json:"reason,omitempty"`       // loop.AnswerReason
	Failure      *Failure      `json:"failure,omitempty"`      // why there is no answer
	Executions   []Execution   `json:"executions,omitempty"`   // of the model's code, in their order
	Installs     []Install     `json:"installs,omitempty"`     // packages that the model's code asked for
	Conversation string        `json:"conversation,omitempty"` // in the database of the run's folder
	Transcript   string        `json:"transcript,omitempty"`   // file in the run's folder
	Tokens       Tokens        `json:"tokens"`
	Cost         Cost          `json:"cost,omitzero"`
	Seconds      Seconds       `json:"seconds"`
	Started      time.Time     `json:"started"`
	Tried        *Tried        `json:"tried,omitempty"` // of a task that was answered several times
}

// CheckResult is what came of one check.
type CheckResult struct {
	Kind  CheckKind `json:"kind"`
	Right bool      `json:"right"`
	Why   string    `json:"why,omitempty"` // of one that is not passed; at most longestWhy bytes
}

// Failure is a problem that ended a task's turn.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Execution is how an execution of the model's code ended.
type Execution struct {
	Outcome string  `json:"outcome"`         // kernel.Outcome
	Error   string  `json:"error,omitempty"` // the name of the exception
	Seconds float64 `json:"seconds"`
}

// OK says whether the code ended without an error.
func (e Execution) OK() bool { return e.Outcome == "ok" }

// Install is a distribution that code asked for.
type Install struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Right   bool   `json:"right"`
	Code    string `json:"code,omitempty"` // of the problem, where it was not installed
}

// Tokens are those that a task took.
type Tokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Cached    int64 `json:"cached,omitempty"`
	Estimated bool  `json:"estimated,omitempty"`
}

// Cost is what tokens cost. Without a currency it is not known.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency,omitempty"`
}

// Seconds are wall-clock times of a task. Total is the sum of Model, Install, Run and Overhead, and goes from the opening of the session to the answer.
type Seconds struct {
	Total    float64 `json:"total"`
	Model    float64 `json:"model"`    // in requests to the model
	Install  float64 `json:"install"`  // in installations of packages
	Run      float64 `json:"run"`      // in the model's code
	Overhead float64 `json:"overhead"` // everything else: the sandbox's start, files, records, waiting for a processor
	Check    float64 `json:"check"`    // in the checks, which Total does not have
}

// generates and answers say whether the record has checks of code, and of the answer, and whether all of them are passed.
func (r Record) generates() (has, right bool) { return r.passed(true) }
func (r Record) answers() (has, right bool)   { return r.passed(false) }

func (r Record) passed(generates bool) (has, right bool) {
	right = true
	for _, c := range r.Checks {
		if c.Kind.Generates() == generates {
			has, right = true, right && c.Right
		}
	}
	return has, has && right
}
