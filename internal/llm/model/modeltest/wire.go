package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// wire is one streaming format.
type wire interface {
	events(Turn, Dialect, Request) []event
	// failure is an error in mid-stream.
	failure(kind string) event
}

// event is one server-sent event. Data that is a string is sent as it is.
type event struct {
	name string
	data any
}

func (e event) bytes() []byte {
	var b bytes.Buffer
	if e.name != "" {
		fmt.Fprintf(&b, "event: %s\n", e.name)
	}
	text, ok := e.data.(string)
	if !ok {
		encoded, _ := json.Marshal(e.data)
		text = string(encoded)
	}
	fmt.Fprintf(&b, "data: %s\n\n", text)
	return b.Bytes()
}

// player writes the events of one turn and commits its faults.
type player struct {
	script *Script
	w      http.ResponseWriter
	r      *http.Request
	turn   Turn
	format wire
	sent   int // bytes
}

func (p *player) play(events []event) {
	p.flush()
	if p.turn.HangBeforeFirst {
		p.script.hang(p.r)
		return
	}
	for i, e := range events {
		if i > 0 && i == p.turn.CommentsAfter {
			p.repeat([]byte(": keep-alive\n\n"))
			return
		}
		if i > 0 && i == p.turn.RepeatAfter {
			p.repeat(events[i-1].bytes())
			return
		}
		if p.fault(i) {
			return
		}
		if p.turn.Delay > 0 && !p.wait() {
			return
		}
		p.write(e.bytes())
	}
}

// fault commits the fault that is due after n events and reports whether the stream is over.
func (p *player) fault(n int) bool {
	t := p.turn
	switch {
	case n > 0 && n == t.StallAfter:
		p.script.hang(p.r)
	case n > 0 && n == t.CutAfter:
	case n > 0 && n == t.MalformedAfter:
		p.write([]byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"choices\":[{\"del\n\n"))
	case n > 0 && n == t.ErrorAfter, n == 0 && t.ErrorAfter < 0:
		kind := t.ErrorType
		if kind == "" {
			kind = "overloaded_error"
		}
		p.write(p.format.failure(kind).bytes())
	default:
		return false
	}
	return true
}

// repeat writes the same thing until nobody reads it any more.
func (p *player) repeat(b []byte) {
	for {
		select {
		case <-p.r.Context().Done():
			return
		case <-p.script.closing:
			return
		default:
		}
		if p.turn.Delay > 0 && !p.wait() {
			return
		}
		if _, err := p.w.Write(b); err != nil {
			return
		}
		p.flush()
	}
}

func (p *player) wait() bool {
	select {
	case <-time.After(p.turn.Delay):
		return true
	case <-p.r.Context().Done():
		return false
	}
}

// write sends an event in two writes when it has a character of several bytes, split within that character.
func (p *player) write(b []byte) {
	if limit := p.turn.TruncateAfter; limit > 0 && p.sent+len(b) >= limit {
		_, _ = p.w.Write(b[:limit-p.sent])
		p.flush()
		panic(http.ErrAbortHandler)
	}
	p.sent += len(b)
	at := bytes.IndexFunc(b, func(r rune) bool { return r >= 0x80 })
	if at >= 0 {
		_, _ = p.w.Write(b[:at+1])
		p.flush()
		b = b[at+1:]
	}
	_, _ = p.w.Write(b)
	p.flush()
}

func (p *player) flush() { p.w.(http.Flusher).Flush() }
