package cove_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notOfThePage are packages whose problems the page does not show: commands, what is done before a server serves, and the interfaces of other programs.
var notOfThePage = strings.Fields(`app archive bundle cli client compat/anthropic compat/daytona compat/daytona/toolbox compat/dify compat/e2b compat/gemini
	compat/jupyter compat/librechat compat/mcp compat/openai compat/sandboxai config debs eval libdata ownership ports pyenv pyindex sandbox/docker sandbox/local seal telemetry template toolserver transcript`)

// notOnThePage are problems of the other packages that end a server before it serves, or that only commands meet.
var notOnThePage = strings.Fields(`address_in_use address_invalid backup_damaged backup_newer bad_database config_invalid database_in_use database_newer database_not_empty
	database_unnamed debug_not_local encryption_unfinished listener_failed origin_invalid tls_invalid`)

var problemWord = regexp.MustCompile(`(?m)^  (\w+): \[`)

// TestPageHasWordsForProblems wants the page to say each problem that a server can answer it with in words of its own, by its code, in both languages.
func TestPageHasWordsForProblems(t *testing.T) {
	t.Parallel()
	codes := codesOf(t)
	findMakers(t, codes)
	known := []string{"offline", "unknown", "fault"} // the page's own
	var shown []string
	for _, c := range codes {
		known = append(known, c.text)
		if slices.Contains(notOnThePage, c.text) {
			continue
		}
		for made := range c.made {
			if !slices.Contains(notOfThePage, made) {
				shown = append(shown, c.text)
				break
			}
		}
	}
	slices.Sort(shown)
	if len(shown) < 200 {
		t.Fatalf("only %d codes are shown on the page", len(shown))
	}
	for _, language := range []string{"en", "zh"} {
		path := "web/src/words/" + language + "/problems.ts"
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var has []string
		for _, m := range problemWord.FindAllStringSubmatch(string(text), -1) {
			has = append(has, m[1])
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s has words for %s, which is no code", path, m[1])
			}
		}
		for _, code := range shown {
			if !slices.Contains(has, code) {
				t.Errorf("%s has no words for the problem %s: say what happened and what its reader can do", path, code)
			}
		}
	}
}
