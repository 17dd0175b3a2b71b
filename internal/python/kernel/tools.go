package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/llm/tool"
	"cove/internal/machine/wire"
)

// Tools are what code may call beside what is in its sandbox: functions of the module tools.
type Tools struct {
	Set *tool.Set
	// Globals gives the code the tools as functions by their names, too, which are to be awaited.
	Globals bool
	// Call performs calls that code made at one time and waits for together. It has answer called once for each, from any goroutine, and may return before. ctx ends with the execution.
	Call func(ctx context.Context, calls []tool.Call, answer func(number int, r tool.Result))
	// Asking is told of each call that waits for somebody's word (tool.Set.Asks), before an event tells of it. The one who performs Call sees to it that the call waits.
	Asking func(number int)
	// Patience is how long the code may wait for calls, all in all; its Timeout does not run meanwhile. 0 means ten minutes.
	Patience time.Duration
}

// ToolsModule is the module that an execution with tools has.
const ToolsModule = "tools"

// What is kept of a call for those who follow, in bytes.
const (
	keptName      = 200
	keptArguments = 4 << 10
)

// ToolPatience is what Tools.Patience is by itself.
const ToolPatience = 10 * time.Minute

// Provides says whether the tools are a module of that name to the code.
func (t *Tools) Provides(module string) bool {
	root, _, _ := strings.Cut(module, ".")
	return root == ToolsModule && t != nil && t.Set.Len() > 0
}

func (t *Tools) patience() time.Duration { return cmp.Or(t.Patience, ToolPatience) }

// message is what the kernel is told of tools; nil: there are none.
func (t *Tools) message() map[string]any {
	if t == nil || t.Set.Len() == 0 {
		return nil
	}
	var list []map[string]any
	for function, one := range t.Set.All {
		m := map[string]any{"function": function, "name": one.Name, "description": one.Description}
		if len(one.Parameters) > 0 {
			m["parameters"] = one.Parameters
		}
		if len(one.Result) > 0 {
			m["result"] = one.Result
		}
		list = append(list, m)
	}
	return map[string]any{"list": list, "globals": t.Globals}
}

// calls are an execution's calls of tools.
type calls struct {
	ctx     context.Context
	cancel  context.CancelFunc
	replies chan toolReply
	waiting map[int]pending // by number
	made    int
	running sync.WaitGroup
	// performing is how many batches are with somebody on this side of the kernel; calls whose results somebody brings later are not.
	performing atomic.Int32
	performed  chan struct{} // holds a token when performing has changed

	began time.Time     // when the first of those that wait was made
	spent time.Duration // of the time for waiting
}

// pending is a call without an answer.
type pending struct {
	name, arguments string // the arguments as ToolCall has them
	made            time.Time
}

type toolReply struct {
	number int
	result tool.Result
}

func (c *calls) open(ctx context.Context) {
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.replies, c.performed, c.waiting = make(chan toolReply), make(chan struct{}, 1), map[int]pending{}
}

// over notes that somebody has done what is to be done for a batch of calls.
func (c *calls) over() {
	c.performing.Add(-1)
	select {
	case c.performed <- struct{}{}:
	default:
	}
}

// close waits until nobody performs a call for this execution any more.
func (c *calls) close() {
	c.cancel()
	c.running.Wait()
}

