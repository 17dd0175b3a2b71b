package cove_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sayer finds what the program says to people: texts and formats, as far as its source shows them. What it cannot tell is %s.
type sayer struct {
	funcs   map[string][]place    // by package and name, methods too
	calls   map[string][]place    // calls of functions, by the package and the name of these
	values  map[string]ast.Expr   // constants and variables of packages, by package and name
	found   map[string]said       // by text
	visited map[ast.Node]bool     // functions whose results were looked at
	byLast  map[string]string     // packages by that
	expand  map[*ast.FuncDecl]int // functions whose callers are being looked at
}

// said is a text and where it is.
type said struct {
	area, pkg, file string
	pos             token.Pos
}

// place is a node in a function of a file.
type place struct {
	node ast.Node
	in   *ast.FuncDecl
	file file
}

// silent are packages of the program whose texts do not reach people at the command line: programs of other protocols read them.
func silent(pkg string) bool {
	return strings.HasPrefix(pkg, "compat/") || pkg == "webpage" || pkg == ""
}

// areaOf is the file of the catalogue for the problems of a package.
func areaOf(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	switch first {
	case "cli":
		return "cli"
	case "hub", "api", "front", "auth", "oauth", "store", "client", "ports", "builder", "protocol", "stream", "bodybudget", "ownership", "transcript", "notebook", "sse", "byterange", "audit", "telemetry", "httpstatus":
		return "server"
	case "model", "loop", "eval", "advice", "tool", "toolserver", "screen":
		return "models"
	case "deps", "pyenv", "pyindex", "libdata", "replaced", "installation":
		return "packages"
	}
	return "sandboxes"
}

// sayings returns all that the program says, with the files of the catalogue that it belongs into.
func sayings(t *testing.T) map[string]said {
	t.Helper()
	s := &sayer{funcs: map[string][]place{}, calls: map[string][]place{}, values: map[string]ast.Expr{}, found: map[string]said{}, visited: map[ast.Node]bool{},
		byLast: map[string]string{}, expand: map[*ast.FuncDecl]int{}}
	linked := closure(t, "cove/cmd/cove")
	var all []file
	for _, f := range files(t) {
		if !f.isTest && linked["cove/"+path.Dir(f.path)] && !silent(f.pkg) {
			all = append(all, f)
			s.byLast[path.Base(f.pkg)] = f.pkg
		}
	}
	for _, f := range all {
		s.index(f)
	}
	for _, f := range all {
		s.collect(f)
	}
	for _, p := range slices.Concat(s.funcs["kernel.String"], s.funcs["named.String"]) { // of a rollback; of points, holders and changes of sessions
		for _, r := range results(p.in) {
			s.say(areaOf(p.file.pkg), r, place{r, p.in, p.file})
		}
	}
	for text := range foreign {
		s.found[text] = said{area: "system"}
	}
	return s.found
}

// index notes the functions, calls and values of a file.
func (s *sayer) index(f file) {
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			key := callersOf(f.pkg) + "." + d.Name.Name
			s.funcs[key] = append(s.funcs[key], place{d, d, f})
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for i, n := range v.Names {
						if i < len(v.Values) {
							s.values[f.pkg+"."+n.Name] = v.Values[i]
						}
					}
				}
			}
		}
	}
	within(f, func(n ast.Node, in *ast.FuncDecl) {
		if call, ok := n.(*ast.CallExpr); ok {
			if key := s.callee(call, f); key != "" {
				s.calls[key] = append(s.calls[key], place{call, in, f})
			}
		}
	})
}

// within visits the nodes of a file with the functions that they are in.
func within(f file, visit func(n ast.Node, in *ast.FuncDecl)) {
	for _, d := range f.ast.Decls {
		in, _ := d.(*ast.FuncDecl)
		ast.Inspect(d, func(n ast.Node) bool {
			if n != nil {
				visit(n, in)
			}
			return true
		})
	}
}

