package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"cove/internal/http/sse"
)

const (
	clientLoopID = "client-loop"
	coveLoopID   = "cove-loop"
	coveCodeID   = "cove-code"
	coveHostID   = "cove-host"
)

// mostRequests bounds what a client sends for one task: each call by itself, the beginning, and one in reserve.
const mostRequests = toolCalls + 2

var errTooManyRequests = errors.New("the task does not end")

// agentTool is the client's function in the form that the model's API and cove's share in part.
type agentTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Returns     json.RawMessage `json:"returns,omitempty"`
	Callers     []string        `json:"callers,omitempty"`
}

// clientLoop is an agent's loop in the client: it asks the model, performs the calls, and asks again with all that was said.
type clientLoop struct{ outside *outside }

func (s *clientLoop) About() About {
	return About{ID: clientLoopID, Title: "a loop in the client", Note: "chat completions from the model itself; nothing is isolated, and no code runs"}
}

func (s *clientLoop) Start(context.Context) error  { return s.outside.open() }
func (s *clientLoop) Stop(context.Context) error   { return s.outside.close() }
func (s *clientLoop) Refill(context.Context) error { return nil }
func (s *clientLoop) Outside() *outside            { return s.outside }

// Attempt implements Agent. What the client sends, it sends to the model, which has the delay: it is the same network.
func (s *clientLoop) Attempt(w workload, _ time.Duration) *attempt {
	l := newLink(0)
	model := remote{host: s.outside.address(), client: l.client(), header: http.Header{"Authorization": {"Bearer none"}}}
	return &attempt{link: l, answer: func(ctx context.Context) (string, error) {
		messages := []chatMessage{{Role: "user", Content: w.prompt}}
		for range mostRequests {
			said, err := complete(ctx, model, messages)
			if err != nil || len(said.Calls) == 0 {
				return said.Content, err
			}
			messages = append(messages, said)
			for _, call := range said.Calls {
				result, err := perform(call.Function.Arguments)
				if err != nil {
					return "", err
				}
				messages = append(messages, chatMessage{Role: "tool", CallID: call.ID, Content: result})
			}
		}
		return "", errTooManyRequests
	}}
}

