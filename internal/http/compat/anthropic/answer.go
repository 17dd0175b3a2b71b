package anthropic

import (
	"encoding/json"
	"strings"

	"cove/internal/http/sse"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
)

// answer writes a message: whole, or as a stream of events in the order that the vendor's clients expect.
// https://platform.claude.com/docs/en/build-with-claude/streaming has the order.
type answer struct {
	c      *call
	id     string
	model  string
	input  int64 // an estimate of the tokens of the request, until the model's provider tells
	thinks bool
	out    *sse.Writer // nil until the stream begins
	stream bool
	// container describes where code ran; nil: there is none.
	container func() object
	// keep stores what an execution made, and returns the ids of the files and what could not be kept.
	keep func(*execution) (ids, notes []string)

	index   int    // of the next block
	open    string // the type of the block that is being said, or ""
	block   object // that block
	text    strings.Builder
	blocks  []object // of a message that is sent whole
	sure    int      // of blocks: those that are not said again when an answer breaks off
	said    strings.Builder
	running *execution
	writing map[int]*callPart // calls that the model is writing, by their place
	current *callPart         // that whose block is open
	ran     bool              // code was started
	caller  string            // what code is called that makes calls; see request.caller
	resumed string            // the id of the block whose code goes on; or ""
}

// begin sends what every stream begins with.
func (a *answer) begin() error {
	if !a.stream || a.out != nil {
		return nil
	}
	a.out = sse.NewWriter(a.c.w)
	a.c.w.Header().Set("Content-Type", sse.ContentType+"; charset=utf-8")
	m := a.message(nil, object{"input_tokens": a.input, "output_tokens": 0})
	m["content"], m["container"] = []object{}, nil
	if err := a.emit("message_start", object{"message": m}); err != nil {
		return err
	}
	return a.ping()
}

func (a *answer) ping() error {
	if a.out == nil {
		return a.begin()
	}
	return a.emit("ping", object{})
}

// emit sends an event of a stream that has begun; of a whole message there are none.
func (a *answer) emit(name string, e object) error {
	if !a.stream {
		return nil
	}
	e["type"] = name
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return a.write(name, text)
}

func (a *answer) write(name string, text []byte) error {
	_, err := a.out.Write(sse.Event{Name: name, Data: text}.Append(nil))
	return err
}

func (a *answer) message(reason any, usage object) object {
	return object{"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": a.blocks, "stop_reason": reason, "stop_sequence": nil, "usage": usage}
}

// start opens a block, which must have no field that its deltas fill. Its text begins anew.
func (a *answer) start(kind string, b, shown object) error {
	if err := a.begin(); err != nil {
		return err
	}
	a.open, a.block = kind, b
	a.text.Reset()
	b["type"], shown["type"] = kind, kind
	return a.emit("content_block_start", object{"index": a.index, "content_block": shown})
}

func (a *answer) delta(kind, field, text string) error {
	return a.emit("content_block_delta", object{"index": a.index, "delta": object{"type": kind, field: text}})
}

// stop ends the open block.
func (a *answer) stop() error {
	if a.open == "" {
		return nil
	}
	a.open = ""
	if !a.stream {
		a.blocks = append(a.blocks, a.block)
	}
	a.index++
	return a.emit("content_block_stop", object{"index": a.index - 1})
}

// whole sends a block that comes at once.
func (a *answer) whole(kind string, b object) error {
	if err := a.close(); err != nil {
		return err
	}
	if err := a.start(kind, b, b); err != nil {
		return err
	}
	return a.stop()
}

// close ends what is being said.
func (a *answer) close() error {
	switch a.open {
	case "text":
		a.block["text"] = a.text.String()
	case "thinking":
		a.block["thinking"] = a.text.String()
		if err := a.delta("signature_delta", "signature", ""); err != nil {
			return err
		}
	case "server_tool_use":
		return a.dropCode()
	}
	return a.stop()
}

