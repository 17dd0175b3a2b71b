package cove_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// mostForms is how many forms of one text are told apart; of more, the parts are texts of their own.
const mostForms = 8

// deepest is how many functions a text is followed through.
const deepest = 4

const unknown = "%s"

// say adds all forms of a text.
func (s *sayer) say(area string, e ast.Expr, at place) {
	if e == nil {
		return
	}
	for _, form := range s.forms(e, at, area, 0) {
		s.add(form, area, at)
	}
}

// format adds a format that the program looks up.
func (s *sayer) format(area string, e ast.Expr, at place) {
	if e == nil {
		return
	}
	for _, form := range s.literals(e, at) {
		s.add(form, area, at)
	}
}

// literals are the literal values that an expression can have: that of a literal or a constant.
func (s *sayer) literals(e ast.Expr, at place) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, ok := literal(e); ok {
			return []string{text}
		}
	case *ast.BinaryExpr:
		left, right := s.literals(e.X, at), s.literals(e.Y, at)
		if len(left) == 1 && len(right) == 1 {
			return []string{left[0] + right[0]}
		}
	case *ast.Ident:
		if v := s.values[at.file.pkg+"."+e.Name]; v != nil {
			return s.literals(v, at)
		}
	}
	return nil
}

// forms are the texts that an expression can be, as formats. area is where parts go that are texts of their own.
func (s *sayer) forms(e ast.Expr, at place, area string, deep int) []string {
	if deep > deepest {
		return []string{unknown}
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, ok := literal(e); ok {
			return []string{escaped(text)}
		}
	case *ast.ParenExpr:
		return s.forms(e.X, at, area, deep)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return s.joined(e, at, area, deep)
		}
	case *ast.CallExpr:
		return s.called(e, at, area, deep)
	case *ast.IndexExpr:
		return s.indexed(e, at, area, deep)
	case *ast.Ident:
		return s.named(e, at, area, deep)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && s.byLast[x.Name] != "" {
			if v, ok := s.values[s.byLast[x.Name]+"."+e.Sel.Name].(*ast.BasicLit); ok {
				return s.forms(v, at, area, deep+1)
			}
		}
	}
	return []string{unknown}
}

// joined are the forms of a text that is put together. What has many forms, or comes out of a function, is a text of its own.
func (s *sayer) joined(e *ast.BinaryExpr, at place, area string, deep int) []string {
	side := func(x ast.Expr) []string {
		forms := s.forms(x, at, area, deep)
		_, call := x.(*ast.CallExpr)
		if format, ok := s.sprintf(x, at); ok && format {
			call = false
		}
		if len(forms) > 4 || len(forms) > 1 && slices.Contains(forms, unknown) || call && !slices.Equal(forms, []string{unknown}) {
			for _, f := range forms {
				s.phrase(f, area, at)
			}
			return []string{unknown}
		}
		return forms
	}
	left, right := side(e.X), side(e.Y)
	var out []string
	for _, l := range left {
		for _, r := range right {
			if strings.HasSuffix(l, unknown) && strings.HasPrefix(r, unknown) {
				r = strings.TrimPrefix(r, unknown)
			}
			if len(out) < mostForms && !slices.Contains(out, l+r) {
				out = append(out, l+r)
			}
		}
	}
	return out
}

// phrase adds a text that is part of others, if it has several words.
func (s *sayer) phrase(text, area string, at place) {
	if text = strings.TrimSpace(text); strings.Contains(text, " ") && !strings.HasPrefix(text, "cove ") { // no command
		s.add(text, area, at)
	}
}

func (s *sayer) sprintf(e ast.Expr, at place) (is, ok bool) {
	call, ok := e.(*ast.CallExpr)
	return ok && s.callee(call, at.file) == "fmt.Sprintf()", ok
}

// transparent are functions whose result is the text that they are given, or one of those.
var transparent = []string{"oneLine", "TrimSpace", "TrimRight", "TrimSuffix", "TrimPrefix", "Or", "printable", "Printable", "firstLine"}

// called are the texts that a call returns.
func (s *sayer) called(call *ast.CallExpr, at place, area string, deep int) []string {
	fn := s.callee(call, at.file)
	if fn == "lang.Help" { // a whole text, which helpTexts has
		return []string{unknown}
	}
	if fn == "fmt.Sprintf()" {
		s.arguments(call.Args[1:], at)
		if format := s.literals(call.Args[0], at); len(format) > 0 {
			return format
		}
		return []string{unknown}
	}
	if list, ok := call.Args[0:min(1, len(call.Args))], fn == "strings.Join()" && at.in != nil; ok {
		s.listed(list[0], at, area)
		return []string{unknown}
	}
	if _, short, _ := strings.Cut(strings.TrimSuffix(fn, "()"), "."); slices.Contains(transparent, short) && len(call.Args) > 0 {
		var out []string
		for i, a := range call.Args {
			if i > 0 && short != "Or" {
				break
			}
			out = append(out, s.forms(a, at, area, deep+1)...)
		}
		return out
	}
	var out []string
	for _, f := range s.funcs[fn] {
		for _, r := range results(f.node.(*ast.FuncDecl)) {
			for _, form := range s.forms(r, place{r, f.in, f.file}, areaOf(f.file.pkg), deep+1) {
				if form != unknown && !slices.Contains(out, form) {
					out = append(out, form)
				}
			}
		}
	}
	if len(out) == 0 {
		return []string{unknown}
	}
	return out
}

