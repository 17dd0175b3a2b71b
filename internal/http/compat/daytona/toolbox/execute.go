package toolbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

const (
	// mostOutput bounds what one answer has of a command's output, in bytes.
	mostOutput = 16 << 20
	// longestLine is how long a command may be that is an argument; longer ones come as input.
	longestLine = 64 << 10
	// longestRun bounds code that its client does not.
	longestRun = 24 * time.Hour
	killGrace  = time.Minute
)

// output is what is kept of a command's output.
type output struct {
	text    bytes.Buffer
	dropped int64
}

func (o *output) add(data []byte) {
	n := min(len(data), mostOutput-o.text.Len())
	o.text.Write(data[:n])
	o.dropped += int64(len(data) - n)
}

// String is the output as text, with a last line where some of it is left out.
func (o *output) String() string {
	text := strings.ToValidUTF8(o.text.String(), "\uFFFD")
	if o.dropped > 0 {
		text += fmt.Sprintf("\n[%d more bytes of output are left out]\n", o.dropped)
	}
	return text
}

// environment is the sandbox's variables with those of one request, which go before.
func (s Sandbox) environment(own map[string]string) map[string]string {
	env := maps.Clone(s.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, own)
	return env
}

// timeLimit is a time limit that a client gives in seconds; none is 0.
func timeLimit(seconds *float64) (time.Duration, error) {
	switch {
	case seconds == nil || *seconds == 0:
		return 0, nil
	case math.IsNaN(*seconds) || *seconds < 0:
		return 0, invalid("timeout must not be negative")
	}
	return time.Duration(min(*seconds, longestRun.Seconds()) * float64(time.Second)), nil
}

// executed is the answer to a command. Clients before 0.100 read "code".
type executed struct {
	ExitCode int    `json:"exitCode"`
	Code     int    `json:"code"`
	Result   string `json:"result"`
}

// execute runs a command in a shell and answers with its output, both streams in their order.
func (t *Toolbox) execute(c *call) error {
	var in struct {
		Command string            `json:"command"`
		Dir     string            `json:"cwd"`
		Env     map[string]string `json:"envs"`
		Timeout *float64          `json:"timeout"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if strings.TrimSpace(in.Command) == "" {
		return invalid("command: there is nothing to run")
	}
	limit, err := timeLimit(in.Timeout)
	if err != nil {
		return err
	}
	if err := process.CheckEnvironment(in.Env); err != nil {
		return invalid(problem.Of(err).Message)
	}
	start := process.Start{Dir: c.s.absolute(in.Dir), Env: c.s.environment(in.Env), Timeout: limit}
	var input []byte
	if len(in.Command) <= longestLine {
		start.Args = []string{"bash", "-c", `exec 2>&1; eval "$1"`, "bash", in.Command}
	} else {
		start.Args, input = []string{"bash", "-c", `exec 2>&1; eval "$(cat)"`}, []byte(in.Command)
	}
	return t.answer(c, start, input)
}

// answer runs a process whose streams are one, and answers with its output. It ends with its client.
func (t *Toolbox) answer(c *call, start process.Start, input []byte) error {
	var out output
	exit, err := t.run(c, start, input, func(_ process.Kind, data []byte) { out.add(data) })
	switch {
	case problem.Has(err, problem.ProgramMissing, problem.InvalidPath, problem.FileNotFound) && c.Context().Err() == nil:
		reply(c.w, http.StatusOK, executed{-1, -1, problem.Of(err).Message}) // as Daytona answers when a process cannot be started
		return nil
	case err != nil:
		return err
	case exit.Reason == process.ForTime:
		return timedOut()
	case exit.Reason == process.ForMemory:
		out.add([]byte("\n[ended: the sandbox has no more memory]\n"))
	}
	reply(c.w, http.StatusOK, executed{exit.Status(), exit.Status(), out.String()})
	return nil
}

func timedOut() error {
	return &fault{http.StatusRequestTimeout, "PROCESS_EXECUTION_TIMEOUT", "command execution timeout"}
}

// run starts a process, writes its input, and has tell take what it emits until its end. It is killed when its client leaves.
func (t *Toolbox) run(c *call, start process.Start, input []byte, tell func(kind process.Kind, data []byte)) (process.Exit, error) {
	ctx := c.Context()
	if err := t.o.Hub.CheckProgram(ctx, c.who, ""); err != nil {
		return process.Exit{}, err
	}
	start.Input, start.Followed = input != nil, true
	info, err := t.o.Hub.StartProcess(ctx, c.who, c.id(), start)
	if err != nil {
		return process.Exit{}, err
	}
	ended := false
	defer func() {
		if !ended {
			t.kill(c, info.ID)
		}
	}()
	if input != nil {
		if _, err := t.o.Hub.TellProcess(ctx, c.who, c.id(), info.ID, bytes.NewReader(input), true); err != nil && !problem.Has(err, problem.ProcessEnded) {
			return process.Exit{}, err
		}
	}
	events, err := t.o.Hub.FollowProcess(ctx, c.who, c.id(), info.ID, 0)
	if err != nil {
		return process.Exit{}, err
	}
	exit, err := drain(events, tell)
	ended = err == nil
	return exit, err
}

var errNoEnd = errors.New("the process ended, but how is not known")

// drain takes the events of a process until its end.
func drain(events iter.Seq2[process.Event, error], tell func(kind process.Kind, data []byte)) (process.Exit, error) {
	for e, err := range events {
		switch {
		case err != nil:
			return process.Exit{}, err
		case e.Kind == process.Ended && e.Exit != nil:
			return *e.Exit, nil
		case e.Kind == process.Gap:
			tell(process.Stdout, []byte("\n[output is left out: it came faster than it could be read]\n"))
		default:
			tell(e.Kind, e.Data)
		}
	}
	return process.Exit{}, errNoEnd
}

// kill ends a process and what it has started.
func (t *Toolbox) kill(c *call, id string) {
	ctx, cancel := context.WithTimeout(c.lasting(), killGrace)
	defer cancel()
	if err := t.o.Hub.SignalProcess(ctx, c.who, c.id(), id, "KILL", true); err != nil && !problem.Has(err, problem.ProcessEnded, problem.ProcessNotFound) {
		t.o.Log.WarnContext(ctx, "a process whose client has left was not ended", "session", c.id(), "process", id, "error", err)
	}
}
