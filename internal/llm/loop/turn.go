package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

const (
	// lastAnswer is the time that is reserved for a last answer from what is known; in short turns it is a quarter of the turn.
	lastAnswer = time.Minute
	// lastWords is the longest time that ending the code and composing an answer takes.
	lastWords = 10 * time.Second
)

// cutLimit is how many calls in a row may be cut off before the turn ends.
const cutLimit = 2

// turn is the state of one turn while it runs.
type turn struct {
	model    model.Model
	session  Executor
	limits   Limits
	spec     Turn
	python   bool // code may be run
	learned  learned
	known    recollection
	history  history
	deadline deadline // of another model call and more code
	end      deadline // of the last answer
	yield    func(Event, error) bool
	stopped  bool // yield returned false

	steps    int         // executions that ran
	kernels  []string    // besides the main one, that the model has named
	refused  int         // programs that the user did not want to run
	clock    *time.Timer // ends the turn, see bound; nil: its context does
	attempts int         // executions, and calls that could not be run
	usage    model.Usage
	last     model.Usage     // of the last request that was answered
	spent    int64           // tokens, estimated where unknown
	cuts     int             // calls cut off in a row
	squeezed bool            // the conversation was made shorter than its budget
	overlong bool            // the user was told that a request is longer than the model's window
	nudged   bool            // the model was asked once for a missing answer
	told     map[string]bool // ids of the client's calls that were told, also of answers that broke off
	repeated repetition
	lastCode string // the last code that succeeded
	lastText string // the last result, as the model got it
}

// limitReached ends the loop, not the turn: one last model call may still answer.
type limitReached struct {
	reason AnswerReason
	limit  string // what was reached, as a noun: "the limit of 20 executions"
}

func (l *limitReached) Error() string { return "reached " + l.limit }

func (t *turn) limit(reason AnswerReason) *limitReached {
	switch reason {
	case StepLimit:
		return &limitReached{reason, fmt.Sprintf("the limit of %d code executions", t.limits.Steps)}
	case CallLimit:
		return &limitReached{reason, fmt.Sprintf("the limit of %d code executions", t.spec.MaxCalls)}
	case TokenLimit:
		return &limitReached{reason, fmt.Sprintf("the limit of %s tokens", grouped(t.limits.Tokens))}
	case TimeLimit:
		return &limitReached{reason, fmt.Sprintf("the time limit of %s", t.limits.Time)}
	case Length:
		return &limitReached{reason, "the limit of tokens for one answer, again and again"}
	case Repeated:
		return &limitReached{reason, "the end of the attempts: the same code failed again and again"}
	default:
		return &limitReached{reason, string(reason)}
	}
}

func (t *turn) emit(e Event) error {
	if t.stopped {
		return errStopped
	}
	if !t.yield(e, nil) {
		t.stopped = true
		return errStopped
	}
	return nil
}

func (t *turn) run(ctx context.Context) (Answer, error) {
	begin := t.takeInput
	if t.spec.Suspended != nil {
		begin = t.resume
	}
	var answer Answer
	err := begin(ctx)
	if err == nil {
		answer, err = t.loop(ctx)
	}
	if waits, ok := errors.AsType[*suspension](err); ok {
		return t.suspended(waits.Suspended), nil
	}
	if limit, ok := errors.AsType[*limitReached](err); ok && ctx.Err() == nil {
		answer, err = t.wrapUp(ctx, limit)
	}
	return answer, err
}

// loop asks and runs until there is an answer.
func (t *turn) loop(ctx context.Context) (Answer, error) {
	for {
		r, err := t.ask(ctx)
		if err != nil {
			return Answer{}, err
		}
		if !r.cut {
			t.cuts = 0
		}
		if err := t.takeImplied(&r); err != nil {
			return Answer{}, err
		}
		switch {
		case r.finish == model.FinishFilter:
			return t.answer(orElse(r.words, "The model's provider refused or filtered the answer."), Filtered), nil
		case r.cut:
			err = t.cutOff(r)
		case len(r.calls) > 0 && t.learned.fenced && t.python:
			// The model has called a tool that was not offered. The code is clear, but its server may refuse such a call in the conversation.
			err = t.runText(ctx, callAsText(r))
		case len(r.calls) > 0:
			calls, err := t.runCalls(ctx, r)
			if err != nil || len(calls) > 0 {
				answer := t.answer(r.words, ClientCalls)
				answer.Calls = calls
				return answer, err
			}
		case r.broken != "":
			err = t.refuseText(r)
		case r.inCode && (t.lastCode != r.code || r.words == "" || r.inCall):
			err = t.runText(ctx, r)
		case r.words == "" && r.finish == model.FinishLength && t.spec.MaxTokens > 0:
			return t.answer(t.composed("The answer was cut off before its first word: the limit of tokens was reached."), Length), nil
		case r.words == "" && !t.nudged:
			err = t.nudge()
		case r.words == "":
			return t.answer(t.composed("The model gave no answer."), NoAnswer), nil
		case r.finish == model.FinishLength:
			return t.answer(r.words, Length), nil
		default:
			return t.answer(r.words, Complete), nil
		}
		if err != nil {
			return Answer{}, err
		}
	}
}