// listed adds the texts of a list that are joined: those that stand in it, and those that the function appends to it.
func (s *sayer) listed(list ast.Expr, at place, area string) {
	if lit, ok := list.(*ast.CompositeLit); ok {
		for _, e := range lit.Elts {
			for _, form := range s.forms(e, at, area, 1) {
				s.phrase(form, area, at)
			}
		}
		return
	}
	if call, ok := list.(*ast.CallExpr); ok && name(call.Fun) == "append" {
		s.listed(&ast.CompositeLit{Elts: call.Args[1:]}, at, area)
		list = call.Args[0]
	}
	variable := name(list)
	ast.Inspect(at.in, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || name(a.Lhs[0]) != variable || variable == "" || s.visited[a] {
			return true
		}
		s.visited[a] = true
		values := a.Rhs
		if call, ok := a.Rhs[0].(*ast.CallExpr); ok && name(call.Fun) == "append" {
			values = call.Args[1:]
		}
		for _, v := range values {
			if lit, ok := v.(*ast.CompositeLit); ok {
				s.listed(lit, at, area)
				continue
			}
			for _, form := range s.forms(v, at, area, 1) {
				s.phrase(form, area, at)
			}
		}
		return true
	})
}

// results are what a function returns first, where that is a text.
func results(f *ast.FuncDecl) (out []ast.Expr) {
	if f.Body == nil || f.Type.Results == nil || name(f.Type.Results.List[0].Type) != "string" {
		return nil
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
			return false
		}
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			out = append(out, r.Results[0])
		}
		return true
	})
	return out
}

// arguments adds the texts among what a format shows: they are translated by themselves.
func (s *sayer) arguments(args []ast.Expr, at place) {
	for _, a := range args {
		for _, form := range s.forms(a, at, areaOf(at.file.pkg), 1) {
			s.phrase(form, areaOf(at.file.pkg), at)
		}
	}
}

// indexed are the values of a list or table that stands where it is used, or that the package has.
func (s *sayer) indexed(e *ast.IndexExpr, at place, area string, deep int) []string {
	list, ok := e.X.(*ast.CompositeLit)
	if id, named := e.X.(*ast.Ident); named {
		list, ok = s.values[at.file.pkg+"."+id.Name].(*ast.CompositeLit)
	}
	if !ok {
		return []string{unknown}
	}
	var out []string
	for _, el := range list.Elts {
		if kv, keyed := el.(*ast.KeyValueExpr); keyed {
			el = kv.Value
		}
		out = append(out, s.forms(el, at, area, deep+1)...)
	}
	return out
}

// named are the texts that a name can stand for: a constant, what is put into a variable of the function, what its callers give for a parameter.
func (s *sayer) named(id *ast.Ident, at place, area string, deep int) []string {
	if at.in != nil {
		if values := assigned(at.in, id.Name); len(values) > 0 {
			var out []string
			for _, v := range values {
				if mentions(v, id.Name) {
					continue
				}
				for _, form := range s.forms(v, at, area, deep+1) {
					if !slices.Contains(out, form) {
						out = append(out, form)
					}
				}
			}
			s.appended(at, id.Name, area)
			if len(out) > 0 {
				return out
			}
		}
		if i := parameter(at.in, id.Name); i >= 0 {
			return s.given(i, at, deep)
		}
	}
	if v := s.values[at.file.pkg+"."+id.Name]; v != nil {
		return s.forms(v, at, area, deep+1)
	}
	return []string{unknown}
}

// given are the texts that the callers of a function give for a parameter.
func (s *sayer) given(i int, at place, deep int) []string {
	if s.expand[at.in] > 0 {
		return []string{unknown}
	}
	s.expand[at.in]++
	defer func() { s.expand[at.in]-- }()
	var out []string
	for _, c := range s.calls[callersOf(at.file.pkg)+"."+at.in.Name.Name] {
		call := c.node.(*ast.CallExpr)
		if i >= len(call.Args) {
			continue
		}
		for _, form := range s.forms(call.Args[i], c, areaOf(c.file.pkg), deep+1) {
			if !slices.Contains(out, form) {
				out = append(out, form)
			}
		}
	}
	if len(out) == 0 {
		return []string{unknown}
	}
	return out
}

// appended adds what is put after a variable's text, which is a part of a message by itself.
func (s *sayer) appended(at place, variable, area string) {
	ast.Inspect(at.in, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if ok && a.Tok == token.ADD_ASSIGN && name(a.Lhs[0]) == variable && !s.visited[a] {
			s.visited[a] = true
			for _, form := range s.forms(a.Rhs[0], at, area, 1) {
				s.phrase(strings.TrimLeft(form, ";,.: "), area, at)
			}
		}
		return true
	})
}

// assigned are what is put into a variable of a function.
func assigned(f *ast.FuncDecl, variable string) (out []ast.Expr) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if id, ok := l.(*ast.Ident); ok && id.Name == variable && n.Tok != token.ADD_ASSIGN && len(n.Lhs) == len(n.Rhs) {
					out = append(out, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if id.Name == variable && i < len(n.Values) {
					out = append(out, n.Values[i])
				}
			}
		}
		return true
	})
	return out
}

func mentions(e ast.Expr, variable string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == variable
		return !found
	})
	return found
}

// parameter is the number of a function's parameter, -1 where it has none of that name.
func parameter(f *ast.FuncDecl, variable string) int {
	i := 0
	for _, field := range f.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == variable {
				return i
			}
			i++
		}
	}
	return -1
}
