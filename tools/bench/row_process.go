package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"cove/internal/http/sse"
)

// Computing is a Subject in whose sessions programs run beside the Python.
type Computing interface {
	// Computer makes a session.
	Computer(ctx context.Context) (Computer, error)
}

// Computer is a session in which programs run.
type Computer interface {
	Close(ctx context.Context) error
	// Program runs a program to its end, and hands the sizes of the pieces of its output to got as they arrive.
	Program(ctx context.Context, argv []string, got func(bytes int)) error
}

var _, _, _ Computing = (*coveServer)(nil), (*dockerKept)(nil), (*relay)(nil)

func processRow() Row {
	const warm, perRound = 2, 10
	const large, mega = 100_000_000, 1000
	return Row{
		ID: "process", Title: "a program in a session", Rounds: 5, Quick: 2,
		Measures: []Measure{
			{ID: "process-first", Title: "first output of a program in a live session", Unit: "ms",
				Detail: fmt.Sprintf("echo, from the request until its client has the first byte; %d in each of several sessions, after %d that do not count. "+
					"cove: HTTP and server-sent events; docker: exec over its own interface.", perRound, warm)},
			{ID: "process-100mb", Title: "100 MB from a program", Unit: "ms", Detail: "head -c 100000000 /dev/zero, until its client has every byte."},
			{ID: "process-1gb", Title: "1 GB from a program, in large pieces", Unit: "ms", Detail: "dd if=/dev/zero bs=1M count=1000, until its client has every byte; the relay's program runs on the host."},
		},
		Able: as[Computing]("programs do not run in it"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			m, err := s.(Computing).Computer(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, m, &err)
			for i := range warm + perRound {
				first := time.Duration(0)
				begun := time.Now()
				err := m.Program(ctx, []string{"echo", "here"}, func(int) {
					if first == 0 {
						first = time.Since(begun)
					}
				})
				if err == nil && first == 0 {
					err = errors.New("no output came")
				}
				if err != nil {
					return err
				}
				if i >= warm {
					rec.took(0, first)
				}
			}
			for n, c := range []struct {
				argv []string
				size int
			}{{[]string{"head", "-c", fmt.Sprint(large), "/dev/zero"}, large}, {[]string{"dd", "if=/dev/zero", "bs=1M", fmt.Sprint("count=", mega), "status=none"}, mega << 20}} {
				total, begun := 0, time.Now()
				if err := m.Program(ctx, c.argv, func(n int) { total += n }); err != nil {
					return err
				}
				if total != c.size {
					return fmt.Errorf("%d bytes came, not %d", total, c.size)
				}
				rec.took(n+1, time.Since(begun))
			}
			return nil
		},
	}
}

// pipedProgram runs programs on the host and moves what they write through a plain relay.
type pipedProgram struct{ shop *workshop }

// Computer implements Computing.
func (s *relay) Computer(context.Context) (Computer, error) { return pipedProgram{s.shop}, nil }

func (pipedProgram) Close(context.Context) error { return nil }

// Program implements Computer: a pipe from the program, and a connection to its client.
func (p pipedProgram) Program(ctx context.Context, argv []string, got func(bytes int)) (err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	moved := make(chan error, 1)
	go func() { moved <- p.move(ctx, listener, argv) }()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for buf := make([]byte, 256<<10); ; {
		n, err := conn.Read(buf)
		if n > 0 {
			got(n)
		}
		if errors.Is(err, io.EOF) {
			return <-moved
		}
		if err != nil {
			return err
		}
	}
}

// move runs a program and copies what it writes to the first who connects.
func (p pipedProgram) move(ctx context.Context, listener net.Listener, argv []string) error {
	near, err := listener.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = near.Close() }()
	cmd := p.shop.command(argv[0], argv[1:]...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	_, err = io.CopyBuffer(struct{ io.Writer }{near}, struct{ io.Reader }{out}, make([]byte, 256<<10))
	return errors.Join(err, cmd.Wait())
}

