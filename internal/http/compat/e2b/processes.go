package e2b

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"path"
	"slices"
	"time"

	"connectrpc.com/connect"

	"cove/internal/core/problem"
	"cove/internal/http/compat/e2b/envd"
	"cove/internal/machine/process"
)

// lateConnect is how long a process can be connected to that has ended.
const lateConnect = 30 * time.Second

// processes is the agent's service for processes.
type processes struct{ s *server }

var _ envd.ProcessHandler = processes{}

// Start starts a process and streams what it emits. The process lives on when its client leaves; the time limit of the call is the process's.
func (p processes) Start(ctx context.Context, in *envd.StartRequest, out *connect.ServerStream[envd.StartResponse]) error {
	b, h := sandboxOf(ctx), header(ctx)
	start, err := p.start(b, h, in)
	if err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		start.Timeout = max(time.Until(end), time.Millisecond)
	}
	info, err := p.s.Hub.StartProcess(ctx, b.who, b.id, start)
	if err != nil {
		return rpcFault(err)
	}
	events, err := p.s.Hub.FollowProcess(ctx, b.who, b.id, info.ID, 0)
	if err != nil {
		return rpcFault(err)
	}
	return p.stream(ctx, h, info.PID, events, func(e *envd.ProcessEvent) error { return out.Send(&envd.StartResponse{Event: e}) })
}

// start is what the hub is asked to start.
func (p processes) start(b sandbox, h http.Header, in *envd.StartRequest) (process.Start, error) {
	user, err := b.userOf(h)
	if err != nil {
		return process.Start{}, err
	}
	if user == "root" && !p.s.Root {
		return process.Start{}, connect.NewError(connect.CodePermissionDenied, errors.New("the sandboxes of this server have no root; its operator can set sandbox.root (COVE_ROOT=true)"))
	}
	config := in.GetProcess()
	if config.GetCmd() == "" {
		return process.Start{}, connect.NewError(connect.CodeInvalidArgument, errors.New("there is no command"))
	}
	dir, err := absolute(user, config.GetCwd())
	if err != nil {
		return process.Start{}, err
	}
	if config.GetCwd() == "" && b.record.Dir != "" {
		dir = b.record.Dir
	}
	env := maps.Clone(nonNil(b.record.Env))
	maps.Copy(env, config.GetEnvs())
	start := process.Start{
		Args: withoutProfile(append([]string{config.GetCmd()}, config.GetArgs()...)), Dir: dir, Env: env, Label: in.GetTag(), Root: user == "root", Input: in.Stdin == nil || in.GetStdin(), Followed: true,
	}
	if size := in.GetPty().GetSize(); size != nil {
		start.Terminal = &process.Size{Columns: int(size.GetCols()), Rows: int(size.GetRows())}
	}
	return start, nil
}

// withoutProfile has the shell that clients run commands in not read the system's profile, which is the host's, and sets a PATH in which there is no Python of cove's and nothing of a template's.
func withoutProfile(args []string) []string {
	if path.Base(args[0]) != "bash" {
		return args
	}
	end := slices.Index(args, "-c")
	if end < 0 {
		end = len(args)
	}
	return append(slices.DeleteFunc(slices.Clone(args[:end]), func(a string) bool { return a == "-l" }), args[end:]...)
}

// Connect streams what a process emits from now on. One that has ended a moment ago has its end alone.
func (p processes) Connect(ctx context.Context, in *envd.ConnectRequest, out *connect.ServerStream[envd.ConnectResponse]) error {
	b := sandboxOf(ctx)
	info, err := p.find(ctx, b, in.GetProcess(), lateConnect)
	if err != nil {
		return err
	}
	events, err := p.s.Hub.FollowProcess(ctx, b.who, b.id, info.ID, info.Written)
	if err != nil {
		return rpcFault(err)
	}
	return p.stream(ctx, header(ctx), info.PID, events, func(e *envd.ProcessEvent) error { return out.Send(&envd.ConnectResponse{Event: e}) })
}

