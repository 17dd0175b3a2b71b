// Package audit is the record of who did what: a row for every change that anybody asked for, also when it was refused.
package audit

import (
	"context"
	"time"
)

// Row is one entry. It never holds code, keys or contents of files.
type Row struct {
	ID      string    `json:"id"` // ident.Audit
	At      time.Time `json:"at"`
	Project string    `json:"project"`
	User    string    `json:"user"`
	Key     string    `json:"key,omitempty"`
	Action  string    `json:"action"` // "session.create"
	Target  string    `json:"target,omitempty"`
	Outcome string    `json:"outcome"`          // "ok", or the code of the problem
	Detail  string    `json:"detail,omitempty"` // e.g. the SHA-256 of the code
	Request string    `json:"request,omitempty"`
	IP      string    `json:"ip,omitempty"`
	Agent   string    `json:"agent,omitempty"`
}

// Log keeps rows. Package store implements it; rows are never changed.
type Log interface {
	// AddRow writes a row, unless one with its ID is there. Try and Add are for callers.
	AddRow(ctx context.Context, r Row) error
	// Rows returns the rows that a query asks for, the newest first.
	Rows(ctx context.Context, q Query) ([]Row, error)
}

// Query says which rows are wanted. What is zero does not matter.
type Query struct {
	Project, User, Key string // ids
	Action             string // "session.create", or all that begin so: "session"
	Target             string
	Outcome            string    // "ok", Refused, or the code of a problem
	From, To           time.Time // from the first moment on, and before the second
	Before             string    // the id of the row before which to begin
	Limit              int
}

// Refused stands for every outcome but "ok".
const Refused = "refused"
