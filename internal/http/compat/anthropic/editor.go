package anthropic

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/hub"
)

const (
	// largestEdited bounds a file that is viewed or changed, and largestShown a picture or document that is viewed, in bytes.
	largestEdited, largestShown = 1 << 20, 1 << 20
	// mostEntries is how many entries of a folder are shown.
	mostEntries = 500
)

// edition is a call of the text editor.
type edition struct {
	Command string  `json:"command"`
	Path    string  `json:"path"`
	Range   []int   `json:"view_range"`
	Text    *string `json:"file_text"`
	Old     *string `json:"old_str"`
	New     string  `json:"new_str"`
}

// edit views or changes a file. Its results have no room for files: what it writes is among those of the next command.
func (sh *shell) edit(ctx context.Context, arguments string) (object, model.ToolResult) {
	var e edition
	if json.Unmarshal([]byte(arguments), &e) != nil || e.Path == "" {
		return toolError(editorTool, "invalid_tool_input", "The input is a JSON object with the command and the path.")
	}
	var result object
	var told model.ToolResult
	var err error
	switch {
	case e.Command == "view":
		result, told, err = sh.view(ctx, e)
	case e.Command == "create" && e.Text != nil:
		result, told, err = sh.create(ctx, e)
	case e.Command == "create":
		err = problem.New(problem.InvalidRequest, "create takes file_text")
	case e.Command == "str_replace" && e.Old != nil && *e.Old != "":
		result, told, err = sh.replace(ctx, e)
	case e.Command == "str_replace":
		err = problem.New(problem.InvalidRequest, "str_replace takes old_str")
	default:
		err = problem.New(problem.InvalidRequest, fmt.Sprintf("there is no command %.40q: there are view, create and str_replace", e.Command))
	}
	if err != nil {
		return toolFault(editorTool, err)
	}
	return result, told
}

func (sh *shell) files(ctx context.Context, action string, e edition, use func(context.Context, guestlink.Files) error) error {
	return sh.s.Hub.UseFiles(ctx, sh.c.who, sh.session, hub.FilesUse{Action: action, Paths: []string{e.Path}}, use)
}

// content reads a whole file.
func content(ctx context.Context, f guestlink.Files, p string, most int64) ([]byte, error) {
	n, err := f.StatPath(ctx, p, false)
	switch {
	case err != nil:
		return nil, err
	case n.Kind != filesystem.File && n.To != filesystem.File:
		return nil, problem.New(problem.InvalidRequest, "that is not a file")
	}
	r, err := f.OpenPath(ctx, p, 0, most+1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = problem.New(problem.InvalidRequest, fmt.Sprintf("the file has more than the %d bytes that can be looked at", most)).WithHint("use a command")
	}
	return data, err
}

func (sh *shell) view(ctx context.Context, e edition) (result object, told model.ToolResult, err error) {
	err = sh.files(ctx, "", e, func(ctx context.Context, f guestlink.Files) error {
		n, err := f.StatPath(ctx, e.Path, false)
		if err != nil {
			return err
		}
		if n.Kind == filesystem.Folder || n.To == filesystem.Folder {
			result, told, err = folder(ctx, f, e.Path)
			return err
		}
		data, err := content(ctx, f, e.Path, max(largestEdited, largestShown))
		if err != nil {
			return err
		}
		result, told, err = shown(data, e.Range)
		return err
	})
	return result, told, err
}

func viewed(kind, text string, lines, first, total int) object {
	return object{"type": editorTool + "_view_result", "file_type": kind, "content": text, "num_lines": lines, "start_line": first, "total_lines": total}
}

// folder shows what is in a folder and in those in it.
func folder(ctx context.Context, f guestlink.Files, p string) (object, model.ToolResult, error) {
	entries, more, _, err := f.ListPath(ctx, p, 2)
	if err != nil {
		return nil, model.ToolResult{}, err
	}
	var text strings.Builder
	lines := 0
	for _, n := range entries {
		if strings.HasPrefix(path.Base(n.Path), ".") {
			continue
		}
		if lines++; lines > mostEntries {
			more = true
			break
		}
		name := n.Full
		if n.Kind == filesystem.Folder {
			name += "/"
		}
		text.WriteString(name + "\n")
	}
	if more {
		text.WriteString("[and more]\n")
	}
	if lines == 0 {
		text.WriteString("(the folder is empty)\n")
	}
	return viewed("text", text.String(), lines, 1, lines), model.ToolResult{Text: text.String()}, nil
}

