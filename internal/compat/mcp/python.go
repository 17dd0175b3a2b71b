package mcp

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/auth"
	"cove/internal/hub"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/transcript"
)

const (
	// mark is the metadata of sessions that were made here.
	mark = "mcp.session"
	// mostPictures and roomForPictures, of all of them in base64, bound the figures of an answer: some clients take no message above 1 MiB.
	mostPictures    = 8
	roomForPictures = 640 << 10
	mostFiles       = 100
	// longestError bounds the name and the value of an error, in bytes: the traceback in the text has its own bound.
	longestError = 4 << 10
	// farewell bounds the interruption of code whose client has left.
	farewell = 10 * time.Second
	// pace is how often a client is told what code prints.
	pace = 250 * time.Millisecond
	// patience is how often a client is told that it still has to wait for something: on a new machine, the first session.
	patience = 5 * time.Second
)

// outcome is what came of code: as the structured content, and, in order, as text.
type outcome struct {
	Session string     `json:"session"`
	Outcome string     `json:"outcome"`
	Stdout  string     `json:"stdout"`
	Stderr  string     `json:"stderr"`
	Result  string     `json:"result,omitempty"`
	Error   *failure   `json:"error,omitempty"`
	Files   []fileSaid `json:"files"`
	Seconds float64    `json:"seconds"`

	text, out, err strings.Builder
	room           int64
	cut            bool
	pictures       []sdk.Content
	drawn          int // bytes of them, in base64
	links          []sdk.Content
}

type failure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type fileSaid struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func (s *server) python(c *call) (*sdk.CallToolResult, error) {
	var in struct {
		Code    string  `json:"code"`
		Session string  `json:"session"`
		Timeout float64 `json:"timeout_seconds"`
	}
	if err := c.into(&in); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Code) == "" {
		return nil, problem.New(problem.InvalidRequest, "there is no code")
	}
	if state := c.request.Params.RequestState; state != "" {
		return s.goOn(c, state)
	}
	limit := s.Timeout
	if asked := time.Duration(in.Timeout * float64(time.Second)); asked > 0 {
		limit = min(limit, asked)
	}
	r := &run{o: &outcome{Session: in.Session, Files: []fileSaid{}, room: s.MaxOutput}, fresh: in.Session == ""}
	if r.fresh {
		told := c.tellMeanwhile("making a session ready, which takes a minute or two the first time on a machine")
		made, err := s.Hub.CreateSession(c, c.who, hub.NewSession{Metadata: map[string]string{mark: "yes"}, Life: life, Idle: s.Idle})
		told()
		if err != nil {
			return nil, err
		}
		r.o.Session = made.ID
	}
	err := s.start(c, r, func(input func(string, bool) (string, error)) (string, error) {
		e, err := s.Hub.StartExecution(c, c.who, hub.NewExecution{Session: r.o.Session, Code: in.Code, Timeout: limit, Input: input})
		return e.ID, err
	})
	if err != nil && r.fresh { // nobody hears of the session
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c), farewell)
		defer cancel()
		_ = s.Hub.DeleteSession(ctx, c.who, r.o.Session) // else it ends by itself
	}
	if err != nil {
		return nil, err
	}
	return s.await(c, r)
}

// follow takes in what an execution emits, and returns its end.
func (s *server) follow(ctx context.Context, who auth.Principal, r *run) (*kernel.Done, error) {
	events, err := s.Hub.Follow(ctx, who, r.execution, 0)
	if err != nil {
		return nil, err
	}
	var done *kernel.Done
	told := time.Time{}
	for n, err := range events {
		if err != nil {
			return done, err
		}
		if n.Gap {
			r.o.cut = true
			continue
		}
		event, err := transcript.ParseEvent(n.Event)
		if err != nil {
			return done, err
		}
		if d, ok := event.(kernel.Done); ok {
			done = &d
			continue
		}
		c := r.now.Load()
		if progress := r.o.take(event); progress != "" && c != nil && time.Since(told) > pace {
			told = time.Now()
			c.tell(progress)
		}
	}
	if done == nil {
		return nil, problem.New(problem.ExecutionWithoutEnd, "what the code does cannot be followed any more")
	}
	return done, nil
}

