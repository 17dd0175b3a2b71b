package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/problem"
	"cove/internal/python/display"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

const (
	// mark is the metadata of sessions that were made here.
	mark = "mcp.session"
	// mostPictures and roomForPictures, in bytes, bound the figures of an answer: some clients take no message above 1 MiB, and in base64 they are a third longer.
	mostPictures    = 8
	roomForPictures = 480 << 10
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

// outcome is what came of code, as the structured content.
type outcome struct {
	Session string     `json:"session"`
	Outcome string     `json:"outcome"`
	Text    string     `json:"text"` // all that the content has as text: some clients give their model the structured content alone
	Stdout  string     `json:"stdout"`
	Stderr  string     `json:"stderr"`
	Result  string     `json:"result,omitempty"`
	Error   *failure   `json:"error,omitempty"`
	Files   []fileSaid `json:"files"`
	Seconds float64    `json:"seconds"`

	screen display.Screen
	links  []sdk.Content
}

func newOutcome(session string, room int64) *outcome {
	return &outcome{Session: session, Files: []fileSaid{}, screen: display.Screen{Room: room, Pictures: mostPictures, PictureRoom: roomForPictures}}
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
	r := &run{o: newOutcome(in.Session, s.MaxOutput), fresh: in.Session == "", patience: limit}
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
			r.o.screen.Cut = true
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
	o.screen.Add(e)
	switch e := e.(type) {
	case kernel.Stream:
		return lastLine(string(e.Data))
	case kernel.Result:
		text := display.Text(e.Data)
		o.Result = strings.ToValidUTF8(text[:min(len(text), int(o.screen.Room))], "\ufffd")
	case kernel.Error:
		o.Error = &failure{shortened(e.Name), shortened(e.Value)}
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

// shortened is a text as far as the structured content has room for it.
func shortened(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longestError)], "\ufffd")
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if at := strings.LastIndexAny(text, "\r\n"); at >= 0 {
		text = text[at+1:]
	}
	return strings.ToValidUTF8(text[max(0, len(text)-200):], "")
}

// answer is what the client gets. With figures there is no structured content, since clients that give their model nothing else would leave them out.
func (o *outcome) answer(d kernel.Done, fresh bool, most int64) *sdk.CallToolResult {
	o.Outcome, o.Seconds = string(d.Outcome), d.Wall.Seconds()
	o.Stdout, o.Stderr = o.screen.Written()
	text, pictures := o.screen.All(), o.screen.Shown()
	line := func(format string, args ...any) {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += fmt.Sprintf(format, args...)
	}
	if o.screen.Cut {
		line("[the output is longer than the %d bytes that are shown; write it into a file]", most)
	}
	if n := o.screen.LeftOut; n > 0 {
		line("[%d figures are not shown: an answer has room for %d, of %d bytes together; save them as files]", n, mostPictures, roomForPictures)
	}
	if d.Message != "" {
		line("[%s]", d.Message)
	}
	if text == "" && len(pictures) == 0 {
		line("[no output]")
	}
	if fresh {
		line("[session %s: pass it on to go on with these variables and files]", o.Session)
	}
	o.Text = text
	out := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: o, IsError: d.Outcome != kernel.OutcomeOK}
	for _, p := range pictures {
		out.Content = append(out.Content, &sdk.ImageContent{Data: p.Data, MIMEType: p.MIME})
		out.StructuredContent = nil
	}
	out.Content = append(out.Content, o.links...)
	return out
}
