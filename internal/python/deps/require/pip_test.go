package require_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/deps/require"
)

func TestParsePip(t *testing.T) {
	t.Parallel()
	tests := []struct {
		words   []string
		asked   []string
		refused []string
	}{
		{},
		{words: []string{"polars<2", "duckdb"}, asked: []string{"polars<2", "duckdb"}},
		{words: []string{"-U", "-q", "--user", "numpy"}, asked: []string{"numpy"}},
		{words: []string{"-qqU", "numpy", "--pre", "--force-reinstall", "--no-deps"}, asked: []string{"numpy"}},
		{words: []string{"--upgrade", "--quiet", "--no-cache-dir", "--disable-pip-version-check", "x"}, asked: []string{"x"}},
		{words: []string{"x", "--target", "/tmp/y", "-t", "z", "--python=3.11", "-p", "3.12", "w"}, asked: []string{"x", "w"}},
		{words: []string{"-i", "https://host.example/simple", "x"}, asked: []string{"x"}, refused: []string{"-i https://host.example/simple"}},
		{words: []string{"--extra-index-url=https://host.example/simple", "x"}, asked: []string{"x"}, refused: []string{"--extra-index-url=https://host.example/simple"}},
		{words: []string{"-ihttps://host.example/simple", "x"}, asked: []string{"x"}, refused: []string{"-ihttps://host.example/simple"}},
		{words: []string{"--trusted-host", "host.example", "--no-index", "-f", "wheels", "x"}, asked: []string{"x"}, refused: []string{"--no-index", "-f wheels"}},
		{words: []string{"-r", "requirements.txt"}, refused: []string{"-r requirements.txt"}},
		{words: []string{"-rrequirements.txt", "--requirement=a", "-c", "b", "-e", ".", "--group", "dev"}, refused: []string{"-rrequirements.txt", "--requirement=a", "-c b", "-e .", "--group dev"}},
		{words: []string{"-r"}, refused: []string{"-r"}},
		{words: []string{"git+https://host.example/x", "./x.whl", ".", "/x", "x.tar.gz", "http://host.example/y.whl", "x @ git+https://h/x"},
			refused: []string{"git+https://host.example/x", "./x.whl", ".", "/x", "x.tar.gz", "http://host.example/y.whl", "x @ git+https://h/x"}},
		{words: []string{"x", "--unheard-of", "--another=1", "-Z"}, asked: []string{"x"}, refused: []string{"--unheard-of", "--another=1", "-Z"}},
		{words: []string{"numpy", ">=", "2", "y", "==3"}, asked: []string{"numpy", "y"}, refused: []string{">= 2", "==3"}},
		{words: []string{"x", ">/dev/null", "2>&1"}, asked: []string{"x"}},
		{words: []string{"x", ">", "log.txt", "y"}, asked: []string{"x", "y"}},
		{words: []string{"x", "&&", "rm", "y"}, asked: []string{"x"}},
		{words: []string{"x", "|", "tail"}, asked: []string{"x"}},
		{words: []string{"x", "#", "comment"}, asked: []string{"x"}},
		{words: []string{"--", "x", "-y"}, asked: []string{"x"}, refused: []string{"-y"}},
		{words: []string{"requests >= 2", "a[b]", "tomli; python_version < '3.11'"}, asked: []string{"requests>=2", "a[b]", "tomli ; python_version < '3.11'"}},
		{words: []string{"num py"}, refused: []string{"num py"}},
	}
	for _, test := range tests {
		p := require.ParsePip(test.words)
		var asked []string
		for _, r := range p.Requirements {
			asked = append(asked, r.String())
		}
		name := strings.Join(test.words, " ")
		if diff := cmp.Diff(test.asked, asked); diff != "" {
			t.Errorf("pip install %s asks for (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.refused, p.Refused); diff != "" {
			t.Errorf("pip install %s is refused (-want +got):\n%s", name, diff)
		}
	}
}

func TestParsePipEnds(t *testing.T) {
	t.Parallel()
	words := strings.Fields(strings.Repeat("x ", 100_000))
	if p := require.ParsePip(words); len(p.Requirements) > 2000 {
		t.Errorf("%d requirements were read", len(p.Requirements))
	}
}
