package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// outcome is what the model is told of an execution.
type outcome struct {
	text   string
	images []model.Image
	failed bool
}

func (o outcome) result() model.ToolResult {
	return model.ToolResult{Text: o.text, Images: o.images, IsError: o.failed}
}

// outcomeOf describes the result of an execution within Limits.Result.
func (t *turn) outcomeOf(ctx context.Context, r *record, timeout time.Duration) outcome {
	o := outcome{failed: r.done.Outcome != kernel.OutcomeOK}
	for _, p := range r.pictures {
		o.images = append(o.images, p.image)
	}
	var tail []string
	if r.failure != nil && r.done.Outcome == kernel.OutcomeError {
		trace := cutMiddle(strings.ToValidUTF8(ReduceTraceback(traceLines(*r.failure)), "\uFFFD"), t.limits.Result/2)
		tail = append(tail, trace)
		if line := t.hint(ctx, r); line != "" {
			tail = append(tail, line)
		}
	}
	if line := ending(*r.done, r.failure != nil, timeout); line != "" {
		tail = append(tail, line)
	}
	if r.done.Dropped > 0 {
		tail = append(tail, "["+size(r.done.Dropped)+" of output beyond the limit were dropped; print less]")
	}
	if line := t.newFiles(r); line != "" {
		tail = append(tail, line)
	}
	head, end := installed(r.installs), strings.Join(tail, "\n")
	if r.rollback != nil {
		head = strings.TrimSpace("[" + r.rollback.String() + "]\n" + head)
	}
	printed := folded(r.printed())
	limit := t.limits.Result
	if most := t.resultWeight(); most > 0 {
		end = lightened(end, most/2)
		limit = min(limit, len(printed)*most/max(weight(printed), 1)) // as many bytes as weigh that much
	}
	printed = cutMiddleMore(printed, max(limit-len(head)-len(end), limit/4), r.hidden)
	switch {
	case printed == "" && end == "":
		o.text = "(the code ran; it printed nothing)"
	case printed == "":
		o.text = end
	case end == "":
		o.text = printed
	default:
		o.text = ensureLine(printed) + end
	}
	if head != "" {
		o.text = ensureLine(head) + o.text
	}
	return o
}

// traceLines returns the lines of a traceback; for an error without one, a line with its name and value.
func traceLines(e kernel.Error) []string {
	if len(e.Traceback) > 0 {
		return e.Traceback
	}
	return []string{e.Name + ": " + e.Value}
}

// ending says how an execution ended when it did not end by itself, and what was lost by that.
func ending(d kernel.Done, explained bool, timeout time.Duration) string {
	var line string
	switch d.Outcome {
	case kernel.OutcomeOK:
		return ""
	case kernel.OutcomeError:
		if explained {
			return lost(d.Lost)
		}
		line = fmt.Sprintf("The code ended with exit code %d.", d.ExitCode)
	case kernel.OutcomeTimeout:
		line = fmt.Sprintf("Stopped: the code ran longer than the limit of %s for one execution. Make it faster, or work on a part of the data.", timeout.Round(time.Second/10))
		if d.Lost == kernel.LostNothing {
			line += " Variables and files are kept."
		}
	case kernel.OutcomeMemory:
		line = "Out of memory. Read the data in parts or only the columns that are needed."
	case kernel.OutcomeDied:
		line = "The Python process died"
		if d.Signal != "" {
			line += " with " + d.Signal
		}
		line += "."
	case kernel.OutcomeInterrupted:
		line = "The execution was interrupted."
	case kernel.OutcomeSandboxDied:
		line = "The sandbox died."
	case kernel.OutcomeRestart:
		why := strings.TrimSuffix(strings.TrimSuffix(d.Message, "."), "; nothing was run")
		return "Nothing was run: " + orElse(why, "it takes a new interpreter") + ". To go on, send the whole code again with `%restart` as its first line: " +
			"variables and imports are lost then, files are kept."
	default:
		line = "The execution failed (" + string(d.Outcome) + ")."
		if d.Message != "" {
			line += " " + d.Message + "."
		}
	}
	return strings.TrimSpace(line + " " + lost(d.Lost))
}

func lost(l kernel.Loss) string {
	switch l {
	case kernel.LostKernel:
		return "Variables and imports are lost, files are kept: import and load again."
	case kernel.LostSession:
		return everythingLost + " variables, imports and all files in the working directory but those that the user gave."
	}
	return ""
}

// deliveredHead begins the line that names an execution's files, which recall reads.
const deliveredHead = "[files delivered to the user: "

// newFiles names the files that an execution made or changed.
func (t *turn) newFiles(r *record) string {
	if r.done.Lost == kernel.LostSession {
		return ""
	}
	var names []string
	for _, f := range r.files {
		verb := "changed"
		if f.Created {
			verb = "new"
		}
		names = append(names, fmt.Sprintf("%s (%s, %s)", fileName(f.Path), verb, size(f.Size)))
	}
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > filesNamed {
		more = fmt.Sprintf(" and %d more", len(names)-filesNamed)
		names = names[:filesNamed]
	}
	return deliveredHead + strings.Join(names, ", ") + more + "]"
}

// fileNames returns the names of the first workspace files.
func (t *turn) fileNames(ctx context.Context) []string {
	files, err := t.session.Files(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range visible(files) {
		if len(names) == filesNamed {
			return append(names, "…")
		}
		names = append(names, fileName(f.Path))
	}
	return names
}