// callersOf returns the package under whose name the functions of a package are called: the hub embeds what the packages below it have.
func callersOf(pkg string) string {
	if strings.HasPrefix(pkg, "hub/") {
		return "hub"
	}
	return pkg
}

// callee is the package and the name of the function that is called; a method counts as one of the package that calls it.
func (s *sayer) callee(call *ast.CallExpr, f file) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return callersOf(f.pkg) + "." + fn.Name
	case *ast.SelectorExpr:
		if x, ok := fn.X.(*ast.Ident); ok {
			for full := range imports(f) {
				if own, ours := inRoom(full), inRoom(full) != ""; path.Base(full) == x.Name {
					if ours {
						return callersOf(own) + "." + fn.Sel.Name
					}
					return x.Name + "." + fn.Sel.Name + "()" // of no package of ours
				}
			}
		}
		return callersOf(f.pkg) + "." + fn.Sel.Name
	}
	return ""
}

// collect adds what a file says.
func (s *sayer) collect(f file) {
	within(f, func(n ast.Node, in *ast.FuncDecl) {
		at := place{n, in, f}
		switch n := n.(type) {
		case *ast.CallExpr:
			s.collectCall(n, at)
		case *ast.CompositeLit:
			if list, ok := n.Type.(*ast.ArrayType); ok && f.pkg == "cli" && name(list.Elt) == "string" && len(n.Elts) == 2 && list.Len != nil {
				s.label(n.Elts[0], at)
				s.say("cli", n.Elts[1], at)
			}
			if list, ok := n.Type.(*ast.ArrayType); ok && f.pkg == "cli" && in != nil && isPair(list.Elt) { // rows of labels and what stands beside them
				for _, row := range n.Elts {
					s.label(row.(*ast.CompositeLit).Elts[0], at)
				}
			}
			if name(n.Type) == "Notice" && len(n.Elts) == 1 { // of a turn
				s.say(areaOf(f.pkg), n.Elts[0], at)
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && speaking(name(n.Type), name(kv.Key)) {
					if name(n.Type) == "check" {
						s.label(kv.Value, at)
					}
					s.say(areaOf(f.pkg), kv.Value, at)
				}
			}
		case *ast.ValueSpec:
			if f.pkg == "cli" && name(n.Type) == "status" { // of the doctor
				s.label(n.Values[0], at)
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				sel, ok := l.(*ast.SelectorExpr)
				if !ok || !speaking(f.pkg, sel.Sel.Name) {
					continue
				}
				if len(n.Rhs) != len(n.Lhs) {
					continue
				}
				if call, ok := n.Rhs[i].(*ast.CallExpr); ok && name(call.Fun) == "append" {
					for _, a := range call.Args[1:] {
						s.say(areaOf(f.pkg), a, at)
					}
					continue
				}
				s.say(areaOf(f.pkg), n.Rhs[i], at)
			}
		}
	})
}

// isPair says that a type is [2]string.
func isPair(e ast.Expr) bool {
	list, ok := e.(*ast.ArrayType)
	return ok && list.Len != nil && name(list.Elt) == "string"
}

// speaking says whether a field of a type (or, where something is put into it later, of a package) is shown to people.
func speaking(of, field string) bool {
	switch of {
	case "check":
		return field == "Detail" || field == "Fix" || field == "Name"
	case "cli":
		return slices.Contains([]string{"Detail", "Fix", "installed", "notes", "troubles"}, field)
	case "Done", "kernel", "session": // how an execution ended
		return field == "Message"
	case "Choice", "model/choose":
		return field == "Because"
	case "app":
		return field == "NoModel"
	case "Notice":
		return field == "Text"
	case "Refusal": // of packages
		return field == "Reason" || field == "Hint"
	case "Answer", "deps/names": // what the name of a module means
		return field == "Explanation" || field == "Hint"
	case "deps":
		return field == "Reason" || field == "Hint" || field == "Notes"
	case "Finding": // of cove's own checks
		return field == "Message"
	}
	return false
}

