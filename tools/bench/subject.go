package bench

import (
	"context"
	"fmt"
	"strings"
)

// About describes a subject.
type About struct {
	ID      string `json:"id"`                // names it on the command line and in the JSON
	Title   string `json:"title"`             // names it for people
	Note    string `json:"note,omitempty"`    // what a reader has to know for a fair comparison: the isolation above all
	Version string `json:"version,omitempty"` // known once it has started
	Absent  string `json:"absent,omitempty"`  // why it could not be measured, and how to get it
}

// Subject is one of the things that are compared. What it can do besides is in the small interfaces below; a row looks
// for the one that it needs and says so when it is missing.
type Subject interface {
	About() About
	// Start brings up what the subject needs before anything is timed. A subject whose Start fails is absent: the error
	// says why, and its hint how to get it. Stop is called in any case.
	Start(ctx context.Context) error
	// Stop frees everything.
	Stop(ctx context.Context) error
}

// Live is something that runs Python now.
type Live interface {
	// Run executes a task and returns once its result is in hand.
	Run(ctx context.Context, t Task) (Output, error)
	// Close frees it, including what it runs.
	Close(ctx context.Context) error
}

// Cold is a Subject that can start with nothing there but its server, if it has one.
type Cold interface {
	Cold(ctx context.Context) (Live, error)
}

// Pooled is a Subject that prepares ahead of need, as far as it can.
type Pooled interface {
	// Refill is called before each Claim and is not timed.
	Refill(ctx context.Context) error
	Claim(ctx context.Context) (Live, error)
}

// Reusable is a Subject that opens something which runs any number of tasks.
type Reusable interface {
	Open(ctx context.Context) (Live, error)
}

// Stateful is a Subject with many sessions that each keep variables and imports between executions.
type Stateful interface {
	Reusable
	// Join opens one of many sessions at once.
	Join(ctx context.Context) (Live, error)
	// Footprint is a generous guess at the bytes that a session takes without imports, to keep the machine from thrashing.
	Footprint() int64
}

// Creating is a Subject that is a server and makes sessions when clients ask for them.
type Creating interface {
	// Refill returns when what is prepared ahead of need is there. It is not timed.
	Refill(ctx context.Context) error
	// Create makes a session over the network and returns when it is ready for code.
	Create(ctx context.Context) (Live, error)
}

// Serving is such a server that many clients can use at once. Its Lives are Watched.
type Serving interface {
	Creating
	Footprint() int64 // as Stateful's
}

// Watched is a Live whose output can be watched while the code runs.
type Watched interface {
	Live
	// Watch executes code and hands each piece of its output to got as soon as it has arrived.
	Watch(ctx context.Context, code string, got func(text string)) error
}

// Pausing is a Subject whose sessions can become files. The Lives that it is given are its own.
type Pausing interface {
	Reusable
	// Folder makes an empty folder to save to; the caller removes it.
	Folder() (string, error)
	// Pause saves l to the empty folder dir; l is gone afterwards, unless it failed.
	Pause(ctx context.Context, l Live, dir string) error
	// Save saves l to the empty folder dir; l goes on.
	Save(ctx context.Context, l Live, dir string) error
	// Resume starts what dir has. dir is kept.
	Resume(ctx context.Context, dir string) (Live, error)
	// Fork starts a copy of l by way of the empty folder dir; l goes on.
	Fork(ctx context.Context, l Live, dir string) (Live, error)
}

// Variant is a Subject that differs from another one in some rows only; the others need not ask both.
type Variant interface {
	// Otherwise names the subject that it is the same as in the other rows.
	Otherwise() string
}

// Task is Python with a known answer.
type Task struct {
	Setup string // statements
	Expr  string // the expression whose value is the result; "" when the output itself is wanted
	Want  string // Expr's value as text
	Bytes int64  // with no Expr: how much Setup prints
}

// Cell is the task for a kernel, which shows the last expression.
func (t Task) Cell() string {
	if t.Expr == "" {
		return t.Setup
	}
	return t.Setup + "\n" + t.Expr
}

// Program is the task for `python -c`, which shows nothing by itself.
func (t Task) Program() string {
	if t.Expr == "" {
		return t.Setup
	}
	return t.Setup + "\nprint(" + t.Expr + ", flush=True)"
}

// Output is what a Live handed back.
type Output struct {
	Text  string // of the result
	Bytes int64  // printed
}

// Check tells whether o is the answer to t.
func (t Task) Check(o Output) error {
	if t.Expr == "" {
		if o.Bytes != t.Bytes {
			return fmt.Errorf("%d of %d bytes arrived", o.Bytes, t.Bytes)
		}
		return nil
	}
	if got := strings.TrimSpace(o.Text); got != t.Want {
		return fmt.Errorf("answered %.80q instead of %q", got, t.Want)
	}
	return nil
}

func imports() Task {
	return Task{Setup: "import numpy, pandas, matplotlib.pyplot", Expr: "1+1", Want: "2"}
}

func sum() Task { return Task{Expr: "1+1", Want: "2"} }

const floodBytes = 10_000_000

func flood() Task {
	return Task{Setup: "line = 'x' * 99\nfor _ in range(100_000):\n    print(line)", Bytes: floodBytes}
}
