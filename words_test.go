package cove_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// common are words of the glossary's column "not" that everybody has for something else too: a limit of bytes, an error's message, a project of users
// and one of an index. They are looked for in the names of types and functions alone.
var common = []string{"client", "host", "limit", "log", "message", "package", "project", "version"}

// otherTerms are words of the glossary's column "not" that stand for something else in some packages, which may declare them. A package more is a
// decision.
var otherTerms = map[string][]string{
	"account":   {"api", "app", "auth", "cli", "front", "store"},                        // of a person on a server, of the machine's user
	"adapter":   {"api", "model/anthropic", "model/openai"},                             // between a library and ours
	"agent":     {"api", "audit", "auth", "front", "deps/gateway"},                      // User-Agent
	"backend":   {"deps/indextest"},                                                     // PEP 517's, which builds a distribution
	"backup":    {"app", "cli", "config", "problem", "store", "telemetry"},              // of the database and its files
	"blob":      {"app", "store"},                                                       // SQL's column of bytes
	"cache":     {"deps/gateway", "deps/layer", "pyenv", "sandbox/gvisor", "testneeds"}, // of answers, of the loader
	"channel":   {"guestlink", "deps/scan", "wire"},                                     // of a frame; conda's
	"chat":      {"cli", "model/openai"},                                                // the command; OpenAI's API
	"client":    {"client", "front", "hub", "loop"},
	"container": {"sandbox/docker"},                                              // Docker's
	"daemon":    {"sandbox/docker", "sandbox/sandboxtest"},                       // Docker's
	"export":    {"api", "cli", "problem"},                                       // the command and the operation
	"fork":      {"api", "cli", "client", "hub", "ondisk", "store", "telemetry"}, // of a session, of a conversation
	"host":      {"sandbox", "guest", "front", "model", "model/modeltest", "deps/gateway", "sandbox/docker", "sandbox/sandboxtest"},
	"instance":  {"sandbox/gvisor"}, // a sandbox's folder with its processes
	"limit":     {"app", "cli", "config", "front", "hub", "loop", "model", "ondisk", "deps/layer", "sandbox", "sandbox/docker", "sandbox/gvisor", "snapshot", "store"},
	"log":       {"api", "app", "audit", "config", "front", "sandbox/gvisor", "telemetry"},
	"message":   {"api", "cli", "guest", "kernel", "model", "model/modeltest", "model/openai", "wire"}, // of an error, of a model, on a wire
	"mirror":    {"deps/indextest"},                                                                    // an index that copies another
	"node":      {"eval", "testneeds"},                                                                 // of YAML; Node.js
	"package":   {"api", "app", "cli", "client", "config", "hub", "installation", "loop", "deps", "release", "session"},
	"project":   {"api", "auth", "cli", "client", "config", "hub", "deps", "deps/gateway", "deps/names", "store"}, // of users; of an index
	"proxy":     {"debs", "deps", "deps/build", "deps/gateway", "pyindex"},                                        // HTTP_PROXY
	"reset":     {"model", "deps/layer", "wire"},                                                                  // of a connection, a reader, a delay
	"runtime":   {"app", "config", "problem", "sandbox", "sandbox/docker", "sandbox/gvisor", "snapshot"},          // OCI's: runsc
	"service":   {"model"},
	"task":      {"cli", "eval", "sandbox/docker", "sandbox/gvisor"},                                      // of an evaluation; what Linux calls a thread
	"term":      {"store"},                                                                                // of an SQL expression
	"thread":    {"sandbox/gvisor"},                                                                       // of the system
	"upload":    {"api", "client", "config", "front", "hub", "ident", "problem", "deps/gateway", "store"}, // a request that brings a file, a file that comes in pieces; when an index got one
	"version":   {"api", "cli", "client", "loop", "kernel", "deps", "deps/gateway", "deps/indextest", "deps/layer", "deps/names", "deps/require", "release", "store"},
}

// private are words and phrases that a reader would have to guess at, or that speak of software as of a person; see docs/style.md.
var private = regexp.MustCompile(`(?i)\b(who(m)?ever|he|him|himself|behind (its|his|their) backs?|confess\w*|mourn\w*|bury|buries|buried|doom\w*|inquests?|autops\w+|casualt\w+|` +
	`starv\w+|unwant(s|ed)?|(let|lets|letting) go of|so that it be|what is there is there|(leave|left) \S+ away)\b`)

var word = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// TestNamesAreTheGlossarys wants names that are declared to have no word that the glossary says is not the word.
func TestNamesAreTheGlossarys(t *testing.T) {
	t.Parallel()
	not := notWords(t)
	if len(not) < 40 {
		t.Fatalf("the glossary has %d words that are not to be used", len(not))
	}
	used := map[string]bool{}
	for _, f := range files(t) {
		if f.isTest || f.pkg == "" || strings.HasPrefix(f.pkg, "compat/") || f.pkg == "bench" {
			continue // what speaks of other programs has their words
		}
		pkg := f.pkg
		if strings.HasPrefix(pkg, "hub/") {
			pkg = "hub" // the packages of the hub speak of the same things
		}
		named, other := declared(f.ast)
		for i, name := range append(named, other...) {
			for _, w := range word.FindAllString(name, -1) {
				w = strings.TrimSuffix(strings.ToLower(w), "s")
				switch {
				case not[w] == "" || i >= len(named) && slices.Contains(common, w):
				case slices.Contains(otherTerms[w], pkg):
					used[w+" "+pkg] = true
				default:
					t.Errorf("%s declares %s; the word is %q", f.path, name, not[w])
				}
			}
		}
	}
	for w, packages := range otherTerms {
		for _, pkg := range packages {
			if !used[w+" "+pkg] {
				t.Errorf("%s declares no %s any more, which otherTerms lets it", pkg, w)
			}
		}
	}
}

// TestPlainWords wants no comment and no text of the program to have a private word.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.isTest || f.pkg == "" {
			continue
		}
		for _, text := range texts(f.ast) {
			if found := private.FindString(text); found != "" {
				t.Errorf("%s says %q: %.100q; see docs/style.md", f.path, found, text)
			}
		}
	}
	for _, text := range []string{"// Whoever wants it waits.", "he is killed behind its back", "leave --session away", "the session lets go of it"} {
		if !private.MatchString(text) {
			t.Errorf("%q is let through", text)
		}
	}
}

// texts are the comments and the texts of a file.
func texts(f *ast.File) []string {
	var out []string
	for _, group := range f.Comments {
		out = append(out, strings.Join(strings.Fields(group.Text()), " "))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			out = append(out, l.Value)
		}
		return true
	})
	return out
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

// declared lists the names of a file's types and functions, and those of its constants, variables, parameters and fields.
func declared(f *ast.File) (named, other []string) {
	add := func(idents ...*ast.Ident) {
		for _, i := range idents {
			other = append(other, i.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			named = append(named, n.Name.Name)
		case *ast.TypeSpec:
			named = append(named, n.Name.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(identifiers(n.Lhs...)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(identifiers(n.Key, n.Value)...)
			}
		}
		return true
	})
	return named, other
}

// identifiers are those of the expressions that are names.
func identifiers(of ...ast.Expr) []*ast.Ident {
	var out []*ast.Ident
	for _, e := range of {
		if i, ok := e.(*ast.Ident); ok {
			out = append(out, i)
		}
	}
	return out
}