// take takes what an event says, and returns what may be told of it at once.
func (o *outcome) take(e kernel.Event) (progress string) {
	switch e := e.(type) {
	case kernel.Stream:
		to := &o.out
		if e.Name == "stderr" {
			to = &o.err
		}
		o.say(to, string(e.Data))
		return lastLine(string(e.Data))
	case kernel.Display:
		o.show(e.Data)
	case kernel.Result:
		if text, ok := e.Data["text/plain"].(string); ok {
			o.Result = strings.ToValidUTF8(text[:min(len(text), int(o.room))], "\ufffd")
		}
		o.show(e.Data)
	case kernel.Error:
		o.Error = &failure{shortened(e.Name), shortened(e.Value)}
		o.say(nil, strings.Join(e.Traceback, "\n")+"\n")
		if e.Hint != "" {
			o.say(nil, e.Hint+"\n")
		}
	case kernel.Rollback:
		o.say(&o.err, e.String()+"\n")
	case kernel.File:
		if len(o.Files) < mostFiles {
			o.Files = append(o.Files, fileSaid{e.Path, e.Size})
			o.links = append(o.links, link(o.Session, e.Path, e.Size))
		}
	case kernel.Install:
		if e.Progress != nil {
			return "installing: " + e.Progress.Phase
		}
	}
	return ""
}

// say adds to the text, and to the stream that it is of.
func (o *outcome) say(to *strings.Builder, text string) {
	if int64(len(text)) > o.room {
		text, o.cut = text[:o.room], true
	}
	o.room -= int64(len(text))
	o.text.WriteString(text)
	if to != nil {
		to.WriteString(text)
	}
}

// shortened is a text as far as the structured content has room for it.
func shortened(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longestError)], "\ufffd")
}

// show takes an object as a picture, or else as text.
func (o *outcome) show(data kernel.Bundle) {
	for _, kind := range []string{"image/png", "image/jpeg"} {
		text, ok := data[kind].(string)
		if !ok {
			continue
		}
		if len(o.pictures) >= mostPictures || o.drawn+len(text) > roomForPictures {
			o.say(nil, fmt.Sprintf("[a figure of %d bytes is not shown: an answer has room for %d figures of %d bytes together; save it as a file]\n", len(text)*3/4, mostPictures, roomForPictures*3/4))
			return
		}
		o.drawn += len(text)
		if bytes, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err == nil {
			o.pictures = append(o.pictures, &sdk.ImageContent{Data: bytes, MIMEType: kind})
			return
		}
	}
	if plain, ok := data["text/plain"].(string); ok {
		o.say(nil, plain+"\n")
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if at := strings.LastIndexAny(text, "\r\n"); at >= 0 {
		text = text[at+1:]
	}
	return strings.ToValidUTF8(text[max(0, len(text)-200):], "")
}

// answer is what the client gets.
func (o *outcome) answer(d kernel.Done, fresh bool, most int64) *sdk.CallToolResult {
	o.Outcome, o.Seconds = string(d.Outcome), d.Wall.Seconds()
	o.Stdout, o.Stderr = strings.ToValidUTF8(o.out.String(), "\ufffd"), strings.ToValidUTF8(o.err.String(), "\ufffd")
	text := strings.ToValidUTF8(o.text.String(), "\ufffd")
	line := func(format string, args ...any) {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += fmt.Sprintf(format, args...)
	}
	if o.cut {
		line("[the output is longer than the %d bytes that are shown; write it into a file]", most)
	}
	if d.Message != "" {
		line("[%s]", d.Message)
	}
	if text == "" && len(o.pictures) == 0 {
		line("[no output]")
	}
	if fresh {
		line("[session %s: pass it on to go on with these variables and files]", o.Session)
	}
	content := []sdk.Content{&sdk.TextContent{Text: text}}
	return &sdk.CallToolResult{Content: append(append(content, o.pictures...), o.links...), StructuredContent: o, IsError: d.Outcome != kernel.OutcomeOK}
}
