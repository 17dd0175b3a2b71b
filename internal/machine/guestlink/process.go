package guestlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/machine/wire"
)

// Bounds of what a guest says of a process.
const (
	mostProcesses   = wire.ProcessLimit + wire.ProcessesEnded
	longestArgument = 1 << 10
	mostArguments   = 64
)

// knowsProcesses returns the problem of a guest that is older than processes are.
func (l *Link) knowsProcesses() error {
	if l.info.Processes != nil {
		return nil
	}
	return problem.New(problem.ProcessesAbsent, "the session was saved by an older cove, whose sandboxes have no processes").WithHint("make a new session; this one goes on running code")
}

// Running lists the processes that ran when the guest connected.
func (l *Link) Running() []string {
	return l.info.Processes[:min(len(l.info.Processes), wire.ProcessLimit)]
}

// AwaitProcess waits for the end of a process. It returns an error when ctx or the link ends first.
func (l *Link) AwaitProcess(ctx context.Context, id string) error {
	return l.follow(ctx, wire.Request{Op: wire.OpProcessFollow, ID: id, End: true}, func(process.Event) bool { return true })
}

// StartProcess starts a process that belongs to the sandbox. ctx bounds the call alone.
func (l *Link) StartProcess(ctx context.Context, start wire.ProcessStart) (process.Info, error) {
	body, err := l.command(ctx, wire.Request{Op: wire.OpProcessStart, Start: &start})
	if err != nil {
		return process.Info{}, fmt.Errorf("start a process: %w", err)
	}
	var info wire.ProcessInfo
	if err := json.Unmarshal(body, &info); err != nil || info.ID != start.ID {
		return process.Info{}, problem.New(problem.GuestFault, "the guest does not say what it has started").WithCause(err)
	}
	return processOf(info), nil
}

// Processes lists the processes that run, and the last that have ended, the oldest first.
func (l *Link) Processes(ctx context.Context) ([]process.Info, error) {
	body, err := l.command(ctx, wire.Request{Op: wire.OpProcessList})
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var infos []wire.ProcessInfo
	if err := json.Unmarshal(body, &infos); err != nil {
		return nil, problem.New(problem.GuestFault, "the guest's list of processes cannot be read").WithCause(err)
	}
	var all []process.Info
	for _, info := range infos[:min(len(infos), mostProcesses)] {
		if ident.Valid(ident.Process, info.ID) {
			all = append(all, processOf(info))
		}
	}
	return all, nil
}

// ResizeProcess gives the terminal of a process another size.
func (l *Link) ResizeProcess(ctx context.Context, id string, size process.Size) error {
	_, err := l.command(ctx, wire.Request{Op: wire.OpProcessResize, ID: id, Terminal: sizeTo(&size)})
	return err
}

// SignalProcess sends a signal to a process's group, or to all that the process has started.
func (l *Link) SignalProcess(ctx context.Context, id string, signal int, all bool) error {
	_, err := l.command(ctx, wire.Request{Op: wire.OpProcessSignal, ID: id, Signal: signal, All: all})
	return err
}

// Reboot ends whatever runs in the sandbox but the guest. Problems: reboot_absent.
func (l *Link) Reboot(ctx context.Context) error {
	_, err := l.command(ctx, wire.Request{Op: wire.OpReboot})
	if problem.Has(err, problem.InvalidRequest) {
		return problem.New(problem.RebootAbsent, "the session was saved by an older cove, and cannot be rebooted").WithHint("pause it with its memory, or make a new one").WithCause(err)
	}
	return err
}

