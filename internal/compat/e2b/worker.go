package e2b

import (
	"bytes"
	"context"
	_ "embed" // worker.js, worker.sh
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cove/internal/auth"
	"cove/internal/problem"
	"cove/internal/process"
)

// Contexts of other languages than Python are processes of the session, which are saved, paused and forked with it. A program of this package runs in them: it reads a request
// a line, and writes what the code writes. What is beside the output is in frames, in the same streams, so that its place among the output is right: RS, a word that only
// this process has, the kind, and JSON. Nothing of this is a boundary: code that imitates a frame deceives its own client.

//go:embed worker.js
var nodeWorker string

//go:embed worker.sh
var bashWorker string

const (
	javascript, typescript, bash = "javascript", "typescript", "bash"

	workerLabel    = "e2b context " // begins the label of a context's process
	mostFrame      = 4 << 20        // bytes
	frameBegin     = "\x1e"
	interruptGrace = 3 * time.Second
)

// hasNode says whether sandboxes have Node.js: they see the host's programs.
var hasNode = sync.OnceValue(func() bool { _, err := exec.LookPath("node"); return err == nil })

// worker is the process of a context.
type worker struct {
	id   string
	mark string
	from int64 // the place of its output behind all that was read
}

// workerRequest is a piece of code for a worker.
type workerRequest struct {
	Code     string             `json:"code"`
	Language string             `json:"language"`
	Before   map[string]string  `json:"before"` // variables that are set before
	Behind   map[string]*string `json:"behind"` // what they become again; nil: they are removed
}

// asking has a worker say in a frame that it is ready. Code is sent when that was read: a process keeps little of what it writes while nobody follows it.
const asking = "?\n"

// line is the request as the worker of a language reads it.
func (r workerRequest) line() []byte {
	if r.Language != bash {
		text, _ := json.Marshal(r) // strings alone
		return append(text, '\n')
	}
	code, behind := "", ""
	for _, name := range slices.Sorted(maps.Keys(r.Before)) {
		code += "export " + name + "=" + quoted(r.Before[name]) + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(r.Behind)) {
		if value := r.Behind[name]; value != nil {
			behind += "export " + name + "=" + quoted(*value) + "\n"
		} else {
			behind += "unset " + name + "\n"
		}
	}
	encode := base64.StdEncoding.EncodeToString
	return []byte(encode([]byte(code+r.Code)) + " " + encode([]byte(behind+":")) + "\n")
}

// quoted is text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// workerStart is how the process of a context is started.
func workerStart(b sandbox, where codeContext, mark string) process.Start {
	start := process.Start{Dir: where.Dir, Env: b.record.Env, Label: workerLabel + where.ID, Input: true}
	if where.Language == bash {
		start.Args = []string{"bash", "--noprofile", "--norc", "-c", bashWorker, "bash", mark}
	} else {
		start.Args = []string{"node", "--experimental-repl-await", "-e", nodeWorker, mark}
	}
	return start
}

// workerOf returns the process of a context that runs, or starts one.
func (s *server) workerOf(ctx context.Context, b sandbox, where codeContext) (worker, error) {
	all, err := s.Hub.Processes(ctx, b.who, b.id)
	if err != nil {
		return worker{}, err
	}
	for _, i := range slices.Backward(all) {
		if i.Label == workerLabel+where.ID && i.Exit == nil && len(i.Args) > 0 {
			return worker{i.ID, i.Args[len(i.Args)-1], i.Written}, nil
		}
	}
	mark, _ := auth.RandomCode()
	info, err := s.Hub.StartProcess(ctx, b.who, b.id, workerStart(b, where, mark))
	if problem.Has(err, problem.ProgramMissing) {
		err = &fault{501, "there is no " + workerStart(b, where, mark).Args[0] + " in the sandboxes of this server, which " + where.Language + " takes; its operator can install it on the host"}
	}
	return worker{id: info.ID, mark: mark}, err
}

// endWorker ends the process of a context, if it runs.
func (s *server) endWorker(ctx context.Context, b sandbox, where codeContext) error {
	all, err := s.Hub.Processes(ctx, b.who, b.id)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Label == workerLabel+where.ID && i.Exit == nil {
			err = errors.Join(err, s.Hub.SignalProcess(ctx, b.who, b.id, i.ID, "KILL", true))
		}
	}
	return err
}