// saidCall is a call in a kernel's message.
type saidCall struct {
	Number    int    `json:"number"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// call has the calls of a message performed. An error is a violation of the protocol.
func (x *execution) call(s spoken) error {
	switch {
	case s.ID != x.id:
		return nil // of code that has ended, which does not wait any more: a thread of it may be about to call when the next code begins, which may have no tools
	case x.req.Tools == nil || x.req.Tools.Set.Len() == 0:
		return errors.New("it called a tool, which was not offered")
	}
	var good []tool.Call
	err := elements(s.Calls, '[', tool.MostAtOnce+1, func(d *json.Decoder) error {
		var said saidCall
		if err := d.Decode(&said); err != nil {
			return errors.New("it called a tool in an unexpected form")
		}
		c := tool.Call{Number: said.Number, Name: said.Name, Arguments: json.RawMessage(said.Arguments)}
		if _, twice := x.calls.waiting[c.Number]; twice {
			return fmt.Errorf("it made call %d twice", c.Number)
		}
		if len(x.calls.waiting) >= tool.MostAtOnce {
			return fmt.Errorf("it made more than %d calls without waiting for an answer", tool.MostAtOnce)
		}
		x.calls.made++
		err := x.req.Tools.Set.Check(c)
		if x.calls.made > tool.MostCalls {
			err = fmt.Errorf("the code has made %d calls, which is the most for one execution", tool.MostCalls)
		}
		p := pending{wire.Printable(c.Name, keptName), strings.ToValidUTF8(said.Arguments[:min(len(said.Arguments), keptArguments)], ""), time.Now()}
		asks := x.req.Tools.Set.Asks(c.Name)
		if err == nil && asks {
			err = x.mayAsk(c)
		}
		if err != nil {
			return x.answer(c.Number, p, tool.Failed(err.Error()))
		}
		x.wait(c.Number, p)
		if asks {
			x.ofAsked(c)
		}
		good = append(good, c)
		return nil
	})
	if len(good) > 0 && err == nil {
		x.calls.performing.Add(1)
		x.calls.running.Go(func() {
			defer x.calls.over()
			x.req.Tools.Call(x.calls.ctx, good, func(number int, r tool.Result) {
				select {
				case x.calls.replies <- toolReply{number, r}:
				case <-x.calls.ctx.Done():
				}
			})
		})
	}
	return err
}

// mayAsk returns why nobody can be asked about a call.
func (x *execution) mayAsk(c tool.Call) error {
	if len(c.Arguments) > tool.MostAsked {
		return fmt.Errorf("the user is asked before this call, and its arguments are longer than %d KiB; make them shorter", tool.MostAsked>>10)
	}
	if x.shown += int64(len(c.Arguments)); x.shown > x.limit+errorRoom {
		return errors.New("the user is asked before this call, and the code has shown as much as it may")
	}
	return nil
}

// ofAsked tells of a call that waits for somebody's word.
func (x *execution) ofAsked(c tool.Call) {
	if x.req.Tools.Asking != nil {
		x.req.Tools.Asking(c.Number)
	}
	x.emit(CallAsks{Number: c.Number, Name: c.Name, Arguments: string(c.Arguments)})
}

// wait notes a call that is made now.
func (x *execution) wait(number int, p pending) {
	if len(x.calls.waiting) == 0 && x.reason == "" {
		x.pauseClock()
		x.waitLonger()
	}
	x.calls.waiting[number] = p
}

// waitLonger begins to wait for what is left of the patience.
func (x *execution) waitLonger() {
	x.calls.began = time.Now()
	x.timer.Reset(max(x.req.Tools.patience()-x.calls.spent, 0))
}

// answered hands a result to the code, and has its time go on when it was the last that is waited for.
func (x *execution) answered(r toolReply) {
	p, ok := x.calls.waiting[r.number]
	if !ok {
		return
	}
	delete(x.calls.waiting, r.number)
	if len(x.calls.waiting) == 0 && x.reason == "" {
		x.calls.spent += time.Since(x.calls.began)
		x.timer.Stop()
		x.resumeClock()
	}
	_ = x.answer(r.number, p, x.req.Tools.Set.Answer(p.name, r.result))
}

// answer tells the kernel, and those who follow, what came of a call.
func (x *execution) answer(number int, p pending, r tool.Result) error {
	if x.shown += int64(len(p.arguments) + len(r.Err)); x.shown <= x.limit+errorRoom {
		x.emit(ToolCall{Number: number, Name: p.name, Arguments: p.arguments, Error: r.Err, Wall: time.Since(p.made)})
	}
	reply := map[string]any{"type": "tool_reply", "id": x.id, "number": number}
	if r.Err != "" {
		reply["error"] = r.Err
	} else {
		reply["value"] = r.Value
	}
	return x.kernel.send(reply)
}