// shown is a file as it is viewed: lines of a text, or a picture or document in base64.
func shown(data []byte, lines []int) (object, model.ToolResult, error) {
	kind := http.DetectContentType(data)
	switch {
	case strings.HasPrefix(kind, "image/"):
		told := model.ToolResult{Text: "(the picture)", Images: []model.Image{{MIME: kind, Data: data}}}
		return viewed("image", base64.StdEncoding.EncodeToString(data), 0, 0, 0), told, nil
	case kind == "application/pdf":
		return viewed("pdf", base64.StdEncoding.EncodeToString(data), 0, 0, 0), model.ToolResult{Text: "(a PDF document; read it with a command, such as Python with pypdf)"}, nil
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return nil, model.ToolResult{}, problem.New(problem.InvalidRequest, "the file is not text").WithHint("use a command")
	}
	all := splitLines(string(data))
	first, last := 1, len(all)
	if len(lines) == 2 {
		if first = lines[0]; lines[1] != -1 {
			last = min(lines[1], len(all))
		}
		if first < 1 || first > max(len(all), 1) || last < first && len(all) > 0 {
			return nil, model.ToolResult{}, problem.New(problem.InvalidRequest, fmt.Sprintf("the file has the lines 1 to %d, and view_range is outside of them", len(all)))
		}
	}
	chosen := all[min(first-1, len(all)):last]
	text := strings.Join(chosen, "\n")
	return viewed("text", text, len(chosen), first, len(all)), model.ToolResult{Text: orEmpty(shorter(text))}, nil
}

func orEmpty(text string) string {
	if text == "" {
		return "(the file is empty)"
	}
	return text
}

// splitLines are the lines of a text, of which the last may have no end.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func (sh *shell) create(ctx context.Context, e edition) (object, model.ToolResult, error) {
	there := false
	err := sh.files(ctx, "file.write", e, func(ctx context.Context, f guestlink.Files) error {
		_, err := f.StatPath(ctx, e.Path, false)
		there = err == nil
		if err != nil && !problem.Has(err, problem.FileNotFound) {
			return err
		}
		_, err = f.WritePath(ctx, e.Path, strings.NewReader(*e.Text), filesystem.Set{}, false)
		return err
	})
	said := "Created "
	if there {
		said = "Replaced "
	}
	return object{"type": editorTool + "_create_result", "is_file_update": there}, model.ToolResult{Text: said + e.Path + "."}, err
}

func (sh *shell) replace(ctx context.Context, e edition) (result object, told model.ToolResult, err error) {
	err = sh.files(ctx, "file.write", e, func(ctx context.Context, f guestlink.Files) error {
		data, err := content(ctx, f, e.Path, largestEdited)
		if err != nil {
			return err
		}
		text := string(data)
		switch n := strings.Count(text, *e.Old); {
		case !utf8.ValidString(text):
			return problem.New(problem.InvalidRequest, "the file is not text")
		case n == 0:
			return problem.New(problem.InvalidRequest, "old_str is not in the file")
		case n > 1:
			return problem.New(problem.InvalidRequest, fmt.Sprintf("old_str is in the file %d times", n)).WithHint("give more of the text around it")
		}
		at := strings.Index(text, *e.Old)
		if _, err := f.WritePath(ctx, e.Path, strings.NewReader(text[:at]+e.New+text[at+len(*e.Old):]), filesystem.Set{}, false); err != nil {
			return err
		}
		result = replaced(text, at, *e.Old, e.New)
		return nil
	})
	return result, model.ToolResult{Text: "Changed " + e.Path + "."}, err
}

// replaced tells of the lines that have changed, as a difference of two files does.
func replaced(text string, at int, old, fresh string) object {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	to := at + len(old)
	if n := strings.IndexByte(text[to:], '\n'); n >= 0 {
		to += n
	} else {
		to = len(text)
	}
	was := strings.Split(text[from:to], "\n")
	is := strings.Split(text[from:at]+fresh+text[at+len(old):to], "\n")
	first := strings.Count(text[:from], "\n") + 1
	lines := make([]string, 0, len(was)+len(is))
	for _, l := range was {
		lines = append(lines, "-"+l)
	}
	for _, l := range is {
		lines = append(lines, "+"+l)
	}
	return object{"type": editorTool + "_str_replace_result", "lines": lines, "old_start": first, "old_lines": len(was), "new_start": first, "new_lines": len(is)}
}
