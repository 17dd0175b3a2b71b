// Package cove_test holds the rules of the repository as tests. They parse the files in this process: a test that
// asks another program would be cached, and would keep passing after a rule was broken.
package cove_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	longestFunction = 80
	longestFile     = 500
)

// layers lists the packages below the rooms of internal/, lowest first; the programs of development below tools/ are above all of them. A package imports lower layers only; packages of one layer
// never import each other. "x/*" stands for the packages below x.
var layers = [][]string{
	{"terminal"},
	{"terminal/terminaltest"},
	{"problem", "lang", "ident", "memory", "workspace", "lineedit", "durable", "pagestore", "chart", "screen", "redact", "displaysetup", "volume", "sdnotify", "gobuild", "unmount", "oldnotebook", "agreement"},
	{"wire", "config", "bundle", "telemetry", "pyindex", "audit", "bodybudget", "sse", "byterange", "installation", "httpstatus", "sandbox", "process", "filesystem", "tool", "rootfs", "seal"},
	{"model", "pyenv", "guest", "egress", "pool", "auth", "ownership", "stream", "archive", "sandbox/gvisor/filters", "deps/require"},
	{"guest/program", "sharedmem", "image", "protocol", "sandboxclock", "testneeds", "oauth", "compat/e2b/envd"},
	{"sandbox/*", "image/imagetest", "model/*", "guestlink", "toolserver", "snapshot", "keeper", "libdata", "deps/*"},
	{"sandbox/sandboxtest", "deps/scan"},
	{"deps", "replaced", "debs"},
	{"kernel", "deps/build"},
	{"session", "advice", "display"},
	{"loop", "template", "ondisk"},
	{"transcript", "notebook"},
	{"hub/record"},
	{"hub/changes", "hub/work"},
	{"hub/meter"},
	{"hub/files"},
	{"hub/live"},
	{"hub/turns"},
	{"hub", "eval"},
	{"ports", "builder", "compat/daytona/toolbox"},
	{"store", "api", "compat/*", "webpage", "hub/hubtest"},
	{"client", "front", "store/*", "api/apitest"},
	{"cli"},
	{"app"},
	{"testneeds/report", "release", "container", "helmchart", "enginetable"},
}

// confined lists the imports that only some packages may have.
var confined = map[string][]string{
	"gvisor.dev/":                             {"sandbox/gvisor", "sandbox/gvisor/filters"},
	"github.com/openai/openai-go":             {"model/openai"},
	"github.com/anthropics/anthropic-sdk-go":  {"model/anthropic"},
	"github.com/google/go-containerregistry/": {"image", "image/imagetest", "container"},
	"github.com/klauspost/compress":           {"image"},
	"net/http":                                {"image", "image/imagetest", "model", "model/openai", "model/anthropic", "model/modeltest", "model/choose", "cli", "pyindex", "deps/gateway", "deps/indextest", "deps/build", "api", "api/apitest", "compat/openai", "compat/e2b", "compat/e2b/envd", "front", "client", "telemetry", "sse", "byterange", "protocol", "webpage", "libdata", "egress", "ports", "compat/dify", "compat/librechat", "compat/jupyter", "compat/sandboxai", "compat/mcp", "compat/daytona", "compat/daytona/toolbox", "compat/anthropic", "compat/gemini", "toolserver", "oauth", "bodybudget"},
	"database/sql":                            {"store", "store/pgtest"},
	"modernc.org/sqlite":                      {"store"},
	"connectrpc.com/":                         {"compat/e2b", "compat/e2b/envd"},
	"google.golang.org/protobuf/":             {"compat/e2b", "compat/e2b/envd"},
	"github.com/jackc/pgx/":                   {"store", "store/pgtest"},
	"github.com/pressly/goose/":               {"store"},
	"github.com/danielgtaylor/huma/":          {"api"},
	"github.com/prometheus/":                  {"telemetry"},
	"github.com/modelcontextprotocol/":        {"compat/mcp", "toolserver"},
	"github.com/coreos/go-oidc/":              {"oauth"},
	"github.com/go-jose/":                     {"oauth"},
	"go.opentelemetry.io/":                    {"telemetry"},
	"github.com/alecthomas/":                  {"cli"},
	"github.com/opencontainers/runtime-spec/": {"sandbox/gvisor"},
	"github.com/moby/moby/":                   {"sandbox/docker"},
	"github.com/minio/minio-go/":              {"archive"},
	"github.com/containerd/errdefs":           {"sandbox/docker"},
}

