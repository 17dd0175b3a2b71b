package eval

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed report.html
var pageText string

var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("report").Parse(pageText)) })

// Bounds of what the page shows of transcripts, in bytes. All of it is in the files that it links to.
const (
	shownText  = 4 << 10  // of one text
	shownTask  = 16 << 10 // of one task
	shownTasks = 24 << 20 // of all
)

// pageTask is a task as the page shows it.
type pageTask struct {
	Record
	Verdict string
	Prompt  string
	Steps   []pageStep
	Omitted bool // the page has no room for what it did
}

// pageStep is an execution as the page shows it.
type pageStep struct{ Code, Said, Outcome string }

// WriteHTML writes the report as one page that needs nothing else: its plots are SVG, and it has no script.
func (r Report) WriteHTML(w io.Writer) error {
	rows := r.rows()
	var tasks []pageTask
	room := shownTasks
	for _, record := range r.Records {
		t := pageTask{Record: record, Verdict: "wrong", Omitted: room <= 0}
		switch {
		case !record.Judged:
			t.Verdict = "not judged"
		case record.Right:
			t.Verdict = "right"
		}
		if record.Transcript != "" && !t.Omitted {
			room -= t.read(r.Folder)
		}
		tasks = append(tasks, t)
	}
	return pageTemplate().Execute(w, map[string]any{
		"Report": r, "Head": rows[0], "Rows": rows[1:], "Remarks": r.remarks(), "Tasks": tasks,
		"Shares": r.sharesPlot(), "Times": r.timesPlot(), "Spread": r.spreadPlot(),
	})
}

// read takes the steps from a task's transcript, as far as they are shown, and returns how many bytes they are.
func (t *pageTask) read(folder string) (size int) {
	if !filepath.IsLocal(t.Transcript) {
		return 0
	}
	f, err := os.Open(filepath.Join(folder, t.Transcript))
	if err != nil {
		return 0 // the link leads nowhere then, which its reader sees
	}
	defer f.Close()
	in := bufio.NewReader(io.LimitReader(f, longestTranscript+longestLine))
	for size < shownTask {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrClosed) {
				return size
			}
			return size
		}
		size += t.take(line)
	}
	return size
}

// take shows one line of a transcript.
func (t *pageTask) take(line []byte) int {
	var e struct {
		Type, Prompt, Code string
		Event              struct {
			Type, Text, Outcome string
			Traceback           []string
			Data                map[string]any
		}
	}
	if json.Unmarshal(line, &e) != nil {
		return 0
	}
	switch e.Type {
	case "task":
		t.Prompt = bounded(e.Prompt, shownText)
		return len(t.Prompt)
	case "start":
		t.Steps = append(t.Steps, pageStep{Code: bounded(e.Code, shownText)})
		return len(t.Steps[len(t.Steps)-1].Code)
	case "output":
		if len(t.Steps) == 0 {
			return 0
		}
		step := &t.Steps[len(t.Steps)-1]
		before := len(step.Said)
		switch e.Event.Type {
		case "stream":
			step.Said += e.Event.Text
		case "result", "display":
			text, _ := e.Event.Data["text/plain"].(string)
			step.Said += text + "\n"
		case "error":
			step.Said += strings.Join(e.Event.Traceback, "\n") + "\n"
		case "done":
			step.Outcome = e.Event.Outcome
		}
		step.Said = bounded(step.Said, shownText)
		return max(0, len(step.Said)-before)
	}
	return 0
}
