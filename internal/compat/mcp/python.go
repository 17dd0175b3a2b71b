package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/hub"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/transcript"
)

const (
	// mark is the metadata of sessions that were made here.
	mark = "mcp.session"
	// mostPictures and largestPicture bound the figures of an answer.
	mostPictures   = 8
	largestPicture = 4 << 20
	mostFiles      = 100
	// longestError bounds the name and the value of an error, in bytes: the traceback in the text has its own bound.
	longestError = 4 << 10
	// farewell bounds the interruption of code whose client has left.
	farewell = 10 * time.Second
	// pace is how often a client is told what code prints.
	pace = 250 * time.Millisecond
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
	limit := s.Timeout
	if asked := time.Duration(in.Timeout * float64(time.Second)); asked > 0 {
		limit = min(limit, asked)
	}
	o := &outcome{Session: in.Session, Files: []fileSaid{}, room: s.MaxOutput}
	fresh := in.Session == ""
	if fresh {
		made, err := s.Hub.CreateSession(c, c.who, hub.NewSession{Metadata: map[string]string{mark: "yes"}, Life: life, Idle: idle})
		if err != nil {
			return nil, err
		}
		o.Session = made.ID
	}
	e, err := s.Hub.StartExecution(c, c.who, hub.NewExecution{Session: o.Session, Code: in.Code, Timeout: limit})
	if err != nil && fresh { // nobody hears of the session
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c), farewell)
		defer cancel()
		_ = s.Hub.DeleteSession(ctx, c.who, o.Session) // else it ends by itself
	}
	if err != nil {
		return nil, err
	}
	done, err := s.follow(c, e.ID, o)
	if done == nil { // the client has left, and its next code is not to wait
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c), farewell)
		defer cancel()
		_, _ = s.Hub.InterruptExecution(ctx, c.who, e.ID) // it may have ended
		return nil, errors.Join(err, c.Err())
	}
	return o.answer(*done, fresh, s.MaxOutput), nil
}

// follow takes in what an execution emits, and returns its end.
func (s *server) follow(c *call, execution string, o *outcome) (*kernel.Done, error) {
	events, err := s.Hub.Follow(c, c.who, execution, 0)
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
			o.cut = true
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
		if progress := o.take(event); progress != "" && time.Since(told) > pace {
			told = time.Now()
			c.tell(progress)
		}
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
		if !ok || len(o.pictures) >= mostPictures || len(text) > largestPicture {
			continue
		}
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