func (t *turn) answer(text string, reason AnswerReason) Answer {
	return Answer{Text: text, Reason: reason, Steps: t.steps, Usage: t.usage, Last: t.last}
}

// composed returns the answer that cove itself gives when the model gives none.
func (t *turn) composed(sentence string) string {
	if t.lastText == "" {
		return sentence + " No code was run."
	}
	return sentence + " The last result was:\n\n" + cutMiddle(t.lastText, 2000)
}

// withinLimits says whether another model call is within the limits of time and tokens.
func (t *turn) withinLimits() error {
	switch {
	case t.deadline.passed():
		return t.limit(TimeLimit)
	case t.limits.Tokens > 0 && t.spent >= t.limits.Tokens:
		return t.limit(TokenLimit)
	}
	return nil
}

// mayRun says whether code may be run now. It counts the attempt.
func (t *turn) mayRun(code string) error {
	if err := t.withinLimits(); err != nil {
		return err
	}
	if t.attempts >= t.limits.Steps {
		return t.limit(StepLimit)
	}
	if t.spec.MaxCalls > 0 && t.steps >= t.spec.MaxCalls {
		return t.limit(CallLimit)
	}
	if code != "" && t.repeated.exhausted(code) {
		return t.limit(Repeated)
	}
	t.attempts++
	return nil
}

// takeImplied turns code that the model wrote as text instead of calling its tool into code to run, if that is clearly
// meant.
func (t *turn) takeImplied(r *reply) error {
	if !t.python || len(t.spec.Tools) > 0 || t.learned.fenced || t.known.called || t.steps > 0 || r.finish != model.FinishStop ||
		r.inCode || r.cut || r.broken != "" || len(r.calls) > 0 {
		return nil
	}
	code, consumed, ok := impliedCode(r.text)
	if !ok {
		return nil
	}
	r.code, r.inCode, r.text = code, true, consumed
	t.learned.fenced = true
	return t.emit(Notice{"The model wrote its code as text instead of calling its tool; running it."})
}

// cutOff tells the model that its call was not complete.
func (t *turn) cutOff(r reply) error {
	t.cuts++
	if t.cuts > cutLimit {
		return t.limit(Length)
	}
	if err := t.mayRun(""); err != nil {
		return err
	}
	if err := t.emit(Notice{"The model's code was cut off before it was complete; it was not run."}); err != nil {
		return err
	}
	t.history.add(model.RoleAssistant, model.Text{Text: orElse(r.words, "(code that was cut off)")})
	t.history.add(model.RoleUser, model.Text{Text: render("cutoff.md", t.learned.fenced)})
	return nil
}

// nudge asks the model once for its answer, when it has given none.
func (t *turn) nudge() error {
	t.nudged = true
	t.history.add(model.RoleUser, model.Text{Text: render("please.md", nil)})
	return t.emit(Notice{"The model said nothing; asking it for its answer."})
}

// callAsText turns the first call of a reply into code in its text.
func callAsText(r reply) reply {
	code, err := codeOf(r.calls[0].Arguments)
	if err != nil {
		code = ""
	}
	r.calls, r.code, r.inCode = nil, code, true
	r.text = strings.TrimSpace(r.words + "\n\n" + fence("python", code))
	return r
}

// runText runs the code that came in a message's text and brings its result as words of the user.
func (t *turn) runText(ctx context.Context, r reply) error {
	if strings.TrimSpace(r.code) == "" {
		r.broken = "the code is empty"
		return t.refuseText(r)
	}
	t.history.add(model.RoleAssistant, model.Text{Text: r.text})
	o, err := t.execute(ctx, r.code, "")
	return t.answerText(r.inCall, o, err)
}

// answerText brings the result of code that came in a message's text as words of the user.
func (t *turn) answerText(inCall bool, o outcome, err error) error {
	if waits, ok := errors.AsType[*suspension](err); ok {
		waits.call, waits.inCall = "", inCall
		return err
	}
	if err != nil {
		// The conversation must not end in code that looks as if it had been run.
		t.history.add(model.RoleUser, model.Text{Text: "Not run to its end: the turn was stopped."})
		return err
	}
	content := []model.Content{model.Text{Text: textResult(inCall, o.text)}}
	for _, image := range o.images {
		content = append(content, image)
	}
	t.history.add(model.RoleUser, content...)
	return nil
}

