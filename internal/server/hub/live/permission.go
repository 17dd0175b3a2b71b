package live

import (
	"context"
	"errors"
	"fmt"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// LongestNote bounds a user's reason of a word, in bytes.
const LongestNote = 4 << 10

// WithApproval returns tools whose calls wait for the user's word where that is asked for, and are in the audit log.
func (m *Manager) WithApproval(who auth.Principal, e record.Execution, tools *kernel.Tools) *kernel.Tools {
	if tools == nil || !tools.Set.AsksAny() {
		return m.withAuditedCalls(who, e, tools)
	}
	a := m.calls.newWaits(e)
	out := *tools
	out.Asking = a.add
	out.Patience = max(out.Patience, m.o.Limits.Approval+kernel.ToolPatience)
	out.Call = tool.Asking(tools.Set, m.askAboutCall(a), tools.Call)
	return m.withAuditedCalls(who, e, &out)
}

// askAboutCall waits for the user's word about a call.
func (m *Manager) askAboutCall(a *waits[tool.Word]) func(ctx context.Context, c tool.Call) (tool.Word, error) {
	return func(ctx context.Context, c tool.Call) (tool.Word, error) {
		patience := m.o.Limits.Approval
		w, err := a.await(ctx, c.Number, patience)
		switch {
		case errors.Is(err, errSaidLate):
			err = fmt.Errorf("nobody said within %s whether it may be made", patience)
		case errors.Is(err, errCodeEnded):
			err = errors.New("the code that called has ended")
		case errors.Is(err, errWaitStopped):
			err = errors.New("the server stopped while the call waited for the user's word")
		}
		return w, err
	}
}

// ApproveCall lets a call of a tool be made that waits for a user's word, or not. The execution goes on with its result, or with an error for the code. Needs auth.SessionsExecute. Problems: execution_not_found, call_not_waiting, execution_elsewhere,
// invalid_request.
func (m *Manager) ApproveCall(ctx context.Context, who auth.Principal, execution string, number int, w tool.Word) (record.Execution, error) {
	e, err := m.approveCall(ctx, who, execution, number, w)
	detail := fmt.Sprintf("call %d refused", number)
	if w.Run {
		detail = fmt.Sprintf("call %d allowed", number)
	}
	m.work.WriteAudit(ctx, who, "execution.approve", execution, detail, err)
	return e, err
}

func (m *Manager) approveCall(ctx context.Context, who auth.Principal, execution string, number int, w tool.Word) (record.Execution, error) {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return record.Execution{}, err
	}
	switch {
	case w.Run && w.Note != "":
		return record.Execution{}, problem.New(problem.InvalidRequest, "a call that is made takes no note").WithHint("leave note out, or refuse the call")
	case len(w.Note) > LongestNote:
		return record.Execution{}, problem.New(problem.InvalidRequest, "the note has more than 4 KiB")
	}
	late := problem.New(problem.CallNotWaiting, fmt.Sprintf("call %d of the execution waits for nobody's word", number)).
		WithHint("it was decided before, or the code has ended: look at the execution's events")
	return m.calls.say(ctx, who, execution, number, saidTo[tool.Word]{word: w}, late)
}
