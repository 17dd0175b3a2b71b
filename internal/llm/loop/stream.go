package loop

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
)

// reply is what one model call brought.
type reply struct {
	text   string           // the words and, where the code is in the text, the code with its fence; for the history
	words  string           // the text without code and reasoning
	calls  []model.ToolCall // complete calls
	code   string           // complete code from the text
	inCode bool             // code is set
	inCall bool             // the code came in a <tool_call> element
	cut    bool             // code or a call began and is not complete
	broken string           // why the <tool_call> in the text makes no sense, or ""
	finish model.FinishReason
}

// ask calls the model until it has answered: once more without each thing that the model turned out not to support (tools, images, a long conversation), and
// once more when its answer broke off.
func (t *turn) ask(ctx context.Context) (reply, error) {
	repeated := false
	for {
		if err := t.withinLimits(); err != nil {
			return reply{}, err
		}
		t.learnWindow(ctx, weigh(t.history.messages))
		s, req := t.newStream(false), t.request(false)
		if err := t.warnOfWindow(req); err != nil {
			return reply{}, err
		}
		err := t.stream(ctx, s, req)
		if err == nil {
			return s.reply(), nil
		}
		p := problem.Of(err)
		switch {
		case ctx.Err() != nil:
			return reply{}, err
		case !t.learned.fenced && problem.Has(p, problem.ToolsUnsupported) && len(t.spec.Tools) > 0:
			return reply{}, t.noFunctions(err)
		case !t.learned.fenced && problem.Has(p, problem.ToolsUnsupported):
			t.learned.fenced = true
			err = t.emit(Notice{"The model cannot call tools; it writes its code as text instead."})
		case !t.learned.blind && problem.Has(p, problem.ImagesUnsupported):
			t.learned.blind = true
			t.history.dropImages()
			err = t.emit(Notice{"The model cannot see images; it goes on without them."})
		case !t.squeezed && problem.Has(p, problem.ModelContextTooLong):
			t.squeezed = true
			t.history.squeeze()
			err = t.emit(Notice{"The conversation is too long for the model; earlier results were shortened."})
		case !repeated && brokeOff(p, s.started):
			repeated = true
			err = t.emit(Notice{"The model's answer broke off (" + p.Message + "); nothing of it was run. Asking again."})
		}
		if err != nil {
			return reply{}, err
		}
	}
}

// brokeOff says whether an answer broke off with an error that asking again may avoid. Adapters themselves repeat calls that fail before the first word.
func brokeOff(p *problem.Error, started bool) bool {
	if problem.Has(p, problem.ModelAnswerTooLong) {
		return false
	}
	return (started && (p.Kind == problem.Unavailable || p.Kind == problem.Timeout)) ||
		problem.Has(p, problem.ModelStreamMalformed, problem.ModelStreamTruncated)
}

