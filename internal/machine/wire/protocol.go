package wire

import "encoding/json"

// The operations that a host asks of a guest. Each uses a channel of its own: the host opens it and sends one message
// with a Request as header; what follows depends on the operation.
const (
	// OpFileWrite: the file's bytes follow until EOF; the guest answers with a Response that has the file's Size and Stamp.
	OpFileWrite = "file.write"
	// OpFileRead: the guest answers with a Response whose Size is the file's, then its bytes from Offset on until EOF.
	OpFileRead = "file.read"
	// OpFileList: the guest answers with a Response whose body is a JSON array of FileInfo.
	OpFileList = "file.list"
	// OpFileFolder: the guest answers with a Response whose body is a JSON array of FileInfo: the files and folders of the folder Path, by name.
	OpFileFolder = "file.folder"
	// OpFileStat: the guest answers with a Response whose body is the JSON of one FileInfo.
	OpFileStat = "file.stat"
	// OpFileMove: gives what is at Path the name To, where nothing may be. The guest answers with a Response that has its new Stamp.
	OpFileMove = "file.move"
	// OpFileRemove: removes a file or an empty folder, with All a folder with what is in it. The guest answers with a Response.
	OpFileRemove = "file.remove"
	// OpFileFolderMake: makes a folder, and those on the way to it. The guest answers with a Response.
	OpFileFolderMake = "file.folder.make"
	// OpProcessRun: the guest answers with a Response, then FromProcess messages, the last of kind FromExit.
	OpProcessRun = "process.run"
	// OpKernelStart: the request's body is the kernel driver's source. The guest answers with a Response; then ToKernel
	// messages go in and FromProcess messages come out, the last of kind FromExit. Closing the channel kills the kernel;
	// the end of the whole connection, or ToDetach, leaves it running with nobody listening.
	OpKernelStart = "kernel.start"
	// OpApartStart: as OpKernelStart, for a driver that sandboxed code must not be able to influence. Where the guest has a user for
	// that code, the driver runs as yet another, which the code can neither signal nor trace and whose files it cannot write; else
	// as the guest itself, as everything does. It is no kernel: it ends with its channel and with the connection, it cannot be
	// detached from, and no other channel can attach to it.
	OpApartStart = "apart.start"
	// OpKernelAttach: takes the living kernel with the request's PID over; then as for OpKernelStart. A channel that it had
	// before is reset. The fault of a kernel that is gone is FaultNotFound; its message says how it ended.
	OpKernelAttach = "kernel.attach"
	// OpForward: the guest listens at a port of the sandbox's own loopback interface and answers with a Response that has it. For each connection there it opens a
	// channel, on which the bytes of the connection go both ways and nothing else, and at most ForwardLimit at a time. It ends with its channel, and with it all
	// the connections. One connection between host and guest has one at a time.
	OpForward = "forward"
	// OpReboot: ends whatever the guest has started, kernels and processes, with all that these have started, and empties /dev/shm, as when a computer is switched off. The guest answers with a
	// Response when none of it is left.
	OpReboot = "reboot"
)

// ForwardLimit is how many connections OpForward serves at a time.
const ForwardLimit = 64

// ListLimit is how many files one listing has at most.
const ListLimit = 10000

// MessageLimit bounds one message between host and guest, and a kernel's message, in bytes.
const MessageLimit = 32 << 20

// Request opens an operation.
type Request struct {
	Op      string       `json:"op"`
	Path    string       `json:"path,omitempty"`   // files: relative to the workspace, slash-separated; "" is the workspace itself
	To      string       `json:"to,omitempty"`     // OpFileMove: as Path
	All     bool         `json:"all,omitempty"`    // OpFileRemove, OpProcessSignal
	Mode    uint32       `json:"mode,omitempty"`   // OpFileWrite: permission bits
	Offset  int64        `json:"offset,omitempty"` // OpFileRead, OpProcessFollow: where to begin
	Limit   int64        `json:"limit,omitempty"`  // OpFileRead: bytes to send at most; 0 means all
	PID     int          `json:"pid,omitempty"`    // OpKernelAttach: as in the Response that told of the kernel's start
	Process *ProcessSpec `json:"process,omitempty"`

	// Of processes; see OpProcessStart and what follows it.
	Start    *ProcessStart `json:"start,omitempty"`
	ID       string        `json:"id,omitempty"`
	End      bool          `json:"end,omitempty"`
	Signal   int           `json:"signal,omitempty"`
	Terminal *TerminalSize `json:"terminal,omitempty"`
	Most     int           `json:"most,omitempty"` // OpProcessFollow: bytes of output in one message; 0 means that a message fits into a frame
	Port     int           `json:"port,omitempty"` // OpPortDial
	Files    *FileSpec     `json:"files,omitempty"`
}

