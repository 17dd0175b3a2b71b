package interpreter

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cove/internal/kernel"
)

// How much of the workspace a prompt describes.
const (
	filesDetailed = 20
	filesListed   = 200
)

// userMessage returns the prompt and what is new in the workspace.
func (t *turn) userMessage(ctx context.Context, prompt string) (string, error) {
	files, err := t.session.Files(ctx)
	if err != nil {
		return "", fmt.Errorf("list the files of the workspace: %w", err)
	}
	later := len(t.history.messages) > 0
	var fresh []kernel.File
	seen := maps.Clone(t.seen)
	for _, f := range visible(files) {
		if known, ok := t.seen[f.Path]; !ok || known != f.Size {
			fresh = append(fresh, f)
			seen[f.Path] = f.Size
		}
	}
	t.seen = seen
	listed, err := t.listing(ctx, fresh)
	if err != nil {
		return "", err
	}
	return render("user.md", map[string]any{"Prompt": prompt, "Files": listed, "Later": later}), nil
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

// listing describes files, one entry each: the first with their heads, then names, then a number.
func (t *turn) listing(ctx context.Context, files []kernel.File) ([]string, error) {
	detailed := files[:min(len(files), filesDetailed)]
	tables, err := t.describe(ctx, detailed)
	if err != nil {
		return nil, err
	}
	var out []string
	for n, f := range files {
		entry := fmt.Sprintf("- %s (%s)", fileName(f.Path), size(f.Size))
		switch {
		case n == filesListed:
			return append(out, fmt.Sprintf("- and %d more files", len(files)-n)), nil
		case n >= filesDetailed:
		case isTable(f.Path):
			entry += tables[f.Path]
		case f.Size > 0 && isText(f.Path):
			data, err := t.session.ReadFile(ctx, f.Path, headBytes)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			// A file that cannot be read is the business of the code that needs it.
			if err == nil {
				entry += textHead(f, data)
			}
		}
		out = append(out, entry)
	}
	return out, nil
}

// fileName returns a path for a list, quoted when it holds what could be taken for something else.
func fileName(name string) string {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar || r == '"' || r == '`' }
	if strings.IndexFunc(name, odd) >= 0 || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

func extension(name string) string { return strings.ToLower(path.Ext(name)) }
