package openai

import (
	"cmp"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

const mostCitations = 100

// cite makes the annotations of a text: the places where it links to a file that the code made, as models write them
// (sandbox:/mnt/data/plot.png), and after them, at the end of the text, the files that it does not mention. Indices count characters.
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
	for _, link := range linksIn(text, files) {
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

// linksIn finds links to files of the workspace under both of its names, as models write them: in a Markdown link or in words, percent-encoded or not. A link is to the file with the longest name
// that stands there and ends there.
func linksIn(text string, files []string) []link {
	longest := slices.SortedFunc(slices.Values(files), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var out []link
	for _, prefix := range []string{"sandbox:" + mounted, "sandbox:/home/user/"} {
		for at := 0; ; {
			n := strings.Index(text[at:], prefix)
			if n < 0 {
				break
			}
			start := at + n
			at = start + len(prefix)
			inLink := strings.HasSuffix(text[:start], "](") || strings.HasSuffix(text[:start], "<")
			for _, file := range longest {
				if length, ok := begins(text[at:], file); ok && ends(text[at+length:], inLink) {
					out = append(out, link{start, at + length, file})
					at += length
					break
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b link) int { return cmp.Compare(a.start, b.start) })
	return out
}

// begins says how many bytes at the beginning of text stand for a name, of which any may be percent-encoded.
func begins(text, name string) (length int, ok bool) {
	if name == "" {
		return 0, false
	}
	if strings.HasPrefix(text, name) {
		return len(name), true
	}
	for n := range len(name) {
		rest := text[length:]
		switch {
		case len(rest) >= 3 && rest[0] == '%' && escapes(rest[:3], name[n]):
			length += 3
		case rest != "" && rest[0] == name[n]:
			length++
		default:
			return 0, false
		}
	}
	return length, true
}

// escapes says whether a percent sign with two digits stands for a byte.
func escapes(text string, b byte) bool {
	decoded, err := hex.DecodeString(text[1:])
	return err == nil && decoded[0] == b
}

// ends says whether a name may have ended before rest: in a link at its end, and in words before what is no part of a name.
func ends(rest string, inLink bool) bool {
	if rest == "" {
		return true
	}
	next, _ := utf8.DecodeRuneInString(rest)
	if inLink {
		return strings.ContainsRune(")>", next) || strings.HasPrefix(rest, ` "`) || strings.HasPrefix(rest, " '")
	}
	if strings.ContainsRune(".,;:!?*", next) {
		return ends(strings.TrimLeft(rest, ".,;:!?*"), false)
	}
	return strings.ContainsRune(" \t\r\n()[]<>\"'`|，。；、）】》", next)
}
