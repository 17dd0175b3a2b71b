package e2b

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

// Contexts of other languages than Python are processes of the session, which are saved, paused and forked with it. A program of this package runs in them: it reads a request
// a line, and writes what the code writes. What is beside the output is in frames, in the same streams, so that its place among the output is right: RS, a word that only
// this process has, the kind, and JSON. Nothing of this is a boundary: code that imitates a frame deceives its own client.

const (
	workerLabel    = "e2b context " // begins the label of a context's process
	mostFrame      = 4 << 20        // bytes
	mostLine       = 64 << 10
	frameBegin     = "\x1e"
	interruptGrace = 3 * time.Second
)

// worker is the process of a context.
type worker struct {
	id   string
	mark string
	from int64 // the place of its output after all that was read
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
func (q workerRequest) line() []byte {
	switch q.Language {
	case bash:
		return q.words()
	case rlang, java:
		return q.digits()
	}
	text, _ := json.Marshal(q) // strings alone
	return append(text, '\n')
}

// digits is the request in words of hexadecimal digits: c and the code, b and each variable before it, a and each after it.
func (q workerRequest) digits() []byte {
	out := append([]byte("c"), hex.EncodeToString([]byte(q.Code))...)
	for _, name := range slices.Sorted(maps.Keys(q.Before)) {
		out = fmt.Appendf(out, " b%x=%x", name, q.Before[name])
	}
	for _, name := range slices.Sorted(maps.Keys(q.Behind)) {
		out = fmt.Appendf(out, " a%x", name)
		if value := q.Behind[name]; value != nil {
			out = fmt.Appendf(out, "=%x", *value)
		}
	}
	return append(out, '\n')
}

// words is the request as two texts in base64, what is to be run and what is after it.
func (q workerRequest) words() []byte {
	code, behind := "", ""
	for _, name := range slices.Sorted(maps.Keys(q.Before)) {
		code += "export " + name + "=" + quoted(q.Before[name]) + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(q.Behind)) {
		if value := q.Behind[name]; value != nil {
			behind += "export " + name + "=" + quoted(*value) + "\n"
		} else {
			behind += "unset " + name + "\n"
		}
	}
	encode := base64.StdEncoding.EncodeToString
	return []byte(encode([]byte(code+q.Code)) + " " + encode([]byte(behind+":")) + "\n")
}

// quoted is text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// workerStart is how the process of a context is started.
func workerStart(b sandbox, where codeContext, mark string) process.Start {
	args := append(slices.Clone(languages[where.Language].args), mark)
	return process.Start{Args: args, Dir: where.Dir, Env: b.record.Env, Label: workerLabel + where.ID, Input: true}
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
		err = &fault{http.StatusNotImplemented, "there is no " + languages[where.Language].install + " in the sandboxes of this server any more, which " + where.Language + " takes; its operator can install it on the host"}
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
func (s *server) runWorker(ctx context.Context, b sandbox, where codeContext, q workerRequest, t *told) bool {
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
	// The reading goes on after the client's leaving, until the process has taken the interrupt.
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
	frames := frameReader{mark: w.mark, tell: t, apart: where.Language == java, lines: where.Language == rlang}
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
			frames.flush()
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
			if err := send(q.line()); err != nil {
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
	apart  bool                    // a line end at the end of output is told by itself, as E2B's Java does and its clients' tests want
	lines  bool                    // output is told in whole lines, where there are more to come: R writes a line in pieces
	held   map[process.Kind][]byte // what may be the beginning of a frame, or of a line
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
			if tail := len(rest) - 1 - bytes.LastIndexByte(rest, '\n'); f.lines && tail < mostLine {
				keep = max(keep, tail)
			}
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

// flush tells what waits for the end of its line.
func (f *frameReader) flush() {
	for stream, rest := range f.held {
		if f.lines && !bytes.Contains(rest, []byte(frameBegin)) {
			f.held[stream] = rest[len(rest)-cutRune(rest):]
			f.output(stream, rest[:len(rest)-cutRune(rest)])
		}
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
	if len(text) == 0 || f.ended[stream] {
		return
	}
	whole := strings.ToValidUTF8(string(text), "\uFFFD")
	if before, ends := strings.CutSuffix(whole, "\n"); f.apart && ends && before != "" {
		f.tell.stream(string(stream), before)
		whole = "\n"
	}
	f.tell.stream(string(stream), whole)
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
	case "result", "display": // what is shown by its MIME types
		var b map[string]json.RawMessage
		if json.Unmarshal([]byte(value), &b) == nil {
			f.tell.result(b, kind == "result")
		}
	case "error":
		var e struct{ Name, Value, Traceback string }
		if json.Unmarshal([]byte(value), &e) == nil {
			f.failed = true
			f.tell.failure(e.Name, e.Value, e.Traceback)
		}
	}
}
