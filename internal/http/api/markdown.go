package api

import (
	"html"
	"html/template"
	"regexp"
	"strings"
	"sync"
)

// markdown renders the little of Markdown that the guides use: paragraphs, headings, lists, tables, code blocks; code, bold and links in
// a line. The input is compiled in; it is escaped all the same.
func markdown(text string) template.HTML {
	var out strings.Builder
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := 0; i < len(lines); {
		begin := i
		line := lines[i]
		switch {
		case strings.TrimSpace(line) == "":
			i++
		case strings.HasPrefix(line, "```"):
			i = until(lines, i+1, func(l string) bool { return strings.HasPrefix(l, "```") })
			out.WriteString(code(strings.TrimPrefix(line, "```"), lines[begin+1:min(i, len(lines))]))
			i++
		case strings.HasPrefix(line, "#"):
			out.WriteString("<h4>" + inline(strings.TrimLeft(line, "# ")) + "</h4>\n")
			i++
		case strings.HasPrefix(line, "- "):
			i = until(lines, i, func(l string) bool { return !strings.HasPrefix(l, "- ") && !strings.HasPrefix(l, "  ") })
			out.WriteString(bullets(lines[begin:i]))
		case strings.HasPrefix(line, "|"):
			i = until(lines, i, func(l string) bool { return !strings.HasPrefix(l, "|") })
			out.WriteString(table(lines[begin:i]))
		default:
			i = until(lines, i, func(l string) bool {
				return strings.TrimSpace(l) == "" || strings.HasPrefix(l, "```") || strings.HasPrefix(l, "- ") || strings.HasPrefix(l, "|")
			})
			out.WriteString("<p>" + inline(strings.Join(lines[begin:i], " ")) + "</p>\n")
		}
	}
	return template.HTML(out.String())
}

// code renders a block. Remarks of a script are set apart from what is typed.
func code(language string, lines []string) string {
	shown := make([]string, len(lines))
	for i, l := range lines {
		shown[i] = html.EscapeString(l)
		if language == "sh" && strings.HasPrefix(l, "#") {
			shown[i] = "<i>" + shown[i] + "</i>"
		}
	}
	return `<pre><code class="` + html.EscapeString(language) + `">` + strings.Join(shown, "\n") + "</code></pre>\n"
}

// until returns the first line from i on that stops, or the number of lines.
func until(lines []string, i int, stops func(string) bool) int {
	for i < len(lines) && !stops(lines[i]) {
		i++
	}
	return i
}

func bullets(lines []string) string {
	var items []string
	for _, l := range lines {
		if item, ok := strings.CutPrefix(l, "- "); ok || len(items) == 0 {
			items = append(items, item)
			continue
		}
		items[len(items)-1] += " " + strings.TrimSpace(l)
	}
	out := "<ul>\n"
	for _, item := range items {
		out += "<li>" + inline(item) + "</li>\n"
	}
	return out + "</ul>\n"
}

func table(lines []string) string {
	out := "<table>\n"
	for i, l := range lines {
		if strings.Trim(l, "|-: ") == "" {
			continue
		}
		cell := "td"
		if i == 0 {
			cell = "th"
		}
		out += "<tr>"
		for c := range strings.SplitSeq(strings.Trim(strings.TrimSpace(l), "|"), "|") {
			out += "<" + cell + ">" + inline(strings.TrimSpace(c)) + "</" + cell + ">"
		}
		out += "</tr>\n"
	}
	return out + "</table>\n"
}

var (
	boldWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\*\*([^*]+)\*\*`) })
	localLink = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[([^\]]+)\]\(([#/][^)\s]*)\)`) })
)

// inline renders the code, bold and links of a line. Code comes first, because nothing inside it is markup.
func inline(text string) string {
	parts := strings.Split(text, "`")
	for i, p := range parts {
		p = html.EscapeString(p)
		if i%2 == 1 {
			parts[i] = "<code>" + p + "</code>"
			continue
		}
		p = boldWords().ReplaceAllString(p, "<b>$1</b>")
		parts[i] = localLink().ReplaceAllString(p, `<a href="$2">$1</a>`)
	}
	return strings.Join(parts, "")
}