// chatMessage is one of OpenAI's chat completions; so is a delta of one.
type chatMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	Index    *int   `json:"index,omitempty"` // in deltas
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// complete asks the model once and puts its answer together.
func complete(ctx context.Context, model remote, messages []chatMessage) (said chatMessage, err error) {
	function := agentTool{Name: toolName, Description: toolText, Parameters: json.RawMessage(toolParameters)}
	body, err := json.Marshal(map[string]any{"model": scriptedModel, "stream": true, "messages": messages, "tools": []any{map[string]any{"type": "function", "function": function}}})
	if err != nil {
		return said, err
	}
	answer, err := model.send(ctx, http.MethodPost, "/v1/chat/completions", string(body), "text/event-stream")
	if err != nil {
		return said, err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
		return said, fmt.Errorf("ask the model: %s: %s", answer.Status, lastWords(string(text)))
	}
	said.Role = "assistant"
	for events := sse.NewReader(answer.Body, maxServedEvent, nil); ; {
		next, err := events.Next()
		if err != nil {
			return said, fmt.Errorf("read what the model says: %w", err)
		}
		if string(next.Data) == "[DONE]" {
			_, err := io.Copy(io.Discard, answer.Body) // for the connection's next request
			return said, err
		}
		var chunk struct {
			Choices []struct {
				Delta chatMessage `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(next.Data, &chunk); err != nil {
			return said, fmt.Errorf("read what the model says: %w", err)
		}
		for _, choice := range chunk.Choices {
			said.add(choice.Delta)
		}
	}
}

func (m *chatMessage) add(delta chatMessage) {
	m.Content += delta.Content
	for _, piece := range delta.Calls {
		if piece.Index == nil || *piece.Index >= len(m.Calls) {
			piece.Index = nil
			m.Calls = append(m.Calls, piece)
			continue
		}
		m.Calls[*piece.Index].Function.Arguments += piece.Function.Arguments
	}
}

// coveAgent is cove's loop between the model and the client, who has the tool or has named a server that does.
type coveAgent struct {
	server *coveServer
	id     string
	title  string
	note   string
	turn   map[string]any // what each request says besides the prompt or the results
	code   bool           // the model writes code, for which sandboxes are kept ready
}

// newCoveAgents are the three ways of cove's.
func newCoveAgents(server *coveServer) (all []Subject) {
	function := func(callers ...string) []agentTool {
		return []agentTool{{Name: toolName, Description: toolText, Parameters: json.RawMessage(toolParameters), Returns: json.RawMessage(toolReturns), Callers: callers}}
	}
	for _, s := range []coveAgent{
		{id: coveLoopID, title: "cove's loop", note: "turns of cove serve; the model calls the client's function, and each answer of the model's waits for results",
			turn: map[string]any{"tools": function("model"), "python": false}},
		{id: coveCodeID, title: "cove, code calls the client", note: "turns of cove serve; a program of the model's calls the client's function, and waits in the sandbox for results", code: true,
			turn: map[string]any{"tools": function("code")}},
		{id: coveHostID, title: "cove, code calls a tool server", note: "turns of cove serve; a program of the model's calls a tool of a server that cove knows", code: true,
			turn: map[string]any{"tool_servers": []string{toolServer}}},
	} {
		s.server = server
		all = append(all, &s)
	}
	return all
}

func (s *coveAgent) About() About                    { return About{ID: s.id, Title: s.title, Note: s.note} }
func (s *coveAgent) Start(ctx context.Context) error { return s.server.Start(ctx) }
func (s *coveAgent) Stop(ctx context.Context) error  { return s.server.Stop(ctx) }
func (s *coveAgent) Outside() *outside               { return s.server.outside }

// Refill implements Agent.
func (s *coveAgent) Refill(ctx context.Context) error {
	if !s.code {
		return nil
	}
	return s.server.Refill(ctx)
}

// agentTurn is one of cove's turns, as far as it matters here.
type agentTurn struct {
	Conversation string          `json:"conversation"`
	Session      string          `json:"session"`
	State        string          `json:"state"`
	Answer       string          `json:"answer"`
	Problem      json.RawMessage `json:"problem"`
	Calls        []struct {
		ID        string `json:"id"`
		Arguments string `json:"arguments"`
	} `json:"calls"`
}

// agentResult is what a function brought.
type agentResult struct {
	Call string `json:"call"`
	Text string `json:"text"`
}

// Attempt implements Agent.
func (s *coveAgent) Attempt(w workload, delay time.Duration) *attempt {
	l := newLink(delay)
	api := s.server.api
	api.client = l.client()
	var turn agentTurn
	return &attempt{link: l,
		answer: func(ctx context.Context) (string, error) {
			if err := s.ask(ctx, api, "/api/v1/turns", "prompt", w.prompt, &turn); err != nil {
				return "", err
			}
			for range mostRequests {
				switch turn.State {
				case "completed":
					return strings.TrimSpace(turn.Answer), nil
				case "waiting":
				default:
					return "", fmt.Errorf("the turn is %s: %s", turn.State, turn.Problem)
				}
				results, err := turn.perform()
				if err != nil {
					return "", err
				}
				if err := s.ask(ctx, api, "/api/v1/conversations/"+turn.Conversation+"/turns", "results", results, &turn); err != nil {
					return "", err
				}
			}
			return "", errTooManyRequests
		},
		close: func(ctx context.Context) error { return turn.remove(ctx, s.server.api) },
	}
}

// ask sends a turn and waits for its end. name is what it brings.
func (s *coveAgent) ask(ctx context.Context, api remote, path, name string, brings any, turn *agentTurn) error {
	asked := map[string]any{name: brings}
	for field, value := range s.turn {
		asked[field] = value
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	next := agentTurn{}
	err = api.call(ctx, http.MethodPost, path, string(body), http.StatusOK, &next)
	if err == nil {
		*turn = next
	}
	return err
}

// perform does the calls that a turn waits for.
func (t agentTurn) perform() (results []agentResult, err error) {
	for _, call := range t.Calls {
		text, err := perform(call.Arguments)
		if err != nil {
			return nil, err
		}
		results = append(results, agentResult{Call: call.ID, Text: text})
	}
	return results, nil
}

// remove deletes what a task made.
func (t agentTurn) remove(ctx context.Context, api remote) error {
	var errs []error
	if t.Session != "" {
		errs = append(errs, api.call(ctx, http.MethodDelete, "/api/v1/sessions/"+t.Session, "", http.StatusNoContent, nil))
	}
	if t.Conversation != "" {
		errs = append(errs, api.call(ctx, http.MethodDelete, "/api/v1/conversations/"+t.Conversation, "", http.StatusNoContent, nil))
	}
	return errors.Join(errs...)
}
