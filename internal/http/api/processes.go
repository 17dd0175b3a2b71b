package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/http"
	"time"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

// Process is a process of a session. What it is called inside the sandbox is the sandbox's word.
type Process struct {
	ID        string        `json:"id" example:"prc_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Session   string        `json:"session"`
	PID       int           `json:"pid" doc:"In the sandbox"`
	Command   []string      `json:"command"`
	Folder    string        `json:"folder"`
	Label     string        `json:"label,omitempty"`
	Root      bool          `json:"root,omitempty" doc:"It runs as root"`
	Input     bool          `json:"input" doc:"It can be written to"`
	Terminal  *TerminalSize `json:"terminal,omitempty" doc:"Where it has one"`
	State     string        `json:"state" enum:"running,ended"`
	Started   time.Time     `json:"started_at"`
	Exit      *ProcessExit  `json:"exit,omitempty" doc:"Of one that has ended"`
	Kept      int64         `json:"kept_from" doc:"The first byte of its output that is kept"`
	LastEvent int64         `json:"last_event" doc:"Bytes of output so far; events are numbered by them"`
}

// ProcessExit is the end of a process.
type ProcessExit struct {
	At     time.Time      `json:"at"`
	Code   int            `json:"code" doc:"Its exit status, where no signal ended it"`
	Signal string         `json:"signal,omitempty" example:"SIGKILL"`
	Reason process.Reason `json:"reason,omitempty" enum:"timeout,memory" doc:"Why cove ended it"`
}

// TerminalSize is the size of a terminal, in characters.
type TerminalSize struct {
	Columns int `json:"columns" minimum:"1" maximum:"2000" example:"80"`
	Rows    int `json:"rows" minimum:"1" maximum:"2000" example:"24"`
}

// ProcessOutput is the data of an event about output. It has a text, or data where the bytes are none, or hardly one.
type ProcessOutput struct {
	Type process.Kind `json:"type"`
	Text string       `json:"text,omitempty"`
	Data []byte       `json:"data,omitempty"`
	Exit *ProcessExit `json:"exit,omitempty"`
}

func processOf(session string, p process.Info) Process {
	out := Process{ID: p.ID, Session: session, PID: p.PID, Command: p.Args, Folder: p.Dir, Label: p.Label, Root: p.Root, Input: p.Input, Terminal: terminalOf(p.Terminal), State: "running",
		Started: p.Started.UTC(), Exit: exitOf(p.Exit), Kept: p.Kept, LastEvent: p.Written}
	if out.Exit != nil {
		out.State = "ended"
	}
	return out
}

func terminalOf(s *process.Size) *TerminalSize {
	if s == nil {
		return nil
	}
	return &TerminalSize{Columns: s.Columns, Rows: s.Rows}
}

func exitOf(e *process.Exit) *ProcessExit {
	if e == nil {
		return nil
	}
	return &ProcessExit{At: e.At.UTC(), Code: e.Code, Signal: e.Signal, Reason: e.Reason}
}

// Info is what a client made of a process.
func (p Process) Info() process.Info {
	out := process.Info{ID: p.ID, PID: p.PID, Args: p.Command, Dir: p.Folder, Label: p.Label, Root: p.Root, Input: p.Input, Started: p.Started, Exit: p.Exit.exit(), Kept: p.Kept, Written: p.LastEvent}
	if p.Terminal != nil {
		out.Terminal = &process.Size{Columns: p.Terminal.Columns, Rows: p.Terminal.Rows}
	}
	return out
}

func (e *ProcessExit) exit() *process.Exit {
	if e == nil {
		return nil
	}
	return &process.Exit{At: e.At, Code: e.Code, Signal: e.Signal, Reason: e.Reason}
}

// NewProcess says what to start.
type NewProcess struct {
	Command  []string          `json:"command,omitempty" maxItems:"4096" doc:"The program and its arguments"`
	Line     string            `json:"line,omitempty" maxLength:"131072" doc:"In its place: a line for bash"`
	Folder   string            `json:"folder,omitempty" maxLength:"4096" doc:"Relative to the workspace, or absolute; the workspace when left out"`
	Env      map[string]string `json:"env,omitempty" doc:"Variables, beside those that code of the session has"`
	Label    string            `json:"label,omitempty" maxLength:"100" doc:"Of yours, to find it again"`
	Root     bool              `json:"root,omitempty" doc:"It runs as root, in a session that was made with root"`
	Input    bool              `json:"input,omitempty" doc:"It gets an input that you can write to; without one it reads an end at once"`
	Terminal *TerminalSize     `json:"terminal,omitempty" doc:"It gets a terminal in the place of pipes, whatever input is"`
	Follow   bool              `json:"follow,omitempty" doc:"You are going to follow its events: its output waits for the first who does, for some seconds, when there is more of it than is kept"`
	Timeout  float64           `json:"timeout_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"Until it and all that it has started is killed; never when left out"`
}

