package hub

import (
	"context"
	"errors"
	"fmt"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// overseen returns tools whose calls wait for the user's word where that is asked for, and are in the audit log.
func (h *Hub) overseen(who auth.Principal, e Execution, tools *kernel.Tools) *kernel.Tools {
	if tools == nil || !tools.Set.AsksAny() {
		return h.audited(who, e, tools)
	}
	a := h.calls.newWaits(e)
	out := *tools
	out.Asking = a.add
	out.Patience = max(out.Patience, h.o.Limits.Approval+kernel.ToolPatience)
	out.Call = tool.Asking(tools.Set, h.wordAbout(a), tools.Call)
	return h.audited(who, e, &out)
}

// wordAbout waits for the user's word about a call.
func (h *Hub) wordAbout(a *waits[tool.Word]) func(ctx context.Context, c tool.Call) (tool.Word, error) {
	return func(ctx context.Context, c tool.Call) (tool.Word, error) {
		patience := h.o.Limits.Approval
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
func (h *Hub) ApproveCall(ctx context.Context, who auth.Principal, execution string, number int, w tool.Word) (Execution, error) {
	e, err := h.approveCall(ctx, who, execution, number, w)
	detail := fmt.Sprintf("call %d refused", number)
	if w.Run {
		detail = fmt.Sprintf("call %d allowed", number)
	}
	h.work.WriteAudit(ctx, who, "execution.approve", execution, detail, err)
	return e, err
}

func (h *Hub) approveCall(ctx context.Context, who auth.Principal, execution string, number int, w tool.Word) (Execution, error) {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return Execution{}, err
	}
	switch {
	case w.Run && w.Note != "":
		return Execution{}, problem.New(problem.InvalidRequest, "a call that is made takes no note").WithHint("leave note out, or refuse the call")
	case len(w.Note) > longestNote:
		return Execution{}, problem.New(problem.InvalidRequest, "the note has more than 4 KiB")
	}
	late := problem.New(problem.CallNotWaiting, fmt.Sprintf("call %d of the execution waits for nobody's word", number)).
		WithHint("it was decided before, or the code has ended: look at the execution's events")
	return h.calls.say(ctx, who, execution, number, saidTo[tool.Word]{word: w}, late)
}
