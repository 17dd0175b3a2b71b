package cove_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cove/internal/problem"
	"cove/internal/status"
)

var update = flag.Bool("update", false, "write docs/errors.md")

const errorsPage = "docs/errors.md"

// produced is what the code says of one code of a problem.
type produced struct {
	kinds, packages map[string]bool
	message         string // of the first place that has words
}

// severalKinds are the codes whose kind, and so status, differs by what went wrong. A code more is a decision.
var severalKinds = []string{
	"build_failed", "disk_full", "engine_cannot_save", "environment_damaged", "input_unreadable", "model_missing", "name_taken", "no_model", "python_unusable",
	"requirement_not_allowed", "resolve_failed", "runtime_folder", "session_busy",
}

// TestErrorCodes wants each code of a problem to have one kind, and docs/errors.md to list them all (go test . -run ErrorCodes -update writes the page).
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	codes := collectCodes(t)
	if len(codes) < 250 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	var page strings.Builder
	page.WriteString("# Errors\n\nEvery error of cove has a code, which stays, and a kind, which says who has to act. This page is made from the code: `go test . -run ErrorCodes -update`.\n\n" +
		"| code | kind | HTTP | made in | for example |\n|---|---|---|---|---|\n")
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		c := codes[code]
		kinds := slices.Sorted(maps.Keys(c.kinds))
		if len(kinds) > 1 != slices.Contains(severalKinds, code) {
			t.Errorf("the code %s is of the kinds %v; severalKinds says otherwise", code, kinds)
		}
		var http []string
		for _, k := range kinds {
			http = append(http, strconv.Itoa(status.Of(problem.New(problem.Kind(k), code, ""))))
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", code, strings.Join(kinds, ", "), strings.Join(slices.Compact(http), ", "),
			strings.Join(slices.Sorted(maps.Keys(c.packages)), ", "), strings.ReplaceAll(c.message, "|", "\\|"))
	}
	if *update {
		if err := os.WriteFile(errorsPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(errorsPage); err != nil || string(text) != page.String() {
		t.Errorf("%s is not what the code says (%v): go test . -run ErrorCodes -update", errorsPage, err)
	}
}

// TestCodesThatAreKnownAreProduced wants the codes that have a status or words of their own to be made somewhere.
func TestCodesThatAreKnownAreProduced(t *testing.T) {
	t.Parallel()
	codes, seen := collectCodes(t), 0
	for _, f := range files(t) {
		if f.path != "internal/status/status.go" && f.path != "internal/problem/public.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			text, ok := literal(n)
			if !ok || !regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`).MatchString(text) {
				return true
			}
			seen++
			if codes[text] == nil {
				t.Errorf("%s knows the code %s, which nothing makes", f.path, text)
			}
			return true
		})
	}
	if seen < 20 {
		t.Errorf("only %d codes were looked at", seen)
	}
}

func literal(n ast.Node) (string, bool) {
	l, ok := n.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// collectCodes finds what is given to problem.New: as text, as a constant, as the argument of a function that passes it on, or as text with something before it
// ("*_not_found").
func collectCodes(t *testing.T) map[string]*produced {
	t.Helper()
	codes := map[string]*produced{}
	consts, passing := map[string]string{}, map[string][2]int{} // by package and name; a function's places of the kind (-1: see below) and the code
	kinds := map[string]string{}                                // of functions that pass a code on and know its kind
	each := func(visit func(f file, fn *ast.FuncDecl, n ast.Node)) {
		for _, f := range files(t) {
			if f.isTest || f.pkg == "" {
				continue
			}
			for _, d := range f.ast.Decls {
				fn, _ := d.(*ast.FuncDecl)
				ast.Inspect(d, func(n ast.Node) bool { visit(f, fn, n); return true })
			}
		}
	}
	add := func(f file, kind, code, message string) {
		if code == "" {
			return // it passes on what another made
		}
		c := codes[code]
		if c == nil {
			c = &produced{kinds: map[string]bool{}, packages: map[string]bool{}}
			codes[code] = c
		}
		c.kinds[kind], c.packages[f.pkg], c.message = true, true, cmp.Or(c.message, strings.Trim(message, ". "))
	}
	each(func(f file, _ *ast.FuncDecl, n ast.Node) {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
			for i, name := range v.Names {
				if text, ok := literal(v.Values[i]); ok {
					consts[f.pkg+" "+name.Name] = text
				}
			}
		}
	})
	each(func(f file, fn *ast.FuncDecl, n ast.Node) {
		call, ok := newProblem(f, n)
		if !ok {
			return
		}
		kind, message := kindOf(call.Args[0]), sentence(call.Args[2])
		switch code := call.Args[1].(type) {
		case *ast.BasicLit:
			text, _ := literal(code)
			add(f, kind, text, message)
		case *ast.BinaryExpr:
			if text, ok := literal(code.Y); ok {
				add(f, kind, "*"+text, message)
			} else if text, ok := literal(code.X); ok {
				add(f, kind, text+"*", message)
			}
		case *ast.Ident:
			if text, ok := consts[f.pkg+" "+code.Name]; ok {
				add(f, kind, text, message)
			} else if at := parameter(fn, code.Name); at >= 0 {
				passing[f.pkg+" "+fn.Name.Name], kinds[f.pkg+" "+fn.Name.Name] = [2]int{parameter(fn, name(call.Args[0])), at}, kind
			}
		}
	})
	each(func(f file, _ *ast.FuncDecl, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		at, ok := passing[f.pkg+" "+name(call.Fun)]
		if !ok || at[1] >= len(call.Args) {
			return
		}
		kind := kinds[f.pkg+" "+name(call.Fun)]
		if at[0] >= 0 {
			kind = kindOf(call.Args[at[0]])
		}
		if text, ok := literal(call.Args[at[1]]); ok {
			message := ""
			if at[1]+1 < len(call.Args) {
				message = sentence(call.Args[at[1]+1])
			}
			add(f, kind, text, message)
		}
	})
	return codes
}

// newProblem says whether n calls problem.New.
func newProblem(f file, n ast.Node) (*ast.CallExpr, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 3 || name(call.Fun) != "New" {
		return nil, false
	}
	s, qualified := call.Fun.(*ast.SelectorExpr)
	return call, qualified && name(s.X) == "problem" || !qualified && f.pkg == "problem"
}

// sentence is a message as far as it stands in the code: what is put in is "...".
func sentence(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := literal(e)
		return text
	case *ast.BinaryExpr:
		return sentence(e.X) + sentence(e.Y)
	case *ast.CallExpr:
		if name(e.Fun) == "Sprintf" {
			return regexp.MustCompile(`%[-+#.0-9]*[a-z]`).ReplaceAllString(sentence(e.Args[0]), "...")
		}
	}
	return "..."
}

// kindOf is the kind that an argument names: problem.NotFound is not_found.
func kindOf(e ast.Expr) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name(e), "${1}_$2"))
}

// name is the last word of an identifier or a selector.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// parameter is the place of a function's parameter, or -1.
func parameter(fn *ast.FuncDecl, want string) int {
	if fn == nil || want == "" {
		return -1
	}
	at := 0
	for _, field := range fn.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == want {
				return at
			}
			at++
		}
	}
	return -1
}