// unnamed are words that the files of a package do not have, tests apart: what it must not know by name.
var unnamed = map[string][]string{
	"front": {`"/v1`, `"/api`, "openai", "OpenAI"},           // surfaces, which are values to it
	"store": {`json:"type"`, "ParseEvent", "ParseTurnEvent"}, // what is in events, which are bytes to it
	// what a stream is about: it has a name, and its events have parts
	"stream": {"ident", "transcript", "telemetry", "Execution", "Turn", "Session", "Kernel"},
}

// engineByName finds code that goes by an engine's name rather than by what it can do.
var engineByName = regexp.MustCompile(`[!=]= "(local|gvisor|docker)"`)

// hiddenAbility finds code that asks for a method by an interface without a name, which no implementer can find. That of package errors is known.
var hiddenAbility = regexp.MustCompile(`\.\(interface ?\{ ?(\w+)`)

func TestEnginesAreKnownByWhatTheyCan(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.isTest || f.pkg == "config" || f.pkg == "app" || strings.HasPrefix(f.pkg, "sandbox/") {
			continue
		}
		if found := engineByName.Find(f.content); found != nil {
			t.Errorf("%s asks for an engine by its name: %s", f.path, found)
		}
	}
}

func TestAbilitiesHaveNames(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		for _, found := range hiddenAbility.FindAllSubmatch(f.content, -1) {
			if !f.isTest && string(found[1]) != "Unwrap" {
				t.Errorf("%s asserts an interface without a name: %s", f.path, found[0])
			}
		}
	}
}

func TestWhatIsNotKnownByName(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, f := range files(t) {
		if f.isTest || unnamed[f.pkg] == nil {
			continue
		}
		seen++
		for _, word := range unnamed[f.pkg] {
			if strings.Contains(string(f.content), word) {
				t.Errorf("%s names %s", f.path, word)
			}
		}
	}
	if seen == 0 {
		t.Error("no file was looked at")
	}
}

// edges lists imports that some packages do not have although their layer would let them.
var edges = map[string][]string{
	"kernel":                 {"deps"},
	"hub":                    {"wire"}, // what is said between host and guest is for those who talk to guests
	"hub/*":                  {"wire"},
	"api":                    {"wire"},
	"compat/*":               {"wire"},
	"compat/daytona/toolbox": {"wire"},
	"store":                  {"wire"},
}

func TestEdges(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, f := range files(t) {
		for pkg, barred := range edges {
			sibling := strings.HasSuffix(pkg, "/*") && path.Dir(f.pkg) == path.Dir(pkg)
			if f.pkg != pkg && !sibling || f.isTest {
				continue
			}
			seen++
			for name, at := range imports(f) {
				if short := inRoom(name); short != "" && slices.Contains(barred, short) {
					t.Errorf("%s: %s does not import %s", at, f.pkg, short)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no file was looked at")
	}
}

// apart lists the packages of development: the program that users get has none of them.
var apart = []string{"deps/indextest", "hub/hubtest", "api/apitest", "store/pgtest", "model/modeltest", "sandbox/sandboxtest", "terminal/terminaltest", "testneeds", "testneeds/*", "gobuild", "release", "container", "helmchart", "enginetable"}

func TestTheProductHasNothingOfDevelopment(t *testing.T) {
	t.Parallel()
	linked := closure(t, "cove/cmd/cove")
	if !linked["cove/internal/commands/app"] || !linked["cove/internal/python/deps/names"] {
		t.Fatalf("of cmd/cove, only %v was found", linked)
	}
	for pkg := range linked {
		short := inRoom(pkg)
		for _, name := range apart {
			if short == name || strings.HasSuffix(name, "/*") && path.Dir(short) == path.Dir(name) {
				t.Errorf("cmd/cove contains %s", pkg)
			}
		}
	}
}

// closure returns the packages of this repository that the one with this import path consists of, itself included.
func closure(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	imported := map[string][]string{}
	for _, f := range files(t) {
		if f.isTest {
			continue
		}
		own := "cove/" + path.Dir(f.path)
		for name := range imports(f) {
			imported[own] = append(imported[own], name)
		}
	}
	seen := map[string]bool{}
	var visit func(string)
	visit = func(pkg string) {
		if seen[pkg] || !strings.HasPrefix(pkg, "cove/") {
			return
		}
		seen[pkg] = true
		for _, name := range imported[pkg] {
			visit(name)
		}
	}
	visit(pkg)
	return seen
}

// TestNothingIsCompiledAtTheStart: each command, and each process of a sandbox, is the same file, and pays for what package variables
// compile before main, whether it needs that or not. They use sync.OnceValue.
func TestNothingIsCompiledAtTheStart(t *testing.T) {
	t.Parallel()
	linked := closure(t, "cove/cmd/cove")
	for _, f := range files(t) {
		if f.isTest || !linked["cove/"+path.Dir(f.path)] {
			continue
		}
		for _, call := range compiledAtTheStart(f.ast) {
			t.Errorf("%s: a package variable is compiled before main; use sync.OnceValue", f.set.Position(call.Pos()))
		}
	}
}

// compiledAtTheStart returns the calls that make package variables of a file from patterns and templates.
func compiledAtTheStart(f *ast.File) (calls []*ast.CallExpr) {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); !ok || g.Tok != token.VAR {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if fn, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"MustCompile", "Must", "ParseFS"}, fn.Sel.Name) {
					calls = append(calls, call)
				}
			}
			_, later := n.(*ast.FuncLit)
			return !later
		})
	}
	return calls
}