// Computer makes a session as Create does.
func (s *coveServer) Computer(ctx context.Context) (Computer, error) {
	l, err := s.Create(ctx)
	if err != nil {
		return nil, err
	}
	return l.(*servedSession), nil
}

// Program implements Computer: what is little comes as events with the answer to the start, and what is much as bytes, which is how a client asks who expects it.
func (l *servedSession) Program(ctx context.Context, argv []string, got func(bytes int)) error {
	body, err := json.Marshal(map[string]any{"command": argv, "follow": true})
	if err != nil {
		return err
	}
	if argv[0] != "echo" {
		return l.programBytes(ctx, string(body), got)
	}
	answer, err := l.api.send(ctx, http.MethodPost, l.path+"/processes", string(body), "text/event-stream")
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	if answer.StatusCode != http.StatusOK {
		return errors.New("start: " + answer.Status)
	}
	for events := sse.NewReader(answer.Body, maxServedEvent, nil); ; {
		next, err := events.Next()
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		var e struct {
			Type, Text, Message string
			Exit                struct{ Code int }
		}
		if err := json.Unmarshal(next.Data, &e); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		switch e.Type {
		case "stdout":
			got(len(e.Text))
		case "exit":
			if e.Exit.Code != 0 {
				return fmt.Errorf("the program ended with %d", e.Exit.Code)
			}
			_, err := io.Copy(io.Discard, answer.Body)
			return err
		case "failure", "gap":
			return fmt.Errorf("%s: %s", e.Type, e.Message)
		}
	}
}

func (l *servedSession) programBytes(ctx context.Context, body string, got func(bytes int)) error {
	var made struct {
		ID string `json:"id"`
	}
	if err := l.api.call(ctx, http.MethodPost, l.path+"/processes", body, http.StatusCreated, &made); err != nil {
		return err
	}
	answer, err := l.api.send(ctx, http.MethodGet, l.path+"/processes/"+made.ID+"/output", "", "*/*")
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	if answer.StatusCode != http.StatusOK {
		return errors.New("output: " + answer.Status)
	}
	for buf := make([]byte, 256<<10); ; {
		n, err := answer.Body.Read(buf)
		if n > 0 {
			got(n)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// api is the daemon's own interface.
func (k *keptPython) api() remote {
	return remote{host: "docker", client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", k.daemon.socket)
	}}}}
}

// Computer opens a container as Open does.
func (s *dockerKept) Computer(ctx context.Context) (Computer, error) {
	l, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	return l.(*keptPython), nil
}

// Program implements Computer; see "Exec" in https://docs.docker.com/reference/api/engine/. Output comes in frames with a header of eight bytes, whose last four are the size.
func (k *keptPython) Program(ctx context.Context, argv []string, got func(bytes int)) error {
	api := k.api()
	defer api.client.CloseIdleConnections()
	body, err := json.Marshal(map[string]any{"AttachStdout": true, "AttachStderr": true, "Cmd": argv})
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"Id"`
	}
	if err := api.call(ctx, http.MethodPost, "/containers/"+k.id+"/exec", string(body), http.StatusCreated, &made); err != nil {
		return err
	}
	answer, err := api.send(ctx, http.MethodPost, "/exec/"+made.ID+"/start", `{"Detach":false,"Tty":false}`, "application/json")
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	if answer.StatusCode != http.StatusOK {
		return errors.New("exec: " + answer.Status)
	}
	for buf := make([]byte, 64<<10); ; {
		var header [8]byte
		if _, err := io.ReadFull(answer.Body, header[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for left := int(binary.BigEndian.Uint32(header[4:])); left > 0; {
			n, err := answer.Body.Read(buf[:min(left, len(buf))])
			if n > 0 {
				got(n)
				left -= n
			}
			if err != nil && left > 0 {
				return err
			}
		}
	}
}
