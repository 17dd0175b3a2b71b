package cove_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// otherTerms are words of the glossary's column "not" that stand for something else in some packages, which may declare them. A package more is a
// decision.
var otherTerms = map[string][]string{
	"account":  {"api", "app", "auth", "httpd"},            // of a person on a server, of the machine's user
	"adapter":  {"api", "model/anthropic", "model/openai"}, // between a library and ours
	"agent":    {"httpd"},                                  // User-Agent
	"backup":   {"app", "cli", "store"},
	"blob":     {"app", "store"}, // bytes of a column, of a stored file
	"box":      {"sandbox/gvisor", "sandbox/local"},
	"cache":    {"pydeps/layer"},
	"channel":  {"wire"}, // of a frame
	"chat":     {"cli"},
	"client":   {"client", "httpd", "hub", "interpreter"},
	"export":   {"cli"},                                  // the command
	"fork":     {"api", "cli", "client", "hub", "named"}, // of a session
	"host":     {"guest", "httpd", "model", "model/modeltest", "pydeps/gateway", "pydeps/layer"},
	"image":    {"api", "interpreter", "model", "model/modeltest", "sandbox/gvisor", "sandbox/sandboxtest", "snapshot"}, // a picture; a checkpoint's files
	"instance": {"sandbox/gvisor"},
	"job":      {"pydeps"},
	"limit":    {"app", "cli", "config", "httpd", "hub", "interpreter", "model", "named", "pydeps/layer", "sandbox", "sandbox/gvisor", "snapshot", "store"},
	"log":      {"api", "app", "audit", "config", "httpd", "hub", "sandbox/gvisor", "telemetry"},
	"message":  {"api", "cli", "guest", "kernel", "model", "model/modeltest", "model/openai", "wire"}, // of an error, of a model, on a wire
	"package":  {"api", "app", "cli", "client", "config", "hub", "install", "interpreter", "pydeps", "pydeps/names/generate", "session"},
	"project":  {"api", "auth", "cli", "config", "pydeps", "pydeps/gateway", "pydeps/names", "pydeps/names/generate", "store"}, // of users; of an index
	"proxy":    {"pyindex"},
	"reset":    {"hub", "model", "pydeps/layer", "wire"},
	"runtime":  {"app", "sandbox/gvisor"},
	"service":  {"model"},
	"task":     {"hub", "sandbox/gvisor"},
	"upload":   {"api", "client"},
	"version":  {"api", "app", "cli", "client", "interpreter", "kernel", "pydeps", "pydeps/gateway", "pydeps/indextest", "pydeps/layer", "pydeps/names", "pydeps/require", "store"},
}

var word = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// TestNamesAreTheGlossarys wants names that are declared to have no word that the glossary says is not the word.
func TestNamesAreTheGlossarys(t *testing.T) {
	t.Parallel()
	not := notWords(t)
	if len(not) < 40 {
		t.Fatalf("the glossary has %d words that are not to be used", len(not))
	}
	for _, f := range files(t) {
		if f.isTest || f.pkg == "" || strings.HasPrefix(f.pkg, "compat/") || f.pkg == "bench" {
			continue // what speaks of other programs has their words
		}
		for _, name := range declared(f.ast) {
			for _, w := range word.FindAllString(name, -1) {
				w = strings.TrimSuffix(strings.ToLower(w), "s")
				if not[w] != "" && !slices.Contains(otherTerms[w], f.pkg) {
					t.Errorf("%s declares %s; the word is %q", f.path, name, not[w])
				}
			}
		}
	}
}

// notWords are the words of the glossary's last column, with the word to use instead.
func notWords(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	not := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, w := range strings.Split(cells[3], ",") {
			if w = strings.TrimSpace(w); w != "" && w != "not" && !strings.Contains(w, " ") && !strings.Contains(w, "-") {
				not[strings.ToLower(w)] = strings.TrimSpace(cells[1])
			}
		}
	}
	return not
}

// declared lists the names of a file's types and functions.
func declared(f *ast.File) []string {
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name.Name)
		}
		return true
	})
	return names
}
