package kernel

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/installation"
)

// Event is one thing that an execution emits. It is a closed sum type: Stream, Display, Result,
// Error, ClearOutput, File, Install, Rollback, ToolCall, CallAsks, CallsWait, InputRequest, InputReply, Widgets and Done. Everything but Install, Rollback and Done's measured fields comes from the sandbox and is hostile.
type Event interface{ event() }

// Stream is text that the code, its C libraries or its child processes wrote. Chunks of one stream come in
// order and never split a UTF-8 sequence; bytes that are not UTF-8 are passed through.
type Stream struct {
	Name string // "stdout" or "stderr"
	Data []byte
}

// Bundle is one object in several MIME types. Text types and images (base64) are strings; JSON types are any JSON value, which a kernel's events leave
// undecoded (json.RawMessage): it can be large, and few consumers read it.
type Bundle map[string]any

// MIMEPayload is the type of what Jupyter's protocol has as a payload in the reply to a request, and not in its output; see Request. Like all output it is what the sandbox says.
const MIMEPayload = "application/vnd.cove.payload+json"

// MIMEComm is the type of a message of a comm, as a JSON object: kind (comm_open, comm_msg, comm_close, or state, which tells of all comms), content and metadata as in Jupyter's protocol, and
// buffers in base64. Its text/plain is empty, and like all output it is what the sandbox says.
const MIMEComm = "application/vnd.cove.comm+json"

// Display is rich output that the code asked to show. Update replaces the earlier display with the same ID.
type Display struct {
	Data     Bundle
	Metadata map[string]any
	ID       string
	Update   bool
	Told     Told `json:",omitzero"`
}

// Result is the value of a cell's last expression.
type Result struct {
	Count    int // In[n], Out[n]
	Data     Bundle
	Metadata map[string]any
	Told     Told `json:",omitzero"`
}

// Error is an uncaught exception. Traceback is what Python prints for it, one line an element, without line ends
// or colours, ending in the "Name: value" line.
type Error struct {
	Name      string
	Value     string
	Traceback []string
	Hint      string // a sentence that helps to mend it, such as what replaces what a library removed, or the columns that a table has; ""
}

// ClearOutput asks to clear what was shown so far; with Wait, only when the next output comes.
type ClearOutput struct{ Wait bool }

// File is a workspace file that the execution created or changed. Path is relative to the workspace, slash-separated.
type File struct {
	Path    string
	Size    int64 // bytes
	Created bool  // false: it existed before
}

// Install is one step of installing what code imports, before the code runs or while it does. It comes from the host.
type Install struct {
	Progress  *installation.Progress // what the installation does now; nil when it is over
	Provision installation.Provision // the outcome
	Failure   *problem.Error         // why it failed; the code goes on without
	Restarted bool                   // a new interpreter was begun for it
}

// ToolCall is a call of a tool that was answered, or refused.
type ToolCall struct {
	Name      string        // what the code called; not always a tool that there is
	Arguments string        // JSON, of which the first kilobytes are kept
	Error     string        // why it came to nothing; "": it did what it was asked for
	Number    int           // of the execution's calls, from 1
	Wall      time.Duration // until the answer
}

// CallAsks says that a call waits for somebody's word before it is made. A ToolCall with its number follows, unless the code ends first.
type CallAsks struct {
	Number    int // of the execution's calls
	Name      string
	Arguments string // JSON
}

// Parked ends the events of an execution whose code waits, and whose kernel was let go; see Request.Park. It is for who has the kernel, and in no record. The zero Parked is of no execution.
type Parked struct{ execution *execution }

// InputRequest says that the code waits for a line, which Request.Inputs gets for it. An InputReply with its number follows, unless the code ends first.
type InputRequest struct {
	Number   int // of the execution's requests, from 1
	Prompt   string
	Password bool // what is typed is not to be shown
}

// InputReply is what the code got for a request.
type InputReply struct {
	Number int
	Text   string // "" where it is a password
	Secret bool   // it is a password, which no event has
	Ended  bool   // the code got no line, but the end of the input
}

