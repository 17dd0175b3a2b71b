package toolbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

const (
	lspTime    = 2 * time.Minute // for an answer of a language server
	mostAnswer = 16 << 20        // bytes of a message of a language server
)

// lspMessage is what goes to and comes from a language server, as JSON-RPC has it.
type lspMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *lspError       `json:"error,omitempty"`
}

type lspError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// methodAbsent is the code of an answer to what a server cannot do.
const methodAbsent = -32601

func (t *Toolbox) say(ctx context.Context, c *call, s *server, m lspMessage) error {
	m.Version = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	framed := append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(text)), text...)
	_, err = t.o.Hub.TellProcess(ctx, c.who, c.id(), s.process, bytes.NewReader(framed), false)
	if problem.Has(err, problem.ProcessEnded, problem.ProcessNotFound) {
		err = &fault{http.StatusBadRequest, "LSP_SERVER_NOT_INITIALIZED", "the language server has ended; start it again"}
	}
	return err
}

// tell tells a language server something that it does not answer.
func (t *Toolbox) tell(c *call, s *server, method string, params any) error {
	leave, err := s.enter(c.Context())
	if err != nil {
		return err
	}
	defer leave()
	return t.say(c.Context(), c, s, lspMessage{Method: method, Params: params})
}

// ask asks a language server, and returns the result. What it asks in turn is answered with nothing.
func (t *Toolbox) ask(c *call, s *server, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(c.Context(), lspTime)
	defer cancel()
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s.next++
	id := json.RawMessage(strconv.Quote(fmt.Sprintf("cove-%d-%d", time.Now().UnixNano(), s.next)))
	if err := t.say(ctx, c, s, lspMessage{ID: id, Method: method, Params: params}); err != nil {
		return nil, err
	}
	events, err := t.o.Hub.FollowProcess(ctx, c.who, c.id(), s.process, s.read)
	if err != nil {
		return nil, err
	}
	var reader lspReader
	for e, err := range events {
		switch {
		case err != nil && ctx.Err() != nil && c.Context().Err() == nil:
			return nil, &fault{http.StatusGatewayTimeout, "", "the language server does not answer " + method}
		case err != nil:
			return nil, err
		case e.Kind == process.Ended:
			return nil, &fault{http.StatusBadRequest, "LSP_SERVER_NOT_INITIALIZED", "the language server has ended; start it again"}
		case e.Kind != process.Stdout:
			continue
		}
		for _, text := range reader.add(e.Data) {
			var m lspMessage
			if json.Unmarshal(text, &m) != nil {
				continue
			}
			switch {
			case m.Method != "" && len(m.ID) > 0:
				if err := t.say(ctx, c, s, lspMessage{ID: m.ID, Result: json.RawMessage("null")}); err != nil {
					return nil, err
				}
			case m.Method == "" && bytes.Equal(m.ID, id):
				s.read = e.Next() - int64(len(reader.held))
				return m.outcome(method)
			}
		}
		if len(reader.held) == 0 {
			s.read = e.Next()
		}
	}
	return nil, errLSP(method)
}

func (m lspMessage) outcome(method string) (json.RawMessage, error) {
	if m.Error == nil {
		return m.Result, nil
	}
	code := http.StatusUnprocessableEntity
	if m.Error.Code == methodAbsent {
		code = http.StatusNotImplemented
	}
	return nil, &fault{code, "", fmt.Sprintf("the language server refuses %s: %.500s", method, m.Error.Message)}
}

// lspReader parts what a language server writes into messages. What is none, as before a message begins, is left out.
type lspReader struct{ held []byte }

var lspHead = []byte("Content-Length:")

func (r *lspReader) add(data []byte) (out [][]byte) {
	r.held = append(r.held, data...)
	for {
		at := bytes.Index(r.held, lspHead)
		if at < 0 {
			r.held = r.held[len(r.held)-process.Partial(r.held, lspHead):]
			return out
		}
		r.held = r.held[at:]
		head, body, whole := bytes.Cut(r.held, []byte("\r\n\r\n"))
		if !whole {
			if len(r.held) > mostFrame {
				r.held = nil
			}
			return out
		}
		line, _, _ := bytes.Cut(head[len(lspHead):], []byte("\r\n"))
		size, err := strconv.Atoi(string(bytes.TrimSpace(line)))
		if err != nil || size < 0 || size > mostAnswer {
			r.held = r.held[len(lspHead):]
			continue
		}
		if len(body) < size {
			return out
		}
		out = append(out, body[:size])
		r.held = body[size:]
	}
}
