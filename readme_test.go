package cove_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const longestReadme = 150 // lines

// TestReadmesSayTheSame wants the README in Chinese to have each heading, command, setting, table row and link of the English one, in the same order where lines are compared.
func TestReadmesSayTheSame(t *testing.T) {
	t.Parallel()
	english, chinese := readmeOf(t, "README.md"), readmeOf(t, "README.zh-CN.md")
	for what, parts := range map[string][2][]string{
		"shape": {english.shape, chinese.shape}, "commands": {english.commands, chinese.commands}, "code": {english.code, chinese.code}, "links": {english.links, chinese.links},
	} {
		for _, part := range parts[0] {
			if !slices.Contains(parts[1], part) {
				t.Errorf("%s: README.zh-CN.md lacks %q", what, part)
			}
		}
		for _, part := range parts[1] {
			if !slices.Contains(parts[0], part) {
				t.Errorf("%s: README.md lacks %q", what, part)
			}
		}
	}
	if !slices.Equal(english.shape, chinese.shape) {
		t.Errorf("the parts follow each other otherwise:\n%q\n%q", english.shape, chinese.shape)
	}
	if len(english.shape) < 60 || len(english.commands) < 15 || len(english.code) < 60 || len(english.links) < 40 {
		t.Errorf("of README.md only %d lines, %d commands, %d pieces of code and %d links were found", len(english.shape), len(english.commands), len(english.code), len(english.links))
	}
}

// readme is what a README has in every language.
type readme struct{ shape, commands, code, links []string }

var (
	readmeCode   = regexp.MustCompile("`[^`\n]+`")
	readmeLink   = regexp.MustCompile(`\]\(([^)]+)\)`)
	readmeWords  = regexp.MustCompile(`"[^"]*"|#.*`) // questions and remarks are in the reader's language
	readmeItself = regexp.MustCompile(`README(\.zh-CN)?\.md`)
)

func readmeOf(t *testing.T, name string) (r readme) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(lines) > longestReadme {
		t.Errorf("%s has %d lines, more than %d", name, len(lines), longestReadme)
	}
	inside := false
	for _, line := range lines {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence:
			inside = !inside
			r.shape = append(r.shape, "```")
			continue
		case inside || strings.HasPrefix(line, "    "):
			r.commands = append(r.commands, strings.TrimSpace(readmeWords.ReplaceAllString(line, "")))
			r.shape = append(r.shape, "    ")
			continue
		}
		r.shape = append(r.shape, kindOfLine(line))
		r.code = append(r.code, readmeCode.FindAllString(line, -1)...)
		for _, link := range readmeLink.FindAllStringSubmatch(line, -1) {
			r.links = append(r.links, readmeItself.ReplaceAllString(link[1], "README"))
		}
	}
	return r
}

// kindOfLine returns how a line of Markdown begins.
func kindOfLine(line string) string {
	for _, begin := range []string{"## ", "# ", "- ", "| ", "|-", "!["} {
		if strings.HasPrefix(line, begin) {
			return begin
		}
	}
	if line == "" {
		return ""
	}
	return "text"
}
