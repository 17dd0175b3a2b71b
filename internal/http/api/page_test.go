package api_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestThePageLeadsSomewhere follows every link within the page.
func TestThePageLeadsSomewhere(t *testing.T) {
	t.Parallel()
	page := newWorld(t, nil).do(t, "GET", "/api/v1/docs", "").body
	links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1)
	shapes := 0
	for _, l := range links {
		if strings.HasPrefix(l[1], "shape-") {
			shapes++
		}
		if !strings.Contains(page, `id="`+l[1]+`"`) {
			t.Errorf("there is no #%s", l[1])
		}
	}
	if shapes < 80 {
		t.Errorf("%d links to shapes", shapes)
	}
}

// TestExamplesFit has every line of an example fit a page of ordinary width.
func TestExamplesFit(t *testing.T) {
	t.Parallel()
	page := newWorld(t, nil).do(t, "GET", "/api/v1/docs", "").body
	blocks := regexp.MustCompile(`(?s)<pre><code class="sh">(.*?)</code>`).FindAllStringSubmatch(page, -1)
	if len(blocks) < 80 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		text := regexp.MustCompile(`<[^>]*>|&[^;]*;`).ReplaceAllString(b[1], "-")
		for line := range strings.Lines(text) {
			if len(line) > 121 {
				t.Errorf("%d characters: %s", len(line), line)
			}
		}
	}
}

func TestProblemsAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	form := "--x\r\nContent-Disposition: form-data; name=\"a>=1\"\r\n\r\nb\r\n--x--\r\n"
	got := newWorld(t, nil).do(t, "POST", "/api/v1/files", form, "Content-Type: multipart/form-data; boundary=x")
	if got.status != 422 && got.status != 400 || !strings.Contains(got.body, "body.a>=1") || !strings.HasSuffix(got.body, "\n") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