// ProcessSpec says what to start. The process runs in a session of its own, as the sandboxed user unless OpApartStart says otherwise.
type ProcessSpec struct {
	Args []string `json:"args"` // of a kernel or another driver: the interpreter and its flags; the guest adds the driver's path
	Env  []string `json:"env"`
	Dir  string   `json:"dir,omitempty"` // "" means the workspace, and "/" for OpApartStart
}

// Response answers a request. Code is "" on success.
type Response struct {
	Code    string `json:"code,omitempty"` // see the Fault constants
	Message string `json:"message,omitempty"`
	Size    int64  `json:"size,omitempty"`
	Stamp   string `json:"stamp,omitempty"` // as in FileInfo
	PID     int    `json:"pid,omitempty"`
	Port    int    `json:"port,omitempty"` // OpForward
	Busy    bool   `json:"busy,omitempty"` // OpKernelAttach: an execution was begun and not ended
	More    bool   `json:"more,omitempty"` // OpFileList, OpFileFolder: there are more than a listing holds
	// Modified is OpFileWrite's, as in FileInfo.
	Modified int64 `json:"modified,omitempty"`
}

// The faults of a Response.
const (
	FaultInvalid  = "invalid"
	FaultNotFound = "not_found"
	FaultNoSpace  = "no_space"
	FaultDenied   = "denied"
	FaultPath     = "path"      // no path inside the workspace, or not to what the operation is for
	FaultExists   = "exists"    // something is there already
	FaultNotEmpty = "not_empty" // a folder that has something in it
	FaultInternal = "internal"
)

// FileInfo is a file of the workspace. Stamp changes whenever the content may have changed.
type FileInfo struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Stamp    string `json:"stamp"`
	Folder   bool   `json:"folder,omitempty"`
	Link     bool   `json:"link,omitempty"`     // OpFileFolder: a symlink that leads to no file of the workspace
	Modified int64  `json:"modified,omitempty"` // microseconds since 1970; 0: not looked at
}

// ToKernel is the header of a message to a kernel or about it.
type ToKernel struct {
	Kind   string `json:"kind"`
	Signal int    `json:"signal,omitempty"`
	// Memory and Output begin an execution: bytes that the sandbox may hold before the kernel is killed, and bytes of
	// output to pass on before the rest is dropped.
	Memory int64 `json:"memory,omitempty"`
	Output int64 `json:"output,omitempty"`
}

// The kinds of ToKernel.
const (
	ToMessage = "message" // the body is a JSON message for the driver
	ToSignal  = "signal"  // to the kernel's process group
	ToBegin   = "begin"   // an execution begins: counters start again, memory is watched
	ToEnd     = "end"     // the execution is over: memory is watched no longer
	ToDetach  = "detach"  // the channel ends and the kernel lives on; the guest answers by closing the channel
	// ToPark is ToDetach in the middle of an execution: what the kernel writes and says waits in the kernel until another channel takes it over. GuestInfo.Parks says that a guest knows it.
	ToPark = "park"
)

// FromProcess is the header of a message from a process or kernel.
type FromProcess struct {
	Kind    string `json:"kind"`
	Code    int    `json:"code,omitempty"`    // FromExit: exit status
	Signal  int    `json:"signal,omitempty"`  // FromExit: the signal that killed it
	Memory  bool   `json:"memory,omitempty"`  // FromExit: the guest killed it for the sandbox's memory
	Dropped int64  `json:"dropped,omitempty"` // FromMessage, FromExit: bytes of output dropped since ToBegin, or while nobody listened
	Fault   string `json:"fault,omitempty"`   // FromExit: the kernel broke the protocol, and how
	At      int64  `json:"at,omitempty"`      // OpProcessFollow: where in the output the body begins
	Late    bool   `json:"late,omitempty"`    // FromExit: the process's time was over
}

// The kinds of FromProcess.
const (
	FromStdout  = "stdout"  // the body is output
	FromStderr  = "stderr"  // the body is output
	FromMessage = "message" // the body is a JSON message of the driver
	FromExit    = "exit"
)

// GuestInfo is the Info of a guest's Hello.
type GuestInfo struct {
	PID       int    `json:"pid"`
	Workspace string `json:"workspace"`
	Kernels   []int  `json:"kernels,omitempty"` // process ids of the kernels that live
	// Processes are the ids of the processes that run; nil from a guest that is older than OpProcessStart.
	Processes []string `json:"processes"`
	Files     bool     `json:"files"` // it knows OpFilesStat and what follows it
	Parks     bool     `json:"parks"` // it knows ToPark
}

// SessionInfo is the Info of a host's Hello.
type SessionInfo struct {
	Processors int `json:"processors,omitempty"` // that programs are to see; 0: as many as there are
}

// Encode returns v as JSON for a Hello; v must be one of this package's types.
func Encode(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}