// refuseText tells the model why the code in its text could not be run.
func (t *turn) refuseText(r reply) error {
	t.history.add(model.RoleAssistant, model.Text{Text: orElse(r.text, "(a call)")})
	if err := t.mayRun(""); err != nil {
		return err
	}
	t.history.add(model.RoleUser, model.Text{Text: textResult(r.inCall, "Nothing was run: "+r.broken+".")})
	return t.emit(Notice{"The model's call could not be used; it is told why and may try again."})
}

func textResult(inCall bool, text string) string {
	if inCall {
		return responseHead + text + "\n</tool_response>"
	}
	return fencedResult(text)
}

// wrapUp makes one last model call, without tools, that answers from what is known.
func (t *turn) wrapUp(ctx context.Context, limit *limitReached) (Answer, error) {
	const maxTokens = 4000
	if err := t.emit(Notice{"Reached " + limit.limit + "; asking the model to answer from what is known."}); err != nil {
		return Answer{}, err
	}
	t.history.add(model.RoleUser, model.Text{Text: render("limit.md", limit.limit)})
	t.deadline = t.end.orBefore(deadlineIn(lastAnswer))
	s := t.newStream(true)
	req := t.request(true)
	if req.MaxTokens == 0 || req.MaxTokens > maxTokens {
		req.MaxTokens = maxTokens
	}
	err := t.stream(ctx, s, req)
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return Answer{}, err
	}
	words := s.reply().words
	if err != nil || words == "" {
		words = t.composed("I reached " + limit.limit + " before I could finish.")
	}
	return t.answer(words, limit.reason), nil
}

// execute runs code, yields its events and returns the outcome for the model.
func (t *turn) execute(ctx context.Context, code, kernel string) (outcome, error) {
	step, run, o, err := t.admit(ctx, code, kernel)
	if run == nil {
		return o, err
	}
	return t.watch(ctx, step, run, t.session.Execute(ctx, t.program(step, run)))
}

// admit says whether code may run, and as what. Without a run there is its outcome, or an error.
func (t *turn) admit(ctx context.Context, code, kernel string) (step int, run *Suspended, o outcome, err error) {
	if err := t.mayRun(code); err != nil {
		return 0, nil, outcome{}, err
	}
	step = t.next()
	d, err := t.decide(ctx, step, code)
	switch {
	case err != nil:
		return 0, nil, outcome{}, err
	case !d.Run:
		o, err = t.refuse(step, d)
		return 0, nil, o, err
	}
	t.steps++
	return step, &Suspended{written: code, code: d.Code, kernel: kernel}, outcome{}, nil
}

// program is what the session is to run now.
func (t *turn) program(step int, run *Suspended) Program {
	run.timeout = t.deadline.left(time.Millisecond, t.limits.Execution)
	return Program{Step: step, Code: run.code, Edited: run.code != run.written, Kernel: run.kernel, Timeout: run.timeout}
}

// watch tells of code that runs, and of what it emits, and returns the outcome.
func (t *turn) watch(ctx context.Context, step int, run *Suspended, events iter.Seq2[kernel.Event, error]) (outcome, error) {
	if err := t.emit(Start{Step: step, Code: run.code, Edited: run.code != run.written, Kernel: run.kernel}); err != nil {
		return outcome{}, err
	}
	run.record = newRecord(t.known.figures, t.sees())
	o, err := t.follow(ctx, step, run, events)
	if err != nil {
		return outcome{}, err
	}
	return t.noted(run.written, o), nil
}

// noted takes down what came of the model's code.
func (t *turn) noted(code string, o outcome) outcome {
	if !o.failed {
		t.lastCode = code
	}
	if t.repeated.note(code, o.failed) {
		o.text += "\n\n" + render("approach.md", repeatLimit)
	}
	t.lastText = o.text
	return o
}

// ended is the outcome of code that has ended.
func (t *turn) ended(ctx context.Context, step int, run *Suspended) (outcome, error) {
	switch {
	case ctx.Err() != nil:
		return outcome{}, ctx.Err()
	case run.record.done == nil:
		return outcome{}, problem.New(problem.ExecutionWithoutEnd, "an execution ended without an outcome")
	}
	t.known.figures = run.record.figures
	o := t.outcomeOf(ctx, run.record, run.timeout)
	if run.code != run.written {
		o.text = editedHead(run.code) + o.text
	}
	return o, t.look(ctx, step, run.code, &o)
}

func orElse(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return text
}