type file struct {
	path    string // relative, slash-separated
	pkg     string // as inRoom returns it
	isTest  bool
	ast     *ast.File
	set     *token.FileSet
	content []byte
}

func files(t *testing.T) []file {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d Go files were found; the rules would hold for nothing", len(out))
	}
	return out
}

// parsed are all files, parsed once for all rules.
var parsed = sync.OnceValues(func() ([]file, error) {
	var out []file
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, content, parser.ParseComments)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(name)
		out = append(out, file{path: slash, pkg: inRoom("cove/" + path.Dir(slash)), isTest: strings.HasSuffix(name, "_test.go"), ast: parsed, set: set, content: content})
		return nil
	})
	return out, err
})

// skips finds a test that is left out by hand.
var skips = regexp.MustCompile(`\.(Skip|Skipf|SkipNow)\(`)

func TestTestsSayWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if found := skips.Find(f.content); found != nil && f.pkg != "testneeds" {
			t.Errorf("%s has %s, which nobody hears of; package testneeds has Asked, Absent and RunsElsewhere", f.path, found)
		}
	}
}

// rooms are the folders of internal/: what a newcomer sees first. See docs/architecture.md.
var rooms = []string{"core", "machine", "python", "sessions", "llm", "code", "server", "http", "commands", "packaging", "testkit"}

// inRoom returns the path of a package below its room, such as "hub" and "compat/openai", for the import path of one below internal/, and otherwise "".
func inRoom(name string) string {
	below, _ := strings.CutPrefix(name, "cove/internal/")
	if below == name {
		return ""
	}
	_, pkg, _ := strings.Cut(below, "/")
	return pkg
}

// TestRooms wants every package in a room, under a name that no other room has.
func TestRooms(t *testing.T) {
	t.Parallel()
	roomOf := map[string]string{}
	for _, f := range files(t) {
		below, ours := strings.CutPrefix(f.path, "internal/")
		if !ours {
			continue
		}
		room, rest, _ := strings.Cut(below, "/")
		first, _, inside := strings.Cut(rest, "/")
		switch {
		case !slices.Contains(rooms, room) || !inside:
			t.Errorf("%s is in none of the rooms %v", f.path, rooms)
		case roomOf[first] == "":
			roomOf[first] = room
		case roomOf[first] != room:
			t.Errorf("%s: there is a package %s in the room %s, too", f.path, first, roomOf[first])
		}
	}
	if len(roomOf) < 50 {
		t.Errorf("only %d packages were found", len(roomOf))
	}
}

func layerOf(pkg string) int {
	found := -1
	for i, layer := range layers {
		for _, name := range layer {
			if name == pkg {
				return i
			}
			if strings.HasSuffix(name, "/*") && path.Dir(pkg) == path.Dir(name) {
				found = i
			}
		}
	}
	return found
}