// command asks for something that is answered at once.
func (l *Link) command(ctx context.Context, req wire.Request) ([]byte, error) {
	if err := l.knowsProcesses(); err != nil {
		return nil, err
	}
	ch, release, err := l.open(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	defer release()
	_, body, err := l.respond(ctx, ch)
	return body, err
}

// WriteProcess writes to a process what r has, and ends its input with end. It returns when the process's pipe or terminal has taken all, which may be never: it
// ends with ctx too. n is how much was taken.
func (l *Link) WriteProcess(ctx context.Context, id string, r io.Reader, end bool) (n int64, err error) {
	if err := l.knowsProcesses(); err != nil {
		return 0, err
	}
	ch, err := l.conn.Open(ctx)
	if err != nil {
		return 0, err
	}
	abort := func() { _ = ch.Reset("given up") }
	defer abort()
	defer context.AfterFunc(ctx, abort)()
	if err := wire.WriteMessage(ch, wire.Request{Op: wire.OpProcessInput, ID: id, End: end}, nil); err != nil {
		return 0, err
	}
	source := &problem.Source{From: r}
	_, sendErr := io.Copy(writerOnly{ch}, source)
	if source.Failed != nil {
		return 0, source.Failed
	}
	if sendErr == nil && ctx.Err() == nil {
		sendErr = ch.CloseWrite()
	}
	resp, _, err := l.respond(ctx, ch)
	if err == nil {
		err = sendErr
	}
	return resp.Size, err
}

// FollowProcess yields what a process emits from a position on, the last of it its end. It ends with ctx, and with an error when the link ends.
func (l *Link) FollowProcess(ctx context.Context, id string, from int64) iter.Seq2[process.Event, error] {
	return func(yield func(process.Event, error) bool) {
		if err := l.follow(ctx, wire.Request{Op: wire.OpProcessFollow, ID: id, Offset: from, Most: wire.ProcessPiece}, func(e process.Event) bool { return yield(e, nil) }); err != nil {
			yield(process.Event{}, err)
		}
	}
}

type outputPiece [wire.ProcessPiece]byte

// outputPieces are for large messages of output.
var outputPieces = sync.Pool{New: func() any { return new(outputPiece) }}

func (l *Link) follow(ctx context.Context, req wire.Request, yield func(process.Event) bool) error {
	if err := l.knowsProcesses(); err != nil {
		return err
	}
	ch, release, err := l.open(ctx, req, nil)
	if err != nil {
		return err
	}
	defer release()
	if _, _, err := l.respond(ctx, ch); err != nil {
		return err
	}
	for at := int64(0); ; {
		var h wire.FromProcess
		var large *outputPiece
		body, err := wire.ReadMessageInto(ch, wire.ProcessPiece+wire.MaxFrame, &h, func(size int) []byte {
			if size <= wire.MaxFrame {
				return nil
			}
			large, _ = outputPieces.Get().(*outputPiece)
			return large[:]
		})
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return err
		}
		e := process.Event{Kind: process.Kind(h.Kind), At: h.At, Data: body}
		if large != nil {
			e.Recycle = func() { outputPieces.Put(large) }
		}
		kinds := []process.Kind{process.Stdout, process.Stderr, process.Terminal, process.Gap, process.Ended}
		if !slices.Contains(kinds, e.Kind) || h.At < 0 || h.At < at && e.Kind != process.Ended {
			return problem.New(problem.GuestFault, "the guest does not say what the process has written")
		}
		at = e.Next()
		if e.Kind == process.Ended {
			e.Data, e.Exit = nil, exitOf(h.Code, h.Signal, h.Late, h.Memory, time.Now())
		}
		if !yield(e) || e.Kind == process.Ended {
			return nil
		}
	}
}

// Cut says whether a call failed because the link ended under it, as when the session is saved.
func Cut(err error) bool {
	return errors.Is(err, wire.ErrClosed) || errors.Is(err, wire.ErrReset) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func processOf(i wire.ProcessInfo) process.Info {
	out := process.Info{ID: i.ID, PID: i.PID, Dir: wire.Printable(i.Dir, longestArgument), Label: wire.Printable(i.Label, longestArgument), Root: i.Root, Input: i.Input, Started: moment(i.Started),
		Kept: max(0, i.Kept), Written: max(0, i.Written)}
	for _, a := range i.Args[:min(len(i.Args), mostArguments)] {
		out.Args = append(out.Args, wire.Printable(a, longestArgument))
	}
	if i.Terminal != nil {
		out.Terminal = &process.Size{Columns: int(i.Terminal.Columns), Rows: int(i.Terminal.Rows)}
	}
	if i.Ended != 0 {
		out.Exit = exitOf(i.Code, i.Signal, i.Late, i.Memory, moment(i.Ended))
	}
	return out
}

func exitOf(code, signal int, late, memory bool, at time.Time) *process.Exit {
	e := &process.Exit{At: at, Code: code & 0xff}
	if signal > 0 && signal <= 64 {
		e.Code, e.Signal = 0, process.SignalName(signal)
	}
	switch {
	case memory:
		e.Reason = process.ForMemory
	case late:
		e.Reason = process.ForTime
	}
	return e
}

func sizeTo(s *process.Size) *wire.TerminalSize {
	if s == nil {
		return nil
	}
	return &wire.TerminalSize{Columns: uint16(s.Columns), Rows: uint16(s.Rows)}
}

// ToStart makes what the guest is told of a start, which has been checked.
func ToStart(id string, s process.Start, env []string, dir string, memory int64) wire.ProcessStart {
	return wire.ProcessStart{ID: id, Args: s.Command(), Env: env, Dir: dir, Label: s.Label, Root: s.Root, Input: s.Input, Terminal: sizeTo(s.Terminal), Followed: s.Followed, Timeout: s.Timeout.Milliseconds(), Memory: memory}
}