// collectCall adds what a call shows to people.
func (s *sayer) collectCall(call *ast.CallExpr, at place) {
	arg := func(i int) ast.Expr {
		if i < len(call.Args) {
			return call.Args[i]
		}
		return nil
	}
	area := areaOf(at.file.pkg)
	switch fn := s.callee(call, at.file); {
	case fn == "problem.New":
		s.say(area, arg(1), at)
	case strings.HasSuffix(fn, ".WithHint"), strings.HasSuffix(fn, ".Reworded"):
		s.say(area, arg(0), at)
	case fn == "lang.Sprintf":
		s.format("terminal", arg(0), at)
		s.arguments(call.Args[1:], at)
	case fn == "lang.Fprintf", fn == "cli.notef":
		s.format("terminal", arg(1), at)
		s.arguments(call.Args[2:], at)
	case fn == "lang.Text", fn == "lang.Phrase":
		s.say(area, arg(0), at)
	case fn == "lang.Help":
		if text, ok := literal(arg(0)); ok {
			s.addHelp(text, at)
		}
	case fn == "cli.note" && len(call.Args) == 1:
		s.say(area, arg(0), at)
	case fn == "cli.count":
		if noun, ok := literal(arg(1)); ok {
			s.add("%d "+noun, "cli", at)
			s.add("%d "+noun+"s", "cli", at)
		}
	case fn == "cli.table", fn == "cli.translated":
		for _, e := range call.Args {
			s.heads(e, at)
		}
	case fn == "cli.fromError":
		s.label(arg(0), at)
	case fn == "cli.head":
		s.heads(&ast.CompositeLit{Elts: call.Args}, at)
	case fn == "cli.add" && len(call.Args) == 2, fn == "cli.row" && len(call.Args) == 2: // a label and what stands beside it
		s.label(arg(0), at)
		s.say(area, arg(1), at)
	case strings.HasPrefix(fn, "fmt.Fprint") && strings.HasSuffix(strings.ToLower(name(arg(0))), "progress"):
		s.progress(fn, call, at)
	case fn == "pyenv.say":
		s.format(area, arg(0), at)
	}
}

// progress adds what is said to a writer of that name, one line for each call.
func (s *sayer) progress(fn string, call *ast.CallExpr, at place) {
	if strings.HasPrefix(fn, "fmt.Fprintf") {
		s.format(areaOf(at.file.pkg), call.Args[1], at)
		return
	}
	for _, e := range call.Args[1:] {
		s.say(areaOf(at.file.pkg), e, at)
	}
}

// label adds a word that stands before something.
func (s *sayer) label(e ast.Expr, at place) {
	if text, ok := literal(e); ok {
		s.add(escaped(text), areaOf(at.file.pkg), at)
	}
}

// heads adds the titles of a table's columns.
func (s *sayer) heads(e ast.Expr, at place) {
	if list, ok := e.(*ast.CompositeLit); ok {
		for _, head := range list.Elts {
			if text, ok := literal(head); ok {
				s.add(escaped(strings.TrimSpace(text)), "terminal", at)
			}
		}
	}
}

// verbs are those of formats, as far as they are not words.
var verbs = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)

// aWord is what a text has that can be translated: units such as kB are the same everywhere.
var aWord = regexp.MustCompile(`[A-Za-z]{3}|^(ID|uv|ok|no)$|^ in $`)

// add notes a text of an area, unless it has no words.
func (s *sayer) add(text, area string, at place) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "cove:"))
	if !aWord.MatchString(verbs.ReplaceAllString(text, "")) {
		return
	}
	if before, ok := s.found[text]; ok && slices.Index(areas, before.area) <= slices.Index(areas, area) {
		return
	}
	s.found[text] = said{area: area, pkg: at.file.pkg, file: at.file.path, pos: at.node.Pos()}
}

// areas are the files of the catalogue. A text that is said in several is in the first of them.
var areas = []string{"help", "system", "cli", "terminal", "sandboxes", "packages", "models", "server"}

func escaped(text string) string { return strings.ReplaceAll(text, "%", "%%") }