func imports(f file) map[string]string {
	out := map[string]string{}
	for _, spec := range f.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			out[name] = f.set.Position(spec.Pos()).String()
		}
	}
	return out
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if !strings.HasPrefix(f.path, "tools/") {
			for name, at := range imports(f) {
				if strings.HasPrefix(name, "cove/tools/") {
					t.Errorf("%s: only what is in tools/ may import %s", at, name)
				}
			}
		}
		if f.pkg == "" || f.isTest {
			continue
		}
		own := layerOf(f.pkg)
		if own < 0 {
			t.Errorf("%s: package %s is in no layer; put it into one in repo_test.go", f.path, f.pkg)
			continue
		}
		for name, at := range imports(f) {
			other := inRoom(name)
			if other != "" && layerOf(other) >= own {
				t.Errorf("%s: %s may not import %s, which is not in a lower layer", at, f.pkg, other)
			}
		}
	}
}

func TestTheGuestImportsOnlyWire(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.pkg != "guest" || f.isTest {
			continue
		}
		for name, at := range imports(f) {
			if strings.HasPrefix(name, "cove/") && name != "cove/internal/machine/wire" {
				t.Errorf("%s: the guest faces hostile code and imports nothing of ours but wire, not %s", at, name)
			}
		}
	}
}

func TestDependenciesAreConfined(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.pkg == "" || f.isTest {
			continue
		}
		for name, at := range imports(f) {
			for prefix, allowed := range confined {
				if name != prefix && !strings.HasPrefix(name, strings.TrimSuffix(prefix, "/")+"/") {
					continue
				}
				if !contains(allowed, f.pkg) {
					t.Errorf("%s: %s belongs to %v only", at, name, allowed)
				}
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestPackagesAreExplained(t *testing.T) {
	t.Parallel()
	explained := map[string]bool{}
	for _, f := range files(t) {
		dir := path.Dir(f.path)
		if !f.isTest {
			explained[dir] = explained[dir] || f.ast.Doc != nil
		}
	}
	for dir, ok := range explained {
		if !ok {
			t.Errorf("%s: no file has a package comment", dir)
		}
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.isTest || ast.IsGenerated(f.ast) {
			continue
		}
		if n := strings.Count(string(f.content), "\n"); n > longestFile {
			t.Errorf("%s: %d lines, more than %d", f.path, n, longestFile)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if fn.Recv == nil && fn.Name.Name == "init" && f.path != "internal/machine/unmount/unmount.go" { // being early is what that one is for
				t.Errorf("%s: there is an init function", f.set.Position(fn.Pos()))
			}
			if n := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1; n > longestFunction {
				t.Errorf("%s: %s has %d lines, more than %d", f.set.Position(fn.Pos()), fn.Name.Name, n, longestFunction)
			}
		}
	}
}

func TestEnvironmentsAreLocked(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"standard", "minimal"} {
		text, err := os.ReadFile(filepath.Join("internal", "python", "pyenv", "locks", set+".txt"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(text), "--hash=sha256:") {
			t.Errorf("the %s lock has no hashes", set)
		}
	}
}

// TestTiersAreSaidFirst wants tests of the full tier, parts of tests and what gives them something to say so before they do anything: what they did before would be done in vain where that tier does not run.
func TestTiersAreSaidFirst(t *testing.T) {
	t.Parallel()
	n := 0
	for _, f := range files(t) {
		if !f.isTest {
			continue
		}
		all := len(tierCall.FindAll(f.content, -1))
		first := len(tierFirst.FindAll(f.content, -1))
		n += first
		if all != first {
			t.Errorf("%s: testneeds.FullTier is called %d times, and %d times first, after t.Parallel", f.path, all, first)
		}
	}
	if n < 20 {
		t.Errorf("%d tests are of the full tier", n)
	}
}

var (
	tierCall  = regexp.MustCompile(`\btestneeds\.FullTier\(`)
	tierFirst = regexp.MustCompile(`(?m)\bfunc\b[^\n]*\(t \*testing\.[TF]\)[^\n]* \{\n(\t+t\.(Parallel|Helper)\(\)\n)?\t+testneeds\.FullTier\(t\)`)
)
