package wire

// The operations on processes that a session has beside its kernels. Such a process belongs to no channel and to no connection: it lives until it ends, over
// checkpoints too, and is known by the id that its host gave it.
const (
	// OpProcessStart: starts Request.Start. The guest answers with a Response whose body is the JSON of a ProcessInfo.
	OpProcessStart = "process.start"
	// OpProcessList: the guest answers with a Response whose body is a JSON array of ProcessInfo: those that run, and the last that have ended, the oldest first.
	OpProcessList = "process.list"
	// OpProcessFollow: the guest answers with a Response, then with FromProcess messages from the byte Request.Offset of the process's output on, or from the oldest
	// that is kept, the last of kind FromExit. Output waits for those who follow it, for as long as they read. With End only the last comes.
	OpProcessFollow = "process.follow"
	// OpProcessInput: bytes follow until EOF, for the process's standard input or terminal; with End that is its end. The guest answers with a Response when it has
	// taken them, with their Size, or a fault.
	OpProcessInput = "process.input"
	// OpProcessResize: gives the process's terminal another size. The guest answers with a Response.
	OpProcessResize = "process.resize"
	// OpProcessSignal: sends Request.Signal to the process's group; with All to everything that it has started, however it was left behind. The guest answers with a Response.
	OpProcessSignal = "process.signal"
)

// Bounds of the processes of one sandbox.
const (
	ProcessLimit      = 64        // that run at a time
	ProcessesEnded    = 32        // that have ended and are still known
	ProcessOutputKept = 1 << 20   // bytes of each one's output
	ProcessPiece      = 256 << 10 // bytes of output in one message at most
)

// ProcessStart says what to start, in a session of its own and as the sandboxed user, or as root.
type ProcessStart struct {
	ID       string        `json:"id"`
	Args     []string      `json:"args"` // a program without a slash is looked for in the PATH of Env
	Env      []string      `json:"env"`
	Dir      string        `json:"dir,omitempty"`      // "" means the workspace
	Label    string        `json:"label,omitempty"`    // of its caller's
	Root     bool          `json:"root,omitempty"`     // runs as root, where the sandbox has one; else a fault with FaultNoRoot
	Input    bool          `json:"input,omitempty"`    // its standard input is a pipe; else it has none
	Terminal *TerminalSize `json:"terminal,omitempty"` // it has a terminal in the place of pipes
	Followed bool          `json:"followed,omitempty"` // output waits for the first OpProcessFollow as for one who reads
	Timeout  int64         `json:"timeout,omitempty"`  // milliseconds, until all that it has started is killed; 0: never
	Memory   int64         `json:"memory,omitempty"`   // bytes that the sandbox may hold before its processes are killed; 0: any number
}

// TerminalSize is the size of a terminal, in characters.
type TerminalSize struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// ProcessInfo is a process as the guest knows it.
type ProcessInfo struct {
	ID       string        `json:"id"`
	PID      int           `json:"pid"`
	Args     []string      `json:"args"`
	Dir      string        `json:"dir"`
	Label    string        `json:"label,omitempty"`
	Root     bool          `json:"root,omitempty"`
	Input    bool          `json:"input,omitempty"` // it can be written to
	Terminal *TerminalSize `json:"terminal,omitempty"`
	Started  int64         `json:"started"`         // microseconds since 1970
	Ended    int64         `json:"ended,omitempty"` // 0: it runs
	Code     int           `json:"code,omitempty"`
	Signal   int           `json:"signal,omitempty"` // that ended it
	Late     bool          `json:"late,omitempty"`   // its time was over
	Memory   bool          `json:"memory,omitempty"` // the sandbox's memory was
	Kept     int64         `json:"kept"`             // the first byte of its output that is kept
	Written  int64         `json:"written"`          // bytes of output
}

// The kinds of FromProcess that only OpProcessFollow has. FromGap says that output is not kept any more; it goes on at At.
const (
	FromTerminal = "terminal" // the body is what was written to a terminal
	FromGap      = "gap"
)

// The faults of processes.
const (
	FaultNoProcess = "no_process" // none has that id
	FaultNoProgram = "no_program" // there is none to start
	FaultNoRoot    = "no_root"    // the sandbox has no root
	FaultMany      = "many"       // too many of what the message says
	FaultEnded     = "ended"      // the process has ended, or takes no input
)