// stream sends the start of a process, what it emits, and its end; and that it is there, when it is silent.
func (p processes) stream(ctx context.Context, h http.Header, pid int, events iter.Seq2[process.Event, error], send func(*envd.ProcessEvent) error) error {
	if err := send(&envd.ProcessEvent{Event: &envd.ProcessEvent_Start{Start: &envd.ProcessEvent_StartEvent{Pid: uint32(pid)}}}); err != nil {
		return err
	}
	beats := ticker(h)
	defer beats.Stop()
	for e, err := range beating(ctx, events, beats.C) {
		if err != nil {
			return rpcFault(err)
		}
		said := &envd.ProcessEvent{Event: &envd.ProcessEvent_Keepalive{Keepalive: &envd.ProcessEvent_KeepAlive{}}}
		if e != nil {
			if said = eventOf(*e); said == nil {
				continue
			}
		}
		if err := send(said); err != nil {
			return err
		}
	}
	return nil
}

// beating yields what events has, and nil at every beat meanwhile.
func beating[E any](ctx context.Context, events iter.Seq2[E, error], beats <-chan time.Time) iter.Seq2[*E, error] {
	type told struct {
		e   E
		err error
	}
	return func(yield func(*E, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ch := make(chan told)
		go func() {
			defer close(ch)
			for e, err := range events {
				select {
				case ch <- told{e, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		for {
			select {
			case t, ok := <-ch:
				if !ok || !yield(&t.e, t.err) {
					return
				}
			case <-beats:
				if !yield(nil, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

// eventOf is an event in the agent's words; nil for what it has none for.
func eventOf(e process.Event) *envd.ProcessEvent {
	data := &envd.ProcessEvent_DataEvent{}
	switch e.Kind {
	case process.Stdout:
		data.Output = &envd.ProcessEvent_DataEvent_Stdout{Stdout: e.Data}
	case process.Stderr:
		data.Output = &envd.ProcessEvent_DataEvent_Stderr{Stderr: e.Data}
	case process.Terminal:
		data.Output = &envd.ProcessEvent_DataEvent_Pty{Pty: e.Data}
	case process.Ended:
		return &envd.ProcessEvent{Event: &envd.ProcessEvent_End{End: endOf(e.Exit)}}
	default:
		return nil
	}
	return &envd.ProcessEvent{Event: &envd.ProcessEvent_Data{Data: data}}
}

// endOf is the end of a process as the agent tells it, which is how Go does.
func endOf(x *process.Exit) *envd.ProcessEvent_EndEvent {
	if x == nil {
		x = &process.Exit{}
	}
	end := &envd.ProcessEvent_EndEvent{ExitCode: int32(x.Code), Exited: true, Status: fmt.Sprintf("exit status %d", x.Code)}
	if x.Signal != "" {
		end.ExitCode, end.Exited, end.Status = -1, false, "signal: "+signalWord(x.Signal)
	}
	if x.Code != 0 || x.Signal != "" {
		end.Error = &end.Status
	}
	return end
}

// signalWord is a signal in the words of Go.
func signalWord(name string) string {
	if n, err := process.ParseSignal(name); err == nil {
		return n.String()
	}
	return name
}

// List lists the processes that run.
func (p processes) List(ctx context.Context, _ *envd.ListRequest) (*envd.ListResponse, error) {
	b := sandboxOf(ctx)
	all, err := p.s.Hub.Processes(ctx, b.who, b.id)
	if err != nil {
		return nil, rpcFault(err)
	}
	out := &envd.ListResponse{}
	for _, i := range all {
		if i.Exit != nil || len(i.Args) == 0 {
			continue
		}
		one := &envd.ProcessInfo{Pid: uint32(i.PID), Config: &envd.ProcessConfig{Cmd: i.Args[0], Args: i.Args[1:], Cwd: &i.Dir}}
		if i.Label != "" {
			one.Tag = &i.Label
		}
		out.Processes = append(out.Processes, one)
	}
	return out, nil
}

// find returns the process that a client means: the newest with a number or a tag that runs, or has ended within late.
func (p processes) find(ctx context.Context, b sandbox, which *envd.ProcessSelector, late time.Duration) (process.Info, error) {
	all, err := p.s.Hub.Processes(ctx, b.who, b.id)
	if err != nil {
		return process.Info{}, rpcFault(err)
	}
	for _, i := range slices.Backward(all) {
		if i.Exit != nil && time.Since(i.Exit.At) > late {
			continue
		}
		switch w := which.GetSelector().(type) {
		case *envd.ProcessSelector_Pid:
			if uint32(i.PID) == w.Pid {
				return i, nil
			}
		case *envd.ProcessSelector_Tag:
			if i.Label == w.Tag && w.Tag != "" {
				return i, nil
			}
		}
	}
	if w, ok := which.GetSelector().(*envd.ProcessSelector_Tag); ok {
		return process.Info{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("process with tag %.100s not found", w.Tag))
	}
	return process.Info{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("process with pid %d not found", which.GetPid()))
}

// Update gives a terminal another size.
func (p processes) Update(ctx context.Context, in *envd.UpdateRequest) (*envd.UpdateResponse, error) {
	b := sandboxOf(ctx)
	info, err := p.find(ctx, b, in.GetProcess(), 0)
	if err == nil && in.GetPty().GetSize() != nil {
		size := in.GetPty().GetSize()
		err = p.s.Hub.ResizeProcess(ctx, b.who, b.id, info.ID, process.Size{Columns: int(size.GetCols()), Rows: int(size.GetRows())})
	}
	return &envd.UpdateResponse{}, rpcFault(err)
}

// tell writes to the input of a process.
func (p processes) tell(ctx context.Context, b sandbox, which *envd.ProcessSelector, in *envd.ProcessInput, end bool) error {
	info, err := p.find(ctx, b, which, 0)
	if err != nil {
		return err
	}
	text := in.GetStdin()
	if in.GetPty() != nil {
		text = in.GetPty()
	}
	_, err = p.s.Hub.TellProcess(ctx, b.who, b.id, info.ID, bytes.NewReader(text), end)
	return rpcFault(err)
}

// SendInput writes to the input of a process.
func (p processes) SendInput(ctx context.Context, in *envd.SendInputRequest) (*envd.SendInputResponse, error) {
	return &envd.SendInputResponse{}, p.tell(ctx, sandboxOf(ctx), in.GetProcess(), in.GetInput(), false)
}

// StreamInput writes what comes to the input of the process that the first message names.
func (p processes) StreamInput(ctx context.Context, in *connect.ClientStream[envd.StreamInputRequest]) (*envd.StreamInputResponse, error) {
	b := sandboxOf(ctx)
	var which *envd.ProcessSelector
	for in.Receive() {
		switch m := in.Msg().GetEvent().(type) {
		case *envd.StreamInputRequest_Start:
			which = m.Start.GetProcess()
		case *envd.StreamInputRequest_Data:
			if err := p.tell(ctx, b, which, m.Data.GetInput(), false); err != nil {
				return nil, err
			}
		}
	}
	return &envd.StreamInputResponse{}, in.Err()
}

// SendSignal ends a process, with SIGKILL everything that it has started too.
func (p processes) SendSignal(ctx context.Context, in *envd.SendSignalRequest) (*envd.SendSignalResponse, error) {
	b := sandboxOf(ctx)
	name := map[envd.Signal]string{envd.Signal_SIGNAL_SIGKILL: "SIGKILL", envd.Signal_SIGNAL_SIGTERM: "SIGTERM"}[in.GetSignal()]
	if name == "" {
		return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid signal: %s", in.GetSignal()))
	}
	info, err := p.find(ctx, b, in.GetProcess(), 0)
	if err != nil {
		return nil, err
	}
	err = p.s.Hub.SignalProcess(ctx, b.who, b.id, info.ID, name, name == "SIGKILL")
	if problem.Has(err, problem.ProcessEnded) {
		err = connect.NewError(connect.CodeNotFound, fmt.Errorf("process with pid %d not found", info.PID))
	}
	return &envd.SendSignalResponse{}, rpcFault(err)
}

// CloseStdin ends the input of a process.
func (p processes) CloseStdin(ctx context.Context, in *envd.CloseStdinRequest) (*envd.CloseStdinResponse, error) {
	return &envd.CloseStdinResponse{}, p.tell(ctx, sandboxOf(ctx), in.GetProcess(), nil, true)
}
