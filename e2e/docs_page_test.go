package e2e_test

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/python/deps/indextest"
	"cove/internal/testkit/testneeds"
)

// TestDocsPage does with curl what the API's page says, as somebody who reads it from the top: every example is run as it stands, in one shell,
// against a server of its own. Nothing but the address and the key is filled in. Examples that delete run at the end, from the bottom of the page
// up, since the page deletes a session before it uses it.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := docsServer(t)
	page := string(s.must("GET", "/api/v1/docs", nil, nil).body)
	examples := docsExamples(page)
	if len(examples) < 80 {
		t.Fatalf("%d examples on the page", len(examples))
	}
	filled := map[string]string{"http://localhost:8700": s.base, "cove_...": s.key}
	for placeholder, value := range filled {
		if strings.Count(examples[0], placeholder) != 1 {
			t.Fatalf("the first example does not have %s once:\n%s", placeholder, examples[0])
		}
		examples[0] = strings.Replace(examples[0], placeholder, value, 1)
	}
	deletes := func(example string) bool { return strings.Contains(example, "-X DELETE") }
	last := slices.DeleteFunc(slices.Clone(examples), func(e string) bool { return !deletes(e) })
	slices.Reverse(last)
	runExamples(t, s, append(slices.DeleteFunc(examples, deletes), last...))
}

// docsServer has a model and a package index that know what the page asks for.
func docsServer(t *testing.T) *server {
	home, index, _ := shopping(t)
	for name, version := range map[string]string{"polars": "1.35.0", "httpx": "0.28.1"} {
		index.Add(indextest.Wheel{Name: name, Version: version, Files: map[string]string{name + ".py": ""}})
	}
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		messages := r.Messages()
		question := modeltest.Request{Body: map[string]any{"messages": []any{messages[len(messages)-1]}}}.Text()
		switch {
		case messages[len(messages)-1]["role"] != "user":
			return modeltest.Say("It is done.")
		case strings.Contains(question, "growth.png"):
			return modeltest.Run("rows = open('sales.csv').read()\nopen('growth.png', 'w').write(rows)")
		case slices.Contains(r.Tools(), "get_weather"):
			return modeltest.Turn{Calls: []modeltest.Call{{Name: "get_weather", Arguments: `{"city":"Rome"}`}}}
		}
		return modeltest.Run("print(6 * 7)")
	})
	return startServer(t, "", testKey(t), "COVE_TOOLS_FILE="+timeServer(t), "COVE_HOME="+home, "UV_DEFAULT_INDEX="+index.URL,
		"OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted", "COVE_PACKAGES=standard")
}

// timeServer is a file of tool servers that has one named time.
func timeServer(t *testing.T) string {
	python := filepath.Join(pythonFolder(t, filepath.Join("testdata", "sdk", "toolservers")), "venv", "bin", "python")
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"time": map[string]any{"command": python, "args": []string{"-m", "mcp_server_time", "--local-timezone", "UTC"}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

var (
	shellBlock = regexp.MustCompile(`(?s)<pre><code class="sh">(.*?)</code></pre>`)
	htmlTag    = regexp.MustCompile(`<[^>]*>`)
)

// docsExamples returns what the page has in its shell blocks, as a reader copies it.
func docsExamples(page string) []string {
	var out []string
	for _, m := range shellBlock.FindAllStringSubmatch(page, -1) {
		out = append(out, html.UnescapeString(htmlTag.ReplaceAllString(m[1], "")))
	}
	return out
}

// strictly makes a refused request the end of the script, and curl say nothing but what the server does.
const strictly = "set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body --max-time 60 \"$@\"; }\n"

// runExamples runs the examples one after another in one shell, whose variables go from one to the next.
func runExamples(t *testing.T, s *server, examples []string) {
	t.Helper()
	dir := t.TempDir()
	output := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%03d.out", i)) }
	script := strictly
	for i, example := range examples {
		script += fmt.Sprintf("{\n%s\n} > %s 2>&1\n", example, output(i))
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = t.TempDir()
	out, failed := cmd.CombinedOutput()
	for i, example := range examples {
		said, err := os.ReadFile(output(i))
		next := ""
		if i+1 < len(examples) {
			next = output(i + 1)
		}
		_, unreached := os.Stat(next)
		switch {
		case err != nil:
			t.Fatalf("the example was not reached:\n%s\n%v\n%s", example, failed, out)
		case failed != nil && (next == "" || unreached != nil):
			t.Fatalf("the example fails: %v\n%s\n\n%s\n%s\n%s", failed, example, said, out, s.log)
		}
		for _, wrong := range []string{"event: failure", `"state":"failed"`, `"outcome":"error"`, `"refused":[{`} {
			if strings.Contains(string(said), wrong) {
				t.Errorf("the example ends with %s:\n%s\n\n%s\n%s", wrong, example, said, s.log)
			}
		}
	}
}
