package cove_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

var update = flag.Bool("update", false, "write docs/errors.md")

const errorsPage = "docs/errors.md"

// code is a constant of the package problem.
type code struct {
	text, kind string
	meaning    string // the comment
	made       map[string]bool
}

// TestErrorCodes wants each code of a problem to be given once, explained, and made somewhere, and docs/errors.md to list them all
// (go test . -run ErrorCodes -update writes the page).
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	codes := codesOf(t)
	if len(codes) < 250 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	findMakers(t, codes)
	byText := map[string]*code{}
	for name, c := range codes {
		if byText[c.text] != nil {
			t.Errorf("the code %s has two constants", c.text)
		}
		if len(c.made) == 0 {
			t.Errorf("nothing makes the code %s (problem.%s): remove it", c.text, name)
		}
		if !strings.HasSuffix(c.meaning, ".") || len(c.meaning) < 20 {
			t.Errorf("problem.%s has no comment that says what happened and what to do, but %q", name, c.meaning)
		}
		if s := httpstatus.Of(problem.Received(problem.Kind(c.kind), c.text, "")); !fits(c.text, s) {
			t.Errorf("the code %s has the status %d", c.text, s)
		}
		byText[c.text] = c
	}
	page := pageOf(byText)
	if *update {
		if err := os.WriteFile(errorsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(errorsPage); err != nil || string(text) != page {
		t.Errorf("%s is not what the code says (%v): go test . -run ErrorCodes -update", errorsPage, err)
	}
}

// fits says whether a status is that of other codes of such a name.
func fits(code string, status int) bool {
	switch {
	case strings.HasSuffix(code, "_exists"), strings.HasSuffix(code, "_running"):
		return status == 409
	case strings.HasSuffix(code, "_too_large"):
		return status == 413 || status == 422
	}
	return true
}

func pageOf(codes map[string]*code) string {
	var page strings.Builder
	page.WriteString("# Errors\n\nEvery error of cove has a code, which stays, and a kind, which says who has to act. This page is made from the code: `go test . -run ErrorCodes -update`.\n\n" +
		"| code | kind | HTTP | what happened, and what to do | made in |\n|---|---|---|---|---|\n")
	for _, text := range slices.Sorted(maps.Keys(codes)) {
		c := codes[text]
		fmt.Fprintf(&page, "| `%s` | %s | %d | %s | %s |\n", text, c.kind, httpstatus.Of(problem.Received(problem.Kind(c.kind), text, "")), strings.ReplaceAll(c.meaning, "|", "\\|"),
			strings.Join(slices.Sorted(maps.Keys(c.made)), ", "))
	}
	return page.String()
}

// codesOf reads the constants of the package problem, by name.
func codesOf(t *testing.T) map[string]*code {
	t.Helper()
	kinds, codes := map[string]string{}, map[string]*code{} // the kinds by the name of their constant
	each := func(visit func(spec *ast.ValueSpec)) {
		for _, f := range files(t) {
			if f.pkg == "problem" && !f.isTest {
				ast.Inspect(f.ast, func(n ast.Node) bool {
					if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
						visit(spec)
					}
					return true
				})
			}
		}
	}
	each(func(spec *ast.ValueSpec) {
		if text, ok := literal(spec.Values[0]); ok && name(spec.Type) == "Kind" {
			kinds[spec.Names[0].Name] = text
		}
	})
	each(func(spec *ast.ValueSpec) {
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return
		}
		kind := kinds[strings.TrimSuffix(name(call.Fun), "Code")]
		if text, ok := literal(call.Args[0]); ok && kind != "" {
			codes[spec.Names[0].Name] = &code{text: text, kind: kind, meaning: strings.Join(strings.Fields(spec.Doc.Text()), " "), made: map[string]bool{}}
		}
	})
	return codes
}

// findMakers notes which packages make problems with a code: they name it other than to compare with it or to announce it. The fakes of tests
// do not count.
func findMakers(t *testing.T, codes map[string]*code) {
	t.Helper()
	for _, f := range files(t) {
		if f.isTest || f.pkg == "" || f.pkg == "problem" || f.pkg == "httpstatus" || strings.HasSuffix(f.pkg, "test") {
			continue
		}
		apart := map[ast.Node]bool{}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if apart[n] {
				return false
			}
			for _, part := range compared(n) {
				apart[part] = true
			}
			if s, ok := n.(*ast.SelectorExpr); ok && name(s.X) == "problem" && codes[s.Sel.Name] != nil {
				codes[s.Sel.Name].made[f.pkg] = true
			}
			return true
		})
	}
}

// compared returns the parts of n in which a code is named that another place makes.
func compared(n ast.Node) (parts []ast.Node) {
	add := func(list []ast.Expr) {
		for _, e := range list {
			parts = append(parts, e)
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && name(s.X) == "problem" && s.Sel.Name == "Has" {
			add(n.Args[1:])
		}
	case *ast.CaseClause:
		for _, e := range n.List {
			if call, ok := e.(*ast.CallExpr); ok && name(call.Fun) == "string" { // a code as text; other cases may make a problem
				parts = append(parts, e)
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			parts = append(parts, n.X, n.Y)
		}
	case *ast.CompositeLit:
		if list, ok := n.Type.(*ast.ArrayType); ok && name(list.Elt) == "Code" {
			add(n.Elts)
		}
	}
	return parts
}

// TestCodesAreConstants wants code to name the codes of problems by their constants: a code as text would not be found, and could be one that nothing makes.
func TestCodesAreConstants(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range codesOf(t) {
		known[c.text] = true
	}
	for _, f := range files(t) {
		if f.isTest || f.pkg == "" || f.pkg == "problem" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, found := range codesAsText(n, known) {
				t.Errorf("%s: a code as text: use a constant of the package problem", f.set.Position(found.Pos()))
			}
			return true
		})
	}
}

// codesAsText returns what is wrong in n: a comparison with a code's text, a received problem with a code that stands in the program, a code that is made of text.
func codesAsText(n ast.Node, known map[string]bool) (found []ast.Node) {
	isCode := func(e ast.Expr) bool {
		text, ok := literal(e)
		return ok && known[text]
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && (name(n.X) == "Code" && isCode(n.Y) || name(n.Y) == "Code" && isCode(n.X)) {
			found = append(found, n)
		}
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			if name(n.Tag) == "Code" && slices.ContainsFunc(clause.(*ast.CaseClause).List, isCode) {
				found = append(found, clause)
			}
		}
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || name(s.X) != "problem" {
			return nil
		}
		if strings.HasSuffix(s.Sel.Name, "Code") {
			found = append(found, n)
		}
		if _, text := literal(n.Args[min(1, len(n.Args)-1)]); s.Sel.Name == "Received" && text {
			found = append(found, n)
		}
	}
	return found
}

func literal(n ast.Node) (string, bool) {
	l, ok := n.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
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
