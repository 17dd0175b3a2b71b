package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/machine/process"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// NewExecution says what to run.
type NewExecution struct {
	Session string
	Kernel  string // "" is "main"
	Code    string
	Timeout time.Duration // 0: the server's
	Program string        // the code is run as python runs a file of this name; "": as a cell
	Args    []string      // sys.argv[1:]
	Columns int           // characters of a line where people read the output; 0: nobody knows
	Restart bool          // a new interpreter first
	// Unnumbered code takes no number and is not kept in In and Out.
	Unnumbered bool
	// Unheard says that no client hears of this execution: what the session has lost waits for the next one.
	Unheard bool
	// Payloads and Parent are as in kernel.Request.
	Payloads bool
	Parent   string
	// Widgets is as in kernel.Request.
	Widgets bool
	// Approved says that somebody has looked at code that CodeAsk would have wait.
	Approved bool
	// Environment are variables that are set before, and stay set in the kernel. They are not recorded.
	Environment map[string]string
	// Input answers input() and getpass() of the code, as kernel.Request.Input; nil: they raise EOFError. It returns when the execution has ended.
	Input func(prompt string, password bool) (string, error)
	// Asks has events tell of what the code asks for with input() and getpass(), and AnswerInput answer it, where there is no Input.
	Asks bool
	// Tools are what the code may call outside of its sandbox, as kernel.Request.Tools; nil: nothing.
	Tools *kernel.Tools
	// Servers are those of ToolServers whose tools the code may call, too, by name.
	Servers []string
	// AskBefore has somebody asked before each call of some of their tools, besides those of which a server says so itself: SERVER.TOOL, or SERVER.* and the like for several. See ApproveCall.
	AskBefore []string
	// Once is an idempotency key: a repeated call with the same key returns the execution that the first call made.
	Once string
}

// StartExecution queues code to run, whether or not a client follows. Needs auth.SessionsExecute. Problems: code_too_large, kernel_not_found, queue_full,
// quota_executions, quota_cpu, too_many_sessions, quota_sessions, draining; with Servers those of ToolServers.Offer, and tool_invalid.
func (m *Manager) StartExecution(ctx context.Context, who auth.Principal, n NewExecution) (record.Execution, error) {
	var e record.Execution
	id, again, err := "", false, who.Require(auth.SessionsExecute)
	sum := sha256.Sum256([]byte(n.Code))
	detail := "sha256 " + hex.EncodeToString(sum[:])
	if err == nil {
		request := fmt.Sprintf("%s %s %x %d", n.Session, n.Kernel, sum, n.Timeout)
		if n.Program != "" || len(n.Args)+len(n.Environment) > 0 || n.Restart {
			request += fmt.Sprintf(" %x", sha256.Sum256(fmt.Appendf(nil, "%q %q %q %v", n.Program, n.Args, n.Environment, n.Restart)))
		}
		if len(n.Servers) > 0 {
			request += fmt.Sprintf(" %x", sha256.Sum256(fmt.Appendf(nil, "%q %q", n.Servers, n.AskBefore)))
		}
		if n.Asks {
			request += " asks"
		}
		if n.Widgets {
			request += " widgets"
		}
		id, again, err = m.work.RunOnce(ctx, who, startAction, n.Once, request, func() (string, error) {
			e, err = m.startExecution(ctx, who, n, detail)
			return e.ID, err
		})
	}
	if again && err == nil {
		return m.work.Store.Execution(ctx, who.Project, id)
	}
	if err != nil {
		m.work.WriteAudit(ctx, who, startAction, n.Session, detail, err)
	}
	return e, err
}

const startAction = "execution.start"

// startExecution records the execution and the audit row of its start at once: one wait for the disk instead of two.
func (m *Manager) startExecution(ctx context.Context, who auth.Principal, n NewExecution, detail string) (record.Execution, error) {
	e := record.Execution{
		ID: ident.New(ident.Execution), Project: who.Project, User: who.User, Key: who.Key, Session: n.Session, Kernel: n.Kernel, Code: n.Code,
	}
	req, err := n.request()
	if err == nil {
		err = m.ScreenCode(ctx, &e, n.Approved)
	}
	if err == nil {
		err = m.meter.MayRun(ctx, who.Project, who.Key)
	}
	if err == nil {
		n.Tools, err = m.withServers(ctx, who, n.Tools, n.Servers, n.AskBefore)
	}
	if err != nil {
		return record.Execution{}, err
	}
	req.Tools = m.WithApproval(who, e, n.Tools)
	if n.Asks && req.Input == nil {
		req.Inputs = m.waitForInput(e)
	}
	work, end, err := m.BeginWork(ctx)
	if err != nil {
		return record.Execution{}, err
	}
	s, err := m.AcquireSession(ctx, who.Project, n.Session)
	if err != nil {
		end()
		return record.Execution{}, err
	}
	events := m.Streams.Open(e.ID)
	e, t, err := m.admitExecution(work, e, m.work.NewAuditRow(who, startAction, e.ID, detail, nil)...)
	if err != nil {
		events.Close()
		m.releaseSeat(s)
		end()
		return record.Execution{}, err
	}
	started := e
	t.unheard = n.Unheard
	m.work.RunInBackground(func(context.Context) {
		defer end()
		defer m.releaseSeat(s)
		defer events.Close()
		_, _ = m.performExecution(work, t, e, req, func(ctx context.Context, event record.Event) error {
			return m.emitEvent(ctx, events, e.ID, event)
		}, func(e *record.Execution, done kernel.Done, _ error) error {
			return m.concludeExecution(m.work.Ended, events, e, done)
		})
	})
	return started, nil
}

