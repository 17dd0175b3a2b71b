package loop

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

// How much of the workspace a prompt describes.
const (
	filesDetailed = 40
	filesListed   = 200
	filesTold     = 24 << 10 // bytes about what is in them
)

// takeInput adds the input to the conversation; below the user's last words it tells of the files that are new in the workspace and of the session's variables.
func (t *turn) takeInput(ctx context.Context) error {
	later := len(t.history.messages) > 0
	told := map[string]any{"Later": later}
	var pictures []model.Content
	if t.python {
		listed, shown, err := t.news(ctx)
		if err != nil {
			return err
		}
		told["Files"], pictures = listed, shown
		if later && !t.spec.Fresh {
			told["Variables"] = t.variables(ctx)
		}
	}
	switch {
	case t.spec.Fresh && t.spec.Used && later:
		t.history.add(model.RoleUser, model.Text{Text: "(The Python session is another one than before. Check that a variable or file is there before you rely on it.)"})
	case t.spec.Fresh && later:
		t.history.add(model.RoleUser, model.Text{Text: "(The Python session is a new one. " + everythingLost + " variables, imports and files of the one before.)"})
	}
	if t.spec.Rolledback != "" {
		t.history.add(model.RoleUser, model.Text{Text: "(" + t.spec.Rolledback + " Check that a variable or file is there before you rely on it.)"})
	}
	from := len(t.history.messages)
	for _, m := range t.spec.Input {
		t.history.add(m.Role, m.Content...)
	}
	t.tellBelow(from, told, pictures)
	return nil
}

// tellBelow adds what is told, and pictures, to the user's last words from a message on, or to words of their own where the user says none.
func (t *turn) tellBelow(from int, told map[string]any, pictures []model.Content) {
	files, _ := told["Files"].([]string)
	variables, _ := told["Variables"].([]string)
	if len(files) == 0 && len(variables) == 0 {
		return
	}
	spoken := -1
	for n := from; n < len(t.history.messages); n++ {
		if t.history.messages[n].Role == model.RoleUser {
			spoken = n
		}
	}
	if spoken < 0 {
		if len(files) > 0 {
			told["Prompt"] = ""
			t.history.add(model.RoleUser, append([]model.Content{model.Text{Text: render("user.md", told)}}, pictures...)...)
		}
		return
	}
	m := t.history.messages[spoken]
	m.Content = slices.Clone(m.Content)
	prompt := model.Text{}
	at := slices.IndexFunc(m.Content, func(c model.Content) bool { _, ok := c.(model.Text); return ok })
	if at >= 0 {
		prompt = m.Content[at].(model.Text)
	} else {
		at, m.Content = 0, slices.Insert(m.Content, 0, model.Content(prompt))
	}
	told["Prompt"] = prompt.Text
	m.Content[at] = model.Text{Text: render("user.md", told)}
	m.Content = append(m.Content, pictures...)
	t.history.messages[spoken] = m
}

// news describes the files that the model was not told of yet, and returns the pictures among them that it is shown.
func (t *turn) news(ctx context.Context) ([]string, []model.Content, error) {
	files, err := t.session.Files(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list the files of the workspace: %w", err)
	}
	var fresh []kernel.File
	for _, f := range visible(files) {
		if t.spec.Fresh || !t.known.files[fileName(f.Path)+" ("+size(f.Size)+")"] {
			fresh = append(fresh, f)
		}
	}
	if !t.spec.Fresh && len(fresh) <= t.known.unnamed {
		return nil, nil, nil // they are those that were only counted
	}
	listed, err := t.listing(ctx, fresh)
	if err != nil {
		return nil, nil, err
	}
	pictures, err := t.pictures(ctx, fresh)
	return listed, pictures, err
}

// visible returns the files that are not hidden, by name.
func visible(files []kernel.File) []kernel.File {
	var out []kernel.File
	for _, f := range files {
		if !strings.HasPrefix(f.Path, ".") && !strings.Contains(f.Path, "/.") {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b kernel.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// listing describes files, one entry each: the first with what is in them, then names, then a number.
func (t *turn) listing(ctx context.Context, files []kernel.File) ([]string, error) {
	told, err := t.tell(ctx, files[:min(len(files), filesDetailed)])
	if err != nil {
		return nil, err
	}
	abouts := t.sharesOf(ctx, told)
	var out []string
	for n, f := range files {
		if n == filesListed {
			return append(out, fmt.Sprintf("- and %d more files", len(files)-n)), nil
		}
		entry := fmt.Sprintf("- %s (%s)", fileName(f.Path), size(f.Size))
		if n < len(abouts) {
			entry += abouts[n]
		}
		out = append(out, entry)
	}
	return out, nil
}

// sharesOf returns what is told of each file. Where there is no room for all of it, short descriptions stay whole, and the long ones have the same share each.
func (t *turn) sharesOf(ctx context.Context, told []workspace.Told) []string {
	abouts, weights := make([]string, len(told)), make([]int, len(told))
	all := 0
	for n, one := range told {
		abouts[n] = toldOf(one)
		weights[n] = weight(abouts[n])
		all += weights[n]
	}
	t.learnWindow(ctx, all)
	room := filesTold
	if most := t.resultWeight(); most > 0 {
		room = min(room, most)
	}
	share := fairShare(weights, room)
	for n, one := range told {
		for lines := len(one.Lines); weights[n] > share && lines > 0; {
			lines--
			shorter := one
			shorter.Lines = append(slices.Clone(one.Lines[:lines]), "…")
			abouts[n] = toldOf(shorter)
			weights[n] = weight(abouts[n])
		}
	}
	return abouts
}

// fairShare returns the most that one of some demands may take so that all together take no more than there is room for.
func fairShare(demands []int, room int) int {
	left := len(demands)
	for _, demand := range slices.Sorted(slices.Values(demands)) {
		if demand > room/left {
			return room / left
		}
		room -= demand
		left--
	}
	return room
}

// tell looks at files. The turn goes on when that fails, except when the context has ended: the code that needs a file gets the error.
func (t *turn) tell(ctx context.Context, files []kernel.File) ([]workspace.Told, error) {
	if len(files) == 0 {
		return nil, nil
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	told, err := t.session.Tell(ctx, paths)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		told = nil
		for range paths {
			told = append(told, workspace.Told{What: "not looked at: " + cutMiddle(printable(problem.Of(err).Message), longestReason)})
		}
	}
	return told, nil
}

// longestReason is how many characters a model reads of why files were not looked at.
const longestReason = 200

// toldOf is what is told of a file behind its name: in the same line what it is, and below it what is in it, in a fence, which nothing in it can end.
func toldOf(t workspace.Told) string {
	if t.What == "" {
		return ""
	}
	if len(t.Lines) == 0 {
		return ", " + t.What
	}
	return ", " + t.What + ":\n" + indent(fence("", strings.Join(t.Lines, "\n")))
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// fileName returns a path for a list, quoted when it holds what could be taken for something else.
func fileName(name string) string {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar || r == '"' || r == '`' }
	if strings.IndexFunc(name, odd) >= 0 || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

func extension(name string) string { return strings.ToLower(path.Ext(name)) }