// Typed returns what stands on a terminal after an answer, with dots for a password.
func (r InputReply) Typed() string {
	switch {
	case r.Ended:
		return "\n"
	case r.Secret:
		return "········\n"
	}
	return r.Text + "\n"
}

// CallsWait says that the code waits for results that its client has to bring. It comes from the host.
type CallsWait struct{ Calls []WaitingCall }

// WaitingCall is a call of a tool without an answer.
type WaitingCall struct {
	ID        string // by which the client brings the result
	Name      string
	Arguments string // a JSON object; not in what is recorded
}

// Rollback says that the session went back to an earlier state before the execution began, because its sandbox or its server had died, or an upgrade of the server had it start anew with its files. It comes from
// the host, before anything else of the first execution after that.
type Rollback struct {
	At         time.Time // when that was found out
	To         time.Time // when the state was saved that the session goes on from; zero: it starts anew
	Reason     string    // a sentence
	Executions []string  // ids of the executions that ended since: what they did to variables and files is gone
	More       int       // further ones, which are not listed
	Files      []string  // workspace files that these executions made or changed, as far as they are known
}

// String returns the event in a sentence or two.
func (r Rollback) String() string {
	text := "The session started anew"
	if !r.To.IsZero() {
		text = "The session went back to its state of " + r.To.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	if r.Reason != "" {
		text += " (" + strings.TrimSuffix(r.Reason, ".") + ")"
	}
	switch n := len(r.Executions) + r.More; n {
	case 0:
		text += "."
	case 1:
		text += "; what 1 execution did since then is gone."
	default:
		text += fmt.Sprintf("; what %d executions did since then is gone.", n)
	}
	if n := len(r.Files); n > 0 {
		text += fmt.Sprintf(" %d files are as they were then: %s.", n, strings.Join(r.Files[:min(n, filesNamed)], ", "))
	}
	return text
}

// filesNamed is how many files a sentence names.
const filesNamed = 10

// Done ends every execution, exactly once. Outcome, Wall and Lost are measured by the host or the guest, never by the code.
type Done struct {
	Outcome  Outcome
	ExitCode int           // of sys.exit; 1 on an uncaught exception; 0 otherwise
	Signal   string        // with OutcomeDied: the signal's name, e.g. "SIGSEGV", or "" for an exit
	Message  string        // a sentence for people when Outcome is not ok or error
	Wall     time.Duration // from request to reply
	Lost     Loss          // what the next execution starts without
	Dropped  int64         // bytes of output beyond the limit, not delivered
}

// Loss says what an execution's end took with it.
type Loss string

// The losses.
const (
	LostNothing Loss = ""
	LostKernel  Loss = "kernel"  // variables and imports are gone, files are kept
	LostSession Loss = "session" // the sandbox is gone with its files
)

// Outcome says how an execution ended.
type Outcome string

// The outcomes. The names are part of the documented event schema.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeError       Outcome = "error" // uncaught exception, or sys.exit with a code other than 0
	OutcomeTimeout     Outcome = "timeout"
	OutcomeInterrupted Outcome = "interrupted"
	OutcomeMemory      Outcome = "out_of_memory"
	OutcomeDied        Outcome = "kernel_died"
	OutcomeProtocol    Outcome = "kernel_protocol_error"
	OutcomeSandboxDied Outcome = "sandbox_died"
	OutcomeRestart     Outcome = "needs_restart" // no code was run: the packages that it needs require a new interpreter
)

func (Stream) event()       {}
func (Display) event()      {}
func (Result) event()       {}
func (Error) event()        {}
func (ClearOutput) event()  {}
func (File) event()         {}
func (Install) event()      {}
func (Rollback) event()     {}
func (ToolCall) event()     {}
func (CallAsks) event()     {}
func (CallsWait) event()    {}
func (InputRequest) event() {}
func (InputReply) event()   {}
func (Parked) event()       {}
func (Done) event()         {}

// Mode says how code is run.
type Mode string