// Start is what the hub is asked for.
func (n NewProcess) start() process.Start {
	out := process.Start{Args: n.Command, Line: n.Line, Dir: n.Folder, Env: n.Env, Label: n.Label, Root: n.Root, Input: n.Input, Followed: n.Follow, Timeout: time.Duration(n.Timeout * float64(time.Second))}
	if n.Terminal != nil {
		out.Terminal = &process.Size{Columns: n.Terminal.Columns, Rows: n.Terminal.Rows}
	}
	return out
}

// NewProcessOf is the request for a start.
func NewProcessOf(s process.Start) NewProcess {
	return NewProcess{Command: s.Args, Line: s.Line, Folder: s.Dir, Env: s.Env, Label: s.Label, Root: s.Root, Input: s.Input, Terminal: terminalOf(s.Terminal), Follow: s.Followed, Timeout: s.Timeout.Seconds()}
}

// Written is how much of an input a process was given.
type Written struct {
	Bytes int64 `json:"bytes"`
}

// ProcessSignal is a signal to send.
type ProcessSignal struct {
	Signal string `json:"signal" maxLength:"20" example:"INT" doc:"Its name, with or without SIG, or its number"`
	All    bool   `json:"all,omitempty" doc:"To everything that the process has started, also what it has left behind; else to its process group"`
}

