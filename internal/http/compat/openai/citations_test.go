package openai

import (
	"strings"
	"testing"
)

// TestCitationsOfOddNames links to files as models do it: with spaces and marks as they are, or percent-encoded.
func TestCitationsOfOddNames(t *testing.T) {
	t.Parallel()
	files := []string{"My", "My Report (final).xlsx", "日本語 表.csv", "it's.csv", "100%.csv", "a%41.csv", "data.csv", "data.csv.gz", "sub/b c.txt"}
	for text, want := range map[string]string{
		"[x](sandbox:/mnt/data/My Report (final).xlsx)":                     "My Report (final).xlsx",
		"[x](sandbox:/mnt/data/My%20Report%20(final).xlsx)":                 "My Report (final).xlsx",
		"[x](<sandbox:/mnt/data/My Report (final).xlsx>)":                   "My Report (final).xlsx",
		"[x](sandbox:/mnt/data/My Report (draft).xlsx)":                     "",
		"[x](sandbox:/mnt/data/My)":                                         "My",
		"it is sandbox:/mnt/data/My Report (final).xlsx, see":               "My Report (final).xlsx",
		"[表](sandbox:/mnt/data/日本語 表.csv)":                                  "日本語 表.csv",
		"[表](sandbox:/mnt/data/%E6%97%A5%E6%9C%AC%E8%AA%9E%20表.csv)":        "日本語 表.csv",
		"[x](sandbox:/mnt/data/it's.csv) and (sandbox:/mnt/data/My, so)":    "it's.csv My",
		"[x](sandbox:/mnt/data/100%.csv) [y](sandbox:/mnt/data/100%25.csv)": "100%.csv 100%.csv",
		"[x](sandbox:/mnt/data/a%41.csv)":                                   "a%41.csv",
		"sandbox:/mnt/data/data.csv.gz and sandbox:/mnt/data/data.csv.":     "data.csv.gz data.csv",
		"[x](sandbox:/mnt/data/data.csv2) sandbox:/mnt/data/data.csvx":      "",
		`[x](sandbox:/mnt/data/sub/b%20c.txt "a title")`:                    "sub/b c.txt",
	} {
		var got []string
		for _, l := range linksIn(text, files) {
			got = append(got, l.file)
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s\n got  %s\n want %s", text, all, want)
		}
	}
	if n := len(linksIn(strings.Repeat("sandbox:/mnt/data/", 50_000)+strings.Repeat("%", 1<<20), files)); n != 0 {
		t.Errorf("%d links", n)
	}
}
