package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"cove/internal/http/sse"
)

// servedSession is a session of `cove serve`.
type servedSession struct {
	api  remote
	path string
	rest io.ReadCloser // what may come after the last execution's end
}

// maxServedEvent bounds an event, in bytes.
const maxServedEvent = 64 << 20

// servedEvent is one of an execution's events, as far as it matters here.
type servedEvent struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`    // stream
	Data    json.RawMessage `json:"data"`    // result
	Name    string          `json:"name"`    // error
	Value   string          `json:"value"`   // error
	Outcome string          `json:"outcome"` // done
	Message string          `json:"message"` // done, failure
}

func (l *servedSession) Run(ctx context.Context, t Task) (out Output, err error) {
	err = l.execute(ctx, t.Cell(), func(e servedEvent) error {
		switch e.Type {
		case "stream":
			out.Bytes += int64(len(e.Text))
		case "result":
			var data map[string]any
			if err := json.Unmarshal(e.Data, &data); err != nil {
				return fmt.Errorf("read a result: %w", err)
			}
			out.Text, _ = data["text/plain"].(string)
		}
		return nil
	})
	return out, err
}

// Watch implements Watched.
func (l *servedSession) Watch(ctx context.Context, code string, got func(text string)) error {
	return l.execute(ctx, code, func(e servedEvent) error {
		if e.Type == "stream" {
			got(e.Text)
		}
		return nil
	})
}

// execute returns when the event that says that the execution is over has been read.
func (l *servedSession) execute(ctx context.Context, code string, each func(servedEvent) error) error {
	if err := l.settle(); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		return err
	}
	answer, err := l.api.send(ctx, http.MethodPost, l.path+"/executions", string(body), "text/event-stream") //nolint:bodyclose // settle closes it
	if err != nil {
		return err
	}
	l.rest = answer.Body
	return readEvents(answer, each)
}

// readEvents hands on the events of an execution, and returns when the one that says that it is over has been read.
func readEvents(answer *http.Response, each func(servedEvent) error) error {
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
		return fmt.Errorf("execute: %s: %s", answer.Status, lastWords(string(text)))
	}
	for events := sse.NewReader(answer.Body, maxServedEvent, nil); ; {
		next, err := events.Next()
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		var e servedEvent
		if err := json.Unmarshal(next.Data, &e); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		switch {
		case e.Type == "done" && e.Outcome == "ok":
			return nil
		case e.Type == "done":
			return fmt.Errorf("ended with %s %s", e.Outcome, e.Message)
		case e.Type == "error":
			return fmt.Errorf("%s: %s", e.Name, e.Value)
		case e.Type == "failure":
			return fmt.Errorf("failed: %s", e.Message)
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// settle reads an answer to its end, without which its connection could not be used again.
func (l *servedSession) settle() error {
	if l.rest == nil {
		return nil
	}
	rest := l.rest
	l.rest = nil
	defer rest.Close() //nolint:errcheck // it has been read
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return fmt.Errorf("read the end of an answer: %w", err)
	}
	return nil
}

// Close ends the session, and with it what it runs.
func (l *servedSession) Close(ctx context.Context) error {
	if l.rest != nil {
		_ = l.rest.Close() // nobody reads on
	}
	return l.api.call(ctx, http.MethodDelete, l.path, "", http.StatusNoContent, nil)
}