// The modes.
const (
	Cell   Mode = "cell"   // like a notebook cell: the last expression is shown, names are kept
	Script Mode = "script" // like `python FILE`: __main__, sys.argv, no echo
)

// Request is one execution.
type Request struct {
	Code string
	Mode Mode // "" means Cell
	// Kernel names the session's kernel that runs the code; "" is "main". Package session uses it; this package ignores it.
	Kernel string
	// Filename is shown in tracebacks and is __file__ in Script mode; "" gives cells a name of their own.
	Filename string
	Args     []string      // sys.argv[1:]
	Timeout  time.Duration // wall clock; 0 means none
	// OutputLimit bounds the bytes of streams and displays that are delivered; 0 means DefaultOutputLimit.
	OutputLimit int64
	// Environment are variables that are set before the code runs, and stay set in its interpreter.
	Environment map[string]string
	// Standalone has interactive figures (Plotly) carry a self-contained HTML page as well.
	Standalone bool
	// Model says that a language model wrote the code and reads what comes of it: tables and figures come with a form of their own for it (Told), and print() shows more columns.
	Model bool
	// Columns is how many characters a line has where people read the output, as on a terminal; 0: nobody knows.
	Columns int
	// Unnumbered code takes no number and is not kept in In and Out; in Cell mode.
	Unnumbered bool
	// Payloads says that the client takes what Jupyter's protocol has it do after a cell: pages of a pager, and text for the next cell. Each comes as a Display of the type MIMEPayload;
	// for other clients pages are printed. It takes messages of comms, too: each comes as a Display of the type MIMEComm.
	Payloads bool
	// Widgets says that the client shows widgets by their states: events Widgets tell them. It does not go with Payloads.
	Widgets bool
	// Parent is what a client of Jupyter's protocol calls the message that has the code run; an Output widget asks for it.
	Parent string
	// Input answers input() and getpass(); nil makes them raise EOFError, unless there are Inputs. The execution's Timeout does not run meanwhile.
	Input func(prompt string, password bool) (string, error)
	// Inputs has events tell of what input() and getpass() ask, in the place of Input; nil: none do.
	Inputs *Inputs
	// Missing is asked for a module that the code imports and that is not there: a root module, or below it as far as is known ("google.cloud.storage").
	// loaded are the root modules that the kernel says it has imported. Missing returns the folders to add, none when the module cannot be installed; tell
	// yields an event to the consumer of the execution. Missing is not called from two goroutines at once, ctx ends with the execution, and the execution's end
	// waits for Missing to return. nil means that no module can be installed.
	Missing func(ctx context.Context, module string, loaded []string, tell func(Event)) (Paths, error)
	// Tools are what the code may call outside of its sandbox; nil: nothing.
	Tools *Tools
	// Park returns a channel that is closed when the kernel is to be let go while the code does nothing but wait for calls of Tools that nobody performs at the moment. The execution ends with Parked then, and goes
	// on with Kernel.Continue. nil, or a nil channel: never.
	Park func() <-chan struct{}
	// Restart has the session start a new interpreter first; this package ignores it.
	Restart bool
}

// Longest is the longest time that the request may take: its time, and what its code may wait for tools and for input. 0 is no limit.
func (r Request) Longest() time.Duration {
	longest := r.Timeout
	if longest == 0 {
		return 0
	}
	if r.Tools != nil {
		longest += r.Tools.patience()
	}
	if r.Input != nil || r.Inputs != nil {
		longest += InputPatience
	}
	return longest
}

// Paths are folders with packages, as seen in the sandbox.
type Paths struct {
	First []string // before the environment's own packages, after the standard library
	Last  []string // after the environment's own packages
}

// Variables are what the environment's Python finds the packages by when it starts; see cove_layers.py in package pyenv.
func (p Paths) Variables() map[string]string {
	out := map[string]string{}
	for name, folders := range map[string][]string{"COVE_LAYERS_FIRST": p.First, "COVE_LAYERS": p.Last} {
		if len(folders) > 0 {
			out[name] = strings.Join(folders, ":")
		}
	}
	return out
}