type (
	createProcess struct {
		SessionPath
		Stream bool `query:"stream" doc:"Answer with its events. 'Accept: text/event-stream' does the same"`
		Body   NewProcess
	}
	// ProcessPath names a process in an address.
	ProcessPath struct {
		SessionPath
		Process string `path:"process" maxLength:"64" example:"prc_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	followProcess struct {
		ProcessPath
		Point
	}
	outputOfProcess struct {
		ProcessPath
		Of    process.Kind `query:"of" enum:"stdout,stderr,terminal" doc:"Which of its streams; stdout when left out, terminal where it has one"`
		After int64        `query:"after" minimum:"0" doc:"A position of its output, as the ids of events are"`
	}
	writeProcess struct {
		ProcessPath
		End bool `query:"end" doc:"Nothing comes after this; on a terminal that is Ctrl-D"`
	}
	resizeProcess struct {
		ProcessPath
		Body TerminalSize
	}
	signalProcess struct {
		ProcessPath
		Body ProcessSignal
	}
)

func (s *server) addProcesses() {
	const tag, at = "processes", "/sessions/{session}/processes"
	unknown := []problem.Code{problem.SessionNotFound, problem.ProcessNotFound}
	addRaw(s, operation{id: "process.start", method: http.MethodPost, path: at, tag: tag, action: auth.SessionsExecute, repeat: repeatKept, summary: "Start a process",
		about: "It belongs to the session: it goes on whether or not you stay, and is saved, paused, resumed and forked with the session. The answer comes when it runs; with `Accept: text/event-stream` its events " +
			"follow in the same answer, the first, `process`, with its id. That takes the right `sessions:read` as well, and no Idempotency-Key.",
		errors: []problem.Code{problem.SessionNotFound, problem.ProcessInvalid, problem.ProgramMissing, problem.InvalidPath, problem.TooManyProcesses, problem.ProcessesAbsent},
		example: `PROCESS=$(curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/processes \
  -d '{"line":"echo hello; cat","input":true}' | field id)
# a terminal
curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/processes \
  -d '{"command":["bash"],"terminal":{"columns":80,"rows":24}}'
# what it writes, in the same answer
curl -N -H "Authorization: Bearer $KEY" -H "Accept: text/event-stream" $COVE/sessions/$SESSION/processes \
  -d '{"line":"seq 3"}'`}, s.startProcess)
	add(s, operation{id: "process.list", method: http.MethodGet, path: at, tag: tag, action: auth.SessionsRead, summary: "List a session's processes",
		about: "Those that run, and the last that have ended, the oldest first.", errors: unknown[:1],
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/processes`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (List[Process], error) {
			all, err := s.o.Hub.Processes(ctx, who, in.Session)
			return List[Process]{Items: each(all, func(p process.Info) Process { return processOf(in.Session, p) })}, err
		})
	add(s, operation{id: "process.get", method: http.MethodGet, path: at + "/{process}", tag: tag, action: auth.SessionsRead, summary: "Get a process", errors: unknown,
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/processes/$PROCESS`},
		func(ctx context.Context, who auth.Principal, in *ProcessPath) (Process, error) {
			out, err := s.o.Hub.Process(ctx, who, in.Session, in.Process)
			return processOf(in.Session, out), err
		})
	addRaw(s, operation{id: "process.input", method: http.MethodPost, path: at + "/{process}/input", tag: tag, action: auth.SessionsExecute, raw: true, summary: "Write to a process",
		about:   "The body is what its input or its terminal gets. The answer comes when the process's pipe has taken all of it: where a process does not read, that can be never.",
		errors:  append(unknown, problem.ProcessEnded, problem.TooManyProcesses, problem.SessionTaken),
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/processes/$PROCESS/input?end=true" --data-binary 'more'`}, s.writeProcess)
	addRaw(s, operation{id: "process.events", method: http.MethodGet, path: at + "/{process}/events", tag: tag, action: auth.SessionsRead, summary: "Follow a process",
		about:   "Its output from any point of what is kept, as it comes, until the process has ended. Several clients may follow at once; output waits for those who read. A client that follows keeps the session from being paused for being idle.",
		errors:  append(unknown, problem.SessionTaken),
		example: `curl -N -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/processes/$PROCESS/events?after=6"`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *followProcess) error {
			from, err := point(r, in.After)
			if err != nil {
				return err
			}
			return s.stream(w, r, sse.Event{}, func(ctx context.Context) (iter.Seq2[sse.Event, error], error) {
				events, err := s.o.Hub.FollowProcess(ctx, who, in.Session, in.Process, from)
				return processEvents(events, from), err
			})
		})
	addRaw(s, operation{id: "process.output", method: http.MethodGet, path: at + "/{process}/output", tag: tag, action: auth.SessionsRead, summary: "Read a process's output",
		about: "One of its streams, byte for byte as it comes, until the process has ended. Much faster than events where it is much. An answer that breaks off is not whole: " +
			"the session is needed by somebody else, or bytes were not kept.",
		errors:  append(unknown, problem.SessionTaken),
		example: `curl -N -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/processes/$PROCESS/output"`}, s.processOutput)
	addSilent(s, operation{id: "process.resize", method: http.MethodPut, path: at + "/{process}/terminal", tag: tag, action: auth.SessionsExecute, summary: "Resize a process's terminal",
		errors: append(unknown, problem.ProcessEnded, problem.ProcessInvalid), example: `SHELL=$(curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/processes \
  -d '{"command":["bash"],"terminal":{"columns":80,"rows":24}}' | field id)
curl -H "Authorization: Bearer $KEY" -X PUT $COVE/sessions/$SESSION/processes/$SHELL/terminal \
  -d '{"columns":120,"rows":40}'`},
		func(ctx context.Context, who auth.Principal, in *resizeProcess) error {
			return s.o.Hub.ResizeProcess(ctx, who, in.Session, in.Process, process.Size{Columns: in.Body.Columns, Rows: in.Body.Rows})
		})
	addSilent(s, operation{id: "process.signal", method: http.MethodPost, path: at + "/{process}/signal", tag: tag, action: auth.SessionsExecute, summary: "Send a signal to a process",
		errors: append(unknown, problem.ProcessEnded, problem.ProcessInvalid), example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/processes/$SHELL/signal \
  -d '{"signal":"KILL","all":true}'`},
		func(ctx context.Context, who auth.Principal, in *signalProcess) error {
			return s.o.Hub.SignalProcess(ctx, who, in.Session, in.Process, in.Body.Signal, in.Body.All)
		})
}

func (s *server) startProcess(w http.ResponseWriter, r *http.Request, who auth.Principal, in *createProcess) error {
	if !in.Stream && !wantsEvents(r.Header.Values("Accept")) {
		out, err := s.o.Hub.StartProcess(r.Context(), who, in.Session, in.Body.start())
		if err == nil {
			writeJSON(w, http.StatusCreated, processOf(in.Session, out))
		}
		return err
	}
	if r.Header.Get("Idempotency-Key") != "" { // what it writes can be too much to be kept for another answer
		return problem.New(problem.InvalidRequest, "an answer with the events of a process cannot be repeated for an Idempotency-Key").WithHint("start the process without a stream, then follow its events")
	}
	return s.stream(w, r, sse.Event{}, func(ctx context.Context) (iter.Seq2[sse.Event, error], error) {
		info, events, err := s.o.Hub.RunProcess(ctx, who, in.Session, in.Body.start())
		return func(yield func(sse.Event, error) bool) {
			if !yield(object("process", processOf(in.Session, info)), nil) {
				return
			}
			processEvents(events, 0)(yield)
		}, err
	})
}

func (s *server) writeProcess(w http.ResponseWriter, r *http.Request, who auth.Principal, in *writeProcess) error {
	n, err := s.o.Hub.TellProcess(r.Context(), who, in.Session, in.Process, uploaded(w, r, s.o.MaxFile), in.End)
	if err != nil {
		return uploadFailed(r, err)
	}
	writeJSON(w, http.StatusOK, Written{Bytes: n})
	return nil
}

// processOutput answers with the bytes of one stream.
func (s *server) processOutput(w http.ResponseWriter, r *http.Request, who auth.Principal, in *outputOfProcess) error {
	info, err := s.o.Hub.Process(r.Context(), who, in.Session, in.Process)
	if err != nil {
		return err
	}
	of := in.Of
	if of == "" {
		of = process.Stdout
		if info.Terminal != nil {
			of = process.Terminal
		}
	}
	events, err := s.o.Hub.FollowProcess(r.Context(), who, in.Session, in.Process, in.After)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	to := http.NewResponseController(w)
	for e, err := range events {
		switch {
		case err != nil || e.Kind == process.Gap:
			panic(http.ErrAbortHandler) // so that what came is not taken for the whole
		case e.Kind != of:
			continue
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil // the client has gone
		}
		if err := to.Flush(); err != nil {
			return nil
		}
		if e.Recycle != nil {
			e.Recycle()
		}
	}
	return nil
}

// eventOutput is how many bytes of output are in an event at most: clients have a bound for its line, which is longer by a third or more.
const eventOutput = 63 << 10

// inPieces cuts large pieces of output.
func inPieces(events iter.Seq2[process.Event, error]) iter.Seq2[process.Event, error] {
	return func(yield func(process.Event, error) bool) {
		for e, err := range events {
			for len(e.Data) > eventOutput {
				piece := process.Event{Kind: e.Kind, At: e.At, Data: e.Data[:eventOutput]}
				if !yield(piece, nil) {
					return
				}
				e.At, e.Data = piece.Next(), e.Data[eventOutput:]
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// processEvents makes server-sent events of what a process emits. Their ids are the positions after them; that of the end is one more, for it has no bytes.
func processEvents(events iter.Seq2[process.Event, error], from int64) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		at := from
		for e, err := range inPieces(events) {
			if err != nil {
				yield(sse.Event{}, err)
				return
			}
			out := sse.Event{ID: e.Next(), Name: string(e.Kind)}
			var body any = ProcessOutput{Type: e.Kind, Exit: exitOf(e.Exit)}
			binary := false
			switch {
			case e.Kind == process.Gap:
				body = map[string]any{"type": e.Kind, "after": at, "until": e.At}
			case e.Kind == process.Ended:
				out.ID++
			case readable(e.Data):
				body = ProcessOutput{Type: e.Kind, Text: string(e.Data)}
			default:
				binary = true
			}
			at = e.Next()
			if binary {
				out.Data = binaryOutput(e.Kind, e.Data)
			} else if out.Data, err = json.Marshal(body); err != nil {
				yield(sse.Event{}, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// The JSON of a ProcessOutput with bytes, which is written and read without package json: that looks at each of a gigabyte of bytes several times.
const (
	beforeKind, beforeData, afterData = `{"type":"`, `","data":"`, `"}`
)

func binaryOutput(kind process.Kind, data []byte) []byte {
	out := make([]byte, 0, len(beforeKind)+len(kind)+len(beforeData)+base64.StdEncoding.EncodedLen(len(data))+len(afterData))
	out = append(append(append(out, beforeKind...), kind...), beforeData...)
	return append(base64.StdEncoding.AppendEncode(out, data), afterData...)
}

// ParseOutput reads the JSON of a ProcessOutput.
func ParseOutput(text []byte) (o ProcessOutput, err error) {
	if rest, ok := bytes.CutPrefix(text, []byte(beforeKind)); ok {
		kind, rest, ok := bytes.Cut(rest, []byte(beforeData))
		if data, whole := bytes.CutSuffix(rest, []byte(afterData)); ok && whole && len(kind) < 20 && !bytes.ContainsAny(kind, `"\`) {
			if o.Data, err = base64.StdEncoding.AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(len(data))), data); err == nil {
				o.Type = process.Kind(kind)
				return o, nil
			}
		}
	}
	err = json.Unmarshal(text, &o)
	return o, err
}

// readable says whether bytes are a text that JSON does not blow up: a control character takes six bytes in it.
func readable(text []byte) bool {
	controls := 0
	for _, b := range text {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' {
			if controls++; controls > len(text)/16 {
				return false
			}
		}
	}
	return utf8.Valid(text)
}

// Event is what a client makes of the data of an event that begins at a position.
func (o ProcessOutput) Event(at int64) process.Event {
	e := process.Event{Kind: o.Type, At: at, Data: o.Data, Exit: o.Exit.exit()}
	if o.Text != "" {
		e.Data = []byte(o.Text)
	}
	return e
}