// runWorker runs code in a context's process and tells what comes of it; false where the client left before.
func (s *server) runWorker(ctx context.Context, b sandbox, where codeContext, r workerRequest, t *told) bool {
	w, err := s.workerOf(ctx, b, where)
	send := func(text []byte) error {
		_, err := s.Hub.TellProcess(ctx, b.who, b.id, w.id, bytes.NewReader(text), false)
		return err
	}
	if err == nil {
		err = send([]byte(asking))
	}
	if err != nil {
		_, text := said(err)
		return t.failure("ContextUnavailable", text, text)
	}
	// The reading goes on behind the client's leaving, until the process has taken the interrupt.
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		_ = s.Hub.SignalProcess(reading, b.who, b.id, w.id, "INT", false) // it may have ended
		time.AfterFunc(interruptGrace, stop)
	})()
	events, err := s.Hub.FollowProcess(reading, b.who, b.id, w.id, w.from)
	if err != nil {
		_, text := said(err)
		return t.failure("ContextUnavailable", text, text)
	}
	frames := frameReader{mark: w.mark, tell: t}
	sent := false
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for e, err := range beating(reading, events, beats.C) {
		switch {
		case err != nil && ctx.Err() != nil: // it did not take the interrupt
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			_ = s.endWorker(ending, b, where) // it ends with the session otherwise
			return false
		case err != nil:
			_, text := said(err)
			return t.failure("UnexpectedEndOfExecution", text, text)
		case e == nil:
			if !t.send(map[string]any{"type": "keepalive"}) && ctx.Err() == nil {
				return false
			}
		case e.Kind == process.Ended:
			return t.failure("ContextEnded", "the interpreter has ended: "+endOf(e.Exit).GetStatus(), "the next code begins with a new one")
		default:
			frames.add(e.Kind, e.Data)
		}
		if frames.ready && !sent {
			sent = true
			if err := send(r.line()); err != nil {
				_, text := said(err)
				return t.failure("ContextUnavailable", text, text)
			}
		}
		if frames.done() {
			return ctx.Err() == nil && !t.left
		}
	}
	return ctx.Err() == nil
}

// frameReader parts what a worker writes into output and frames.
type frameReader struct {
	mark   string
	tell   *told
	held   map[process.Kind][]byte // what may be the beginning of a frame
	ready  bool
	ended  map[process.Kind]bool
	failed bool
}

func (f *frameReader) done() bool { return f.ended[process.Stdout] && f.ended[process.Stderr] }

// add takes a piece of a stream.
func (f *frameReader) add(stream process.Kind, data []byte) {
	if stream != process.Stdout && stream != process.Stderr {
		return
	}
	if f.held == nil {
		f.held, f.ended = map[process.Kind][]byte{}, map[process.Kind]bool{}
	}
	rest := slices.Concat(f.held[stream], data)
	begin := []byte(frameBegin + f.mark + " ")
	for {
		at := bytes.Index(rest, begin)
		if at < 0 {
			keep := max(process.Partial(rest, begin), cutRune(rest))
			f.output(stream, rest[:len(rest)-keep])
			f.held[stream] = slices.Clone(rest[len(rest)-keep:])
			return
		}
		f.output(stream, rest[:at])
		rest = rest[at:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 && len(rest) < mostFrame {
			f.held[stream] = slices.Clone(rest)
			return
		}
		if end < 0 {
			end = len(rest) - 1
		}
		f.frame(stream, string(rest[len(begin):end]))
		rest = rest[end+1:]
	}
}

// cutRune is how many bytes at the end of text begin a character that goes on.
func cutRune(text []byte) int {
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if first := text[len(text)-n]; utf8.RuneStart(first) {
			if first >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func (f *frameReader) output(stream process.Kind, text []byte) {
	if len(text) > 0 && !f.ended[stream] {
		f.tell.stream(string(stream), strings.ToValidUTF8(string(text), "\uFFFD"))
	}
}

func (f *frameReader) frame(stream process.Kind, text string) {
	kind, value, _ := strings.Cut(text, " ")
	switch kind {
	case "ready":
		f.ready = true
	case "done":
		f.ended[stream] = true
		if value != "0" && stream == process.Stdout && !f.failed {
			f.tell.failure("ExitStatus", "the last command ended with status "+value, fmt.Sprintf("exit status %s", value))
		}
	case "result":
		if text, err := json.Marshal(map[string]json.RawMessage{"text/plain": json.RawMessage(value)}); err == nil {
			var b map[string]json.RawMessage
			_ = json.Unmarshal(text, &b) // was made a line above
			f.tell.result(b, true)
		}
	case "error":
		var e struct{ Name, Value, Traceback string }
		if json.Unmarshal([]byte(value), &e) == nil {
			f.failed = true
			f.tell.failure(e.Name, e.Value, e.Traceback)
		}
	}
}
