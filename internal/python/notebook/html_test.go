package notebook_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
)

var harmful = notebook.Document{Title: `</title><script>alert(1)</script>`, Files: []string{"<b>.csv"}, Turns: []notebook.Turn{{
	Prompt: "<script>alert(2)</script> & 数据",
	Blocks: []notebook.Block{
		{Text: "see <iframe src=https://evil.example></iframe> ![x](https://evil.example/?q=1) [go](javascript:alert(3)) ![y](data:image/svg+xml;base64,AAAA)"},
		{Cell: &notebook.Cell{Code: "print('</pre><script>alert(4)</script>')", Outcome: kernel.OutcomeOK, Outputs: []notebook.Output{
			{Stream: &kernel.Stream{Name: "stdout", Data: []byte("</pre><img src=x onerror=alert(5)>\xff")}},
			{Display: &kernel.Display{Data: kernel.Bundle{"image/png": "aGVsbG8=\n"}}},
			{Display: &kernel.Display{Data: kernel.Bundle{"image/png": `x" onerror="alert(6)`}}},
			{Display: &kernel.Display{Data: kernel.Bundle{"image/svg+xml": "<svg onload=alert(7)>"}}},
			{Result: &kernel.Result{Data: kernel.Bundle{"text/html": "<script>alert(8)</script>", "text/plain": "<plain>"}}},
		}}},
	},
	Answer: "| a | b |\n|---|---|\n| 1 | <u>2</u> |\n\n**bold** <img src=x onerror=alert(9)>",
}}}

// TestHTMLRunsAndLoadsNothing: what people, models and code wrote is text, or the few elements that Markdown has.
func TestHTMLRunsAndLoadsNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := notebook.WriteHTML(&out, harmful, 1<<20); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	known := regexp.MustCompile(`^</?(!doctype|html|head|meta|title|style|body|h1|h2|p|pre|code|strong|em|del|a|img|table|thead|tbody|tr|th|td|ul|ol|li|blockquote|hr|br)\b`)
	for _, tag := range regexp.MustCompile(`<[^<>]*>`).FindAllString(page, -1) {
		if !known.MatchString(tag) && !strings.HasPrefix(tag, "<!-- raw HTML omitted") || regexp.MustCompile(`(?i)\son\w+=|javascript:|src="?http`).MatchString(tag) {
			t.Errorf("the page has %s", tag)
		}
	}
	for _, part := range []string{"default-src 'none'", `<img alt="figure" src="data:image/png;base64,aGVsbG8=">`, "<td>1</td>", "<strong>bold</strong>", "&lt;plain&gt;", "数据", "[picture not shown: https://evil.example/?q=1]"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s:\n%s", part, page)
		}
	}
	if n := strings.Count(page, "<img"); n != 1 {
		t.Errorf("the page has %d pictures", n)
	}
	out.Reset()
	if err := notebook.WriteHTML(&out, harmful, 10); err != nil || strings.Contains(out.String(), "<img") || !strings.Contains(out.String(), "[figure]") {
		t.Errorf("without room for figures: %v", err)
	}
}

func TestMarkdownWithFigures(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := notebook.WriteMarkdownFigures(&out, harmful, 1<<20); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "![figure](data:image/png;base64,aGVsbG8=)"); n != 1 || strings.Contains(out.String(), `onerror="alert(6)`) {
		t.Errorf("%d figures:\n%s", n, out.String())
	}
	out.Reset()
	if err := notebook.WriteMarkdownFigures(&out, harmful, 10); err != nil || strings.Contains(out.String(), "![figure]") {
		t.Errorf("without room: %v\n%s", err, out.String())
	}
}
