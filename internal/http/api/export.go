package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"unicode"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/python/notebook"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

const (
	// largestExport bounds the events that a document is made of, in bytes, and exportFigures the pictures in one for reading.
	largestExport = 64 << 20
	exportFigures = 32 << 20
	// longestFileName bounds the name of a download, in characters.
	longestFileName = 80
)

type exportQuery struct {
	ConversationPath
	Format string `query:"format" enum:"ipynb,markdown,html,python" default:"ipynb"`
	Turn   string `query:"turn" maxLength:"64" doc:"The last one of the branch; the newest when left out"`
}

// exports are by their formats.
var exports = map[string]struct {
	ending, kind string
	write        func(io.Writer, notebook.Document) error
}{
	"ipynb":  {".ipynb", "application/x-ipynb+json", notebook.WriteIPYNB},
	"python": {".py", "text/x-python; charset=utf-8", notebook.WritePython},
	"markdown": {".md", "text/markdown; charset=utf-8", func(w io.Writer, d notebook.Document) error {
		return notebook.WriteMarkdownFigures(w, d, exportFigures)
	}},
	"html": {".html", "text/html; charset=utf-8", func(w io.Writer, d notebook.Document) error { return notebook.WriteHTML(w, d, exportFigures) }},
}

func (s *server) addExport() {
	addRaw(s, operation{id: "conversation.export", method: http.MethodGet, path: "/conversations/{conversation}/export", tag: "conversations", action: auth.ConversationsRead, summary: "Export a conversation",
		about:   "A branch as a file: a Jupyter notebook (nbformat 4.5), Markdown or a page of HTML for reading, with its figures, or a Python program.",
		errors:  []problem.Code{problem.ConversationNotFound, problem.TurnNotFound, problem.ConversationEmpty, problem.TurnRunning, problem.ExportTooLarge},
		example: `curl -OJ -H "Authorization: Bearer $KEY" "$COVE/conversations/$CONVERSATION/export?format=html"`}, s.export)
}

func (s *server) export(w http.ResponseWriter, r *http.Request, who auth.Principal, in *exportQuery) error {
	as := exports[in.Format]
	c, turns, err := s.branch(r.Context(), who, in.Conversation, in.Turn)
	if err != nil {
		return err
	}
	d := notebook.Document{Title: c.Title, Python: c.Metadata["python"], Created: c.Created, Files: fileNames(c)}
	size := int64(0)
	outdated := hub.Outdated(turns)
	charts, err := s.ownCharts(r.Context(), who, turns)
	if err != nil {
		return err
	}
	for i, t := range turns {
		events, err := s.eventsOf(r.Context(), who, t, &size)
		if err != nil {
			return err
		}
		turn := notebook.ReadTurn(t.Prompt, t.Answer, events)
		turn.Outdated = outdated[i]
		after, err := s.chartTurn(r.Context(), who, turns, i, charts, &size)
		if err != nil {
			return err
		}
		d.Turns = append(append(d.Turns, turn), after...)
	}
	var out bytes.Buffer // whole, so that what fails is no half document
	if err := as.write(&out, d); err != nil {
		return err
	}
	attach(w.Header(), fileName(c.Title)+as.ending)
	w.Header().Set("Content-Type", as.kind)
	_, _ = w.Write(out.Bytes())
	return nil
}

// eventsOf reads the events of a turn. What this server does not know, and gaps, are left out. size is of all that was read.
func (s *server) eventsOf(ctx context.Context, who auth.Principal, t hub.Turn, size *int64) ([]loop.Event, error) {
	recorded, err := s.o.Hub.Recorded(ctx, who, t.ID)
	if err != nil {
		return nil, err
	}
	var out []loop.Event
	for n, err := range recorded {
		if err != nil {
			return nil, err
		}
		if err := countExport(ctx, n.Event, size); err != nil {
			return nil, err
		}
		if n.Gap {
			continue
		}
		if e, err := transcript.ParseTurnEvent(n.Event); err == nil {
			out = append(out, e)
		}
	}
	return out, nil
}

// countExport adds an event to what was read for a document, and refuses what is too much.
func countExport(ctx context.Context, event json.RawMessage, size *int64) error {
	if *size += int64(len(event)); *size > largestExport {
		return problem.New(problem.ExportTooLarge, "the turns with their outputs have more than 64 MiB").WithHint("name an earlier turn: ?turn=trn_...")
	}
	return bodybudget.Recall(ctx, 4**size)
}

// fileName is a conversation's title as the name of a file, on whatever system it is saved.
func fileName(title string) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case strings.ContainsRune(`/\:*?"<>|`, c), unicode.IsSpace(c), c == unicode.ReplacementChar:
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, title)
	name = strings.Trim(strings.Join(strings.Fields(name), " "), ". ")
	if runes := []rune(name); len(runes) > longestFileName {
		name = strings.Trim(string(runes[:longestFileName]), ". ")
	}
	if name = path.Base(name); name == "." || name == "/" {
		return "conversation"
	}
	return name
}