// stream makes one model call and passes its parts to s.
func (t *turn) stream(ctx context.Context, s *answerStream, req model.Request) error {
	mctx, cancel := t.deadline.bound(ctx)
	defer cancel()
	defer func() { t.spend(s, req) }()
	for part, err := range t.model.Stream(mctx, req) {
		if err == nil {
			err = s.take(part)
		} else if ctx.Err() == nil && mctx.Err() != nil {
			return t.limit(TimeLimit)
		}
		if err != nil {
			return err
		}
		if s.over() {
			return nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.finish == nil:
		return problem.New(problem.ModelStreamTruncated, "the model's answer ended too early")
	}
	return nil
}

// spend counts the tokens of a call. For an answer that broke off they are estimated; where the provider gives no numbers, only for the limit.
func (t *turn) spend(s *answerStream, req model.Request) {
	u := model.Estimate(req, int64(s.bytes))
	switch {
	case s.finish != nil && s.finish.Usage != (model.Usage{}):
		u = s.finish.Usage
		t.usage = t.usage.Plus(u)
	case s.finish == nil && s.started:
		t.usage = t.usage.Plus(u)
	}
	if s.started || s.finish != nil {
		t.last = u
	}
	t.spent = min(t.spent+u.Total(), model.MostTokens)
}

// answerStream reads the parts of one answer, emits them and collects the reply.
type answerStream struct {
	turn    *turn
	plain   bool // words only: code and calls are not looked for
	scan    *textScanner
	words   strings.Builder
	all     strings.Builder
	codes   map[int]*codeStream // by the calls' index
	clients map[int]int         // calls of the client's functions, by the calls' index, in their order
	ids     map[int]string      // of those that came without one of their own
	order   []int               // indices of calls in the order in which they began
	started bool                // something was said
	bytes   int
	finish  *model.Finish
}

func (t *turn) newStream(plain bool) *answerStream {
	scan := newTextScanner(t.learned.fenced && !plain)
	scan.plain = plain || !t.python
	return &answerStream{turn: t, plain: plain, scan: scan, codes: map[int]*codeStream{}, clients: map[int]int{}, ids: map[int]string{}}
}

// over says that the rest of the answer is to be dropped: the code is complete, and whatever a model writes after it, without having seen the code's outcome,
// is a guess.
func (s *answerStream) over() bool { return s.finish == nil && s.scan.closed() }

func (s *answerStream) take(part model.Part) error {
	switch p := part.(type) {
	case model.TextDelta:
		s.started = true
		s.bytes += len(p.Text)
		s.all.WriteString(p.Text)
		return s.show(s.scan.write(p.Text))
	case model.ReasoningDelta:
		s.started = true
		s.bytes += len(p.Text)
		return s.turn.emit(Reasoning{p.Text})
	case model.CallDelta:
		s.started = true
		s.bytes += len(p.Arguments)
		return s.callDelta(p)
	case model.Retry:
		wait := time.Duration(p.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
		reason := strings.TrimRight(p.Reason, ". \n")
		return s.turn.emit(Notice{fmt.Sprintf("The model service failed (%s); trying again in %s.", reason, wait)})
	case model.Finish:
		s.finish = &p
		return s.show(s.scan.end(p.Reason != model.FinishLength))
	}
	return nil
}

func (s *answerStream) show(pieces []piece) error {
	for _, p := range pieces {
		var event Event
		switch p.kind {
		case pieceReasoning:
			event = Reasoning{p.text}
		case pieceCode:
			event = Code{s.turn.next(), p.text}
		default:
			s.words.WriteString(p.text)
			event = Text{p.text}
		}
		if err := s.turn.emit(event); err != nil {
			return err
		}
	}
	return nil
}

func (s *answerStream) callDelta(p model.CallDelta) error {
	code, ok := s.codes[p.Index]
	if !ok {
		switch {
		case s.plain:
		case s.turn.isClient(p.Name):
			if taken := s.taken(); p.ID == "" || taken[p.ID] {
				p.ID = freeID(taken)
				s.ids[p.Index] = p.ID
			}
			s.turn.told[p.ID] = true
			s.clients[p.Index] = len(s.clients)
		case s.turn.python && (p.Name == "" || isPython(p.Name)):
			code = &codeStream{}
		}
		s.codes[p.Index] = code
		s.order = append(s.order, p.Index)
		if nth, client := s.clients[p.Index]; client {
			return s.turn.emit(Call{Index: nth, ID: p.ID, Name: p.Name, Delta: p.Arguments})
		}
	}
	if nth, client := s.clients[p.Index]; client && p.Arguments != "" {
		return s.turn.emit(Call{Index: nth, Delta: p.Arguments})
	}
	if code == nil {
		return nil
	}
	delta := code.write(p.Arguments)
	if delta == "" {
		return nil
	}
	return s.turn.emit(Code{s.turn.next() + s.before(p.Index), delta})
}

// before is how many calls with code began before the one with that index.
func (s *answerStream) before(index int) int {
	nth := 0
	for _, other := range s.order {
		if other == index {
			break
		}
		if _, client := s.clients[other]; !client {
			nth++
		}
	}
	return nth
}

// taken are the ids that a call cannot get any more.
func (s *answerStream) taken() map[string]bool {
	ids := s.turn.history.callIDs()
	maps.Copy(ids, s.turn.told)
	return ids
}

// named returns the complete calls, each with the id under which it was told.
func (s *answerStream) named(calls []model.ToolCall) []model.ToolCall {
	out := slices.Clone(calls)
	for n := range out {
		if n < len(s.order) && s.ids[s.order[n]] != "" {
			out[n].ID = s.ids[s.order[n]]
		}
	}
	return out
}

// reply returns the reply of a stream that has ended without an error.
func (s *answerStream) reply() reply {
	r := reply{words: strings.TrimSpace(s.words.String()), finish: model.FinishStop}
	r.text = r.words
	var calls []model.ToolCall
	if s.finish != nil {
		r.finish, calls = s.finish.Reason, s.named(s.finish.Calls)
	}
	switch {
	case s.plain:
		return r
	case s.scan.state == inCall && r.finish != model.FinishLength:
		s.textCall(&r)
		r.cut = r.broken != ""
		r.broken = ""
	case s.scan.closed() && s.scan.call.Len() > 0:
		s.textCall(&r)
	case s.scan.closed():
		r.code, r.inCode = s.scan.code.String(), true
		r.text = strings.TrimSpace(s.scan.consumed.String())
	case s.scan.open():
		r.cut = true
	case r.finish == model.FinishLength || (r.finish == model.FinishCalls && len(calls) == 0):
		r.cut = len(s.order) > 0 || r.finish == model.FinishCalls
	default:
		r.calls = calls
	}
	return r
}

// textCall reads the <tool_call> element.
func (s *answerStream) textCall(r *reply) {
	r.text, r.inCall = strings.TrimSpace(s.scan.consumed.String()), true
	call, err := callInText(s.scan.call.String())
	if err == nil && call.Name != "" && !isPython(call.Name) {
		err = unknownTool(call.Name)
	}
	if err == nil {
		r.code, err = codeOf(call.Arguments)
	}
	if err != nil {
		r.broken = err.Error()
		return
	}
	r.inCode = true
}

func unknownTool(name string) error {
	return fmt.Errorf("there is no tool named %q; the only tool is %s, which takes {\"code\": \"...\"}", cutEnd(name, 60), toolName)
}

// willRun matches words with which a model announces that it runs the code in its message itself.
var willRun = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:i'll|i will|let me|let's|i'm going to|i am going to|i'm|now)\b[^.\n]{0,60}` +
		`\b(?:run|running|execut|calculat|comput|load|read|analy|plot|draw|check|inspect|look)` +
		`|(?:让我|我来|我先|我将|我会|我们来|我们先|接下来|首先)[^。\n]{0,20}(?:运行|执行|计算|读取|加载|分析|查看|绘制|画|检查|统计)`)
})

// impliedCode returns the code in the text of a message without calls that is clearly meant to be run, and the text up
// to its end. The rule is in the package comment.
func impliedCode(text string) (code, consumed string, ok bool) {
	s := newTextScanner(true)
	s.write(text)
	s.end(true)
	if !s.closed() || s.call.Len() > 0 || strings.TrimSpace(s.code.String()) == "" {
		return "", "", false
	}
	if rest := s.rest(); strings.TrimSpace(rest) != "" {
		more := newTextScanner(true)
		more.write(rest)
		more.end(true)
		if more.closed() || more.open() || !willRun().MatchString(text) {
			return "", "", false
		}
	}
	return s.code.String(), strings.TrimSpace(s.consumed.String()), true
}