// withAuditedCalls returns tools whose calls are in the audit log.
func (m *Manager) withAuditedCalls(who auth.Principal, e record.Execution, tools *kernel.Tools) *kernel.Tools {
	if tools == nil {
		return nil
	}
	out, call := *tools, tools.Call
	out.Call = func(ctx context.Context, calls []tool.Call, answer func(int, tool.Result)) {
		names := map[int]string{}
		for _, c := range calls {
			names[c.Number] = c.Name
		}
		call(ctx, calls, func(number int, r tool.Result) {
			var failed error
			if r.Err != "" {
				failed = problem.New(problem.ToolFailed, "the tool failed")
			}
			m.work.WriteAudit(context.WithoutCancel(ctx), who, "tool.call", e.ID, names[number], failed)
			answer(number, r)
		})
	}
	return &out
}

// longestArguments bounds the arguments of an execution together, in bytes.
const longestArguments = 128 << 10

// request is what the kernel is asked for. Problems: invalid_request, process_invalid.
func (n NewExecution) request() (kernel.Request, error) {
	req := kernel.Request{Code: n.Code, Timeout: n.Timeout, Args: n.Args, Environment: n.Environment, Columns: n.Columns, Restart: n.Restart, Unnumbered: n.Unnumbered, Payloads: n.Payloads, Widgets: n.Widgets, Parent: n.Parent, Input: n.Input}
	if n.Program != "" {
		req.Mode, req.Filename = kernel.Script, n.Program
	}
	size := 0
	for _, text := range append([]string{n.Program}, n.Args...) {
		if size += len(text) + 1; !utf8.ValidString(text) || strings.ContainsRune(text, 0) || size > longestArguments {
			return req, problem.New(problem.InvalidRequest, "the name of the program and its arguments are text without zeros, together of at most 128 KiB")
		}
	}
	if strings.Contains(n.Program, "/") {
		return req, problem.New(problem.InvalidRequest, "the name of the program is that of a file of the workspace, without a folder")
	}
	return req, process.CheckEnvironment(n.Environment)
}

// emitEvent puts an execution's event into its stream. It waits for room until ctx ends.
func (m *Manager) emitEvent(ctx context.Context, events *stream.Writer, execution string, event record.Event) error {
	body, err := transcript.Event(event)
	if err != nil {
		m.work.Log.ErrorContext(ctx, "an event could not be written down", "execution", execution, "error", err)
		return nil
	}
	events.Append(ctx, stream.Origin{Part: execution}, body)
	return nil
}

// concludeExecution stores the end of an execution with the last events of its stream, and then shows them to followers.
func (m *Manager) concludeExecution(ctx context.Context, events *stream.Writer, e *record.Execution, done kernel.Done) error {
	body, err := transcript.Event(done)
	if err != nil {
		return fmt.Errorf("write the end of an execution: %w", err)
	}
	whole := func(last []stream.Event) []stream.Event { return last }
	if err = m.storeEnd(ctx, events, e, body, whole); !stream.Refused(err) {
		return err
	}
	*e = m.withoutOutput(*e, err)
	done.Message = e.Message
	if body, err = transcript.Event(done); err != nil {
		return fmt.Errorf("write the end of an execution: %w", err)
	}
	return m.storeEnd(ctx, events, e, body, stream.Shortened)
}

// storeEnd stores the end of an execution, and those of its unstored events that keep returns.
func (m *Manager) storeEnd(ctx context.Context, events *stream.Writer, e *record.Execution, body []byte, keep func(last []stream.Event) []stream.Event) error {
	return m.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		return events.Finish(ctx, stream.Origin{Part: e.ID}, body, func(ctx context.Context, last []stream.Event) error {
			e.Events = last[len(last)-1].Seq
			first, err := m.work.Store.FinishExecution(ctx, *e, keep(last))
			return m.checkSettled(ctx, e, first, err)
		})
	})
}

// withoutOutput returns the end of an execution without the texts for which the store may have refused it.
func (m *Manager) withoutOutput(e record.Execution, err error) record.Execution {
	m.work.Log.ErrorContext(m.work.Ended, "the end of an execution was refused by the store; it is recorded without its last output", "execution", e.ID, "error", err)
	e.Message = "the execution ended, but its end could not be recorded as a whole: its last output is not kept"
	return e
}

// Execution returns an execution. Needs auth.SessionsRead.
func (m *Manager) Execution(ctx context.Context, who auth.Principal, id string) (record.Execution, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return record.Execution{}, err
	}
	return m.work.Store.Execution(ctx, who.Project, id)
}

// Executions lists executions, the newest first. Needs auth.SessionsRead.
func (m *Manager) Executions(ctx context.Context, who auth.Principal, f record.ExecutionFilter, p record.Page) (record.Listing[record.Execution], error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return record.Listing[record.Execution]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return record.Listing[record.Execution]{}, err
	}
	return m.work.Store.Executions(ctx, who.Project, f, p)
}

// errStopped is the cause with which a request stops an execution.
var errStopped = errors.New("the execution was interrupted by a request")

// InterruptExecution stops an execution, also one that waits. It returns at once. Needs auth.SessionsExecute.
func (m *Manager) InterruptExecution(ctx context.Context, who auth.Principal, id string) (record.Execution, error) {
	e, err := record.Execution{}, who.Require(auth.SessionsExecute)
	if err == nil {
		m.mu.Lock()
		if t := m.executions[id]; t != nil && t.project == who.Project {
			t.stop(errStopped) // works also while the store does not answer
		}
		m.mu.Unlock()
		e, err = m.work.Store.Execution(ctx, who.Project, id)
	}
	if err == nil && !e.State.Final() {
		err = m.work.RunsElsewhereProblem(ctx, problem.ExecutionElsewhere, "execution", e.Owner)
	}
	m.work.WriteAudit(ctx, who, "execution.interrupt", id, "", err)
	return e, err
}