func (a *answer) say(delta string) error {
	if a.open != "text" {
		if strings.TrimSpace(delta) == "" {
			return nil // blank lines between code and words are not worth a block of their own
		}
		if err := a.close(); err != nil {
			return err
		}
		if err := a.start("text", object{}, object{"text": ""}); err != nil {
			return err
		}
	}
	a.text.WriteString(delta)
	a.said.WriteString(delta)
	return a.delta("text_delta", "text", delta)
}

func (a *answer) think(delta string) error {
	if !a.thinks {
		return nil
	}
	if a.open != "thinking" {
		if err := a.close(); err != nil {
			return err
		}
		if err := a.start("thinking", object{"signature": ""}, object{"thinking": "", "signature": ""}); err != nil {
			return err
		}
	}
	a.text.WriteString(delta)
	return a.delta("thinking_delta", "thinking", delta)
}

// again ends what was begun: code that has not been started is not run, and the words are said again.
func (a *answer) again() error {
	err := a.close()
	if !a.stream {
		a.blocks = a.blocks[:a.sure]
	}
	a.said.Reset()
	return err
}

// calls tells which of the client's tools are to be called.
func (a *answer) calls(calls []model.ToolCall) error {
	for _, call := range calls {
		if err := a.close(); err != nil {
			return err
		}
		id := call.ID
		if id == "" {
			id = newID(callPrefix)
		}
		arguments := model.ArgumentsObject(call.Arguments)
		about := func(input any) object {
			return object{"id": id, "name": call.Name, "input": input, "caller": a.callerOf(call.ID)}
		}
		if err := a.start("tool_use", about(json.RawMessage(arguments)), about(object{})); err != nil {
			return err
		}
		if err := a.delta("input_json_delta", "partial_json", arguments); err != nil {
			return err
		}
		if err := a.stop(); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the message.
func (a *answer) finish(reason string, u model.Usage) error {
	if err := a.close(); err != nil {
		return err
	}
	if err := a.begin(); err != nil {
		return err
	}
	usage := object{"input_tokens": u.InputTokens - u.CachedTokens, "output_tokens": u.OutputTokens, "cache_read_input_tokens": u.CachedTokens, "cache_creation_input_tokens": 0}
	var where any
	if a.container != nil {
		where = a.container()
	}
	if a.stream {
		if err := a.emit("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil, "container": where}, "usage": usage}); err != nil {
			return err
		}
		return a.emit("message_stop", object{})
	}
	if a.blocks == nil {
		a.blocks = []object{}
	}
	m := a.message(reason, usage)
	m["container"] = where
	return a.c.reply(m)
}

// fail ends the message with an error: with a status where nothing was sent yet, otherwise within the stream.
func (a *answer) fail(err error) error {
	if a.out == nil {
		if a.ran { // a repeated request would run the code again
			a.c.w.Header().Set("X-Should-Retry", "false")
		}
		return err
	}
	return a.write("error", faultOf(err).body(a.c.w.Header().Get("Request-Id")))
}

// rest says the part of a turn's final answer that did not come as words: a sentence that cove composed.
func (a *answer) rest(e loop.Answer) error {
	said, want := strings.TrimSpace(a.said.String()), strings.TrimSpace(e.Text)
	switch {
	case want == "" || said == want || e.Reason == loop.ClientCalls && said != "":
		return nil
	case said == "":
		return a.say(e.Text)
	case strings.HasPrefix(want, said):
		return a.say(strings.TrimPrefix(want, said))
	}
	return nil
}

// reasonOf says how Anthropic calls the end of a turn. One that its limits ended goes on when the client sends its content back.
func reasonOf(r loop.AnswerReason) string {
	switch r {
	case loop.ClientCalls:
		return "tool_use"
	case loop.TokenLimit, loop.Length:
		return "max_tokens"
	case loop.Filtered:
		return "refusal"
	case loop.StepLimit, loop.TimeLimit, loop.CallLimit:
		return "pause_turn"
	}
	return "end_turn"
}
