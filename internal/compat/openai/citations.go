package openai

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

const mostCitations = 100

// cite makes the annotations of a text: the places where it links to a file that the code made, as models write them
// (sandbox:/mnt/data/plot.png), and behind them, at the end of the text, the files that it does not mention. Indices count characters.
func cite(text, container string, files []string) []annotation {
	out := []annotation{}
	add := func(file string, start, end int) {
		out = append(out, annotation{Type: "container_file_citation", ContainerID: container, FileID: cfileID(file),
			Filename: path.Base(file), StartIndex: start, EndIndex: end})
	}
	known := map[string]bool{}
	for _, f := range files {
		known[f] = len(f) <= longestPath
	}
	mentioned := map[string]bool{}
	for _, link := range linksIn(text) {
		if known[link.file] && len(out) < mostCitations {
			mentioned[link.file] = true
			add(link.file, utf8.RuneCountInString(text[:link.start]), utf8.RuneCountInString(text[:link.end]))
		}
	}
	end := utf8.RuneCountInString(text)
	for _, f := range files {
		if known[f] && !mentioned[f] && len(out) < mostCitations {
			add(f, end, end)
		}
	}
	return out
}

// hidden says whether a path is one that programs keep for themselves, as caches.
func hidden(file string) bool { return strings.HasPrefix(file, ".") || strings.Contains(file, "/.") }

// link is a place in a text, in bytes, and the workspace file that it names.
type link struct {
	start, end int
	file       string
}

// linksIn finds links to the workspace under both of its names.
func linksIn(text string) []link {
	var out []link
	for _, prefix := range []string{"sandbox:" + mounted, "sandbox:/home/user/"} {
		for at := 0; ; {
			n := strings.Index(text[at:], prefix)
			if n < 0 {
				break
			}
			start := at + n
			rest := text[start+len(prefix):]
			length := endOfLink(rest)
			// In a Markdown link the closing parenthesis ends it; names with spaces and parentheses are percent-encoded or quoted there.
			if file, err := url.PathUnescape(rest[:length]); err == nil && file != "" {
				out = append(out, link{start, start + len(prefix) + length, file})
			}
			at = start + len(prefix) + length
		}
	}
	slices.SortFunc(out, func(a, b link) int { return cmp.Compare(a.start, b.start) })
	return out
}

func endOfLink(rest string) int {
	n := strings.IndexFunc(rest, func(r rune) bool { return strings.ContainsRune(" \t\r\n()[]<>\"'`|，。；、）】》", r) })
	if n < 0 {
		n = len(rest)
	}
	return len(strings.TrimRight(rest[:n], ".,;:!?*"))
}
