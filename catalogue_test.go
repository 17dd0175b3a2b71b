package cove_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cove/internal/core/config"
	"cove/internal/core/lang"
)

const catalogue = "internal/core/lang/zh/"

// TestCatalogueIsComplete wants the catalogue to have all that the program says to people, translated, and nothing else
// (go test . -run Catalogue -update writes what is missing into its files, with an empty translation, and takes out what nothing says any more).
func TestCatalogueIsComplete(t *testing.T) {
	t.Parallel()
	want := sayings(t)
	helpTexts(t, want)
	if len(want) < 1500 {
		t.Fatalf("only %d texts were found", len(want))
	}
	has := catalogueEntries(t)
	if *update {
		writeCatalogue(t, want, has)
		has = catalogueEntries(t)
	}
	missing := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if has[id].Text != "" {
			continue
		}
		w := want[id]
		if missing[w.area]++; missing[w.area] <= 10 {
			t.Errorf("%s: %s%s.po does not have %q", w.file, catalogue, w.area, id)
		}
	}
	for area, n := range missing {
		t.Errorf("%s%s.po lacks %d translations: go test . -run Catalogue -update", catalogue, area, n)
	}
	for id := range has {
		if _, used := want[id]; !used {
			t.Errorf("nothing says %q: go test . -run Catalogue -update", id)
		}
	}
}

// catalogueEntries are those of all files, by text.
func catalogueEntries(t *testing.T) map[string]lang.Entry {
	t.Helper()
	all := map[string]lang.Entry{}
	for _, area := range areas {
		text, err := os.ReadFile(catalogue + area + ".po")
		if os.IsNotExist(err) && *update {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		entries, err := lang.ParsePO(string(text))
		if err != nil {
			t.Fatalf("%s.po: %v", area, err)
		}
		for _, e := range entries {
			if _, twice := all[e.ID]; twice {
				t.Errorf("%s.po:%d: %q is in the catalogue twice", area, e.Line, e.ID)
			}
			all[e.ID] = e
		}
	}
	return all
}

// TestCatalogueKeepsVerbs wants a translation to show what the text shows. Where the order differs, it names the arguments: %[2]s.
func TestCatalogueKeepsVerbs(t *testing.T) {
	t.Parallel()
	for id, e := range catalogueEntries(t) {
		if e.Text == "" {
			continue
		}
		if from, to := shown(id), shown(e.Text); !slices.Equal(from, to) {
			t.Errorf("%q shows %v, and its translation %q %v", id, from, e.Text, to)
		}
	}
}

// shown are the arguments that a format shows, each with how.
func shown(format string) (out []string) {
	for _, v := range lang.ParseFormat(format).Verbs {
		how := v.Text
		if at, end := strings.IndexByte(how, '['), strings.IndexByte(how, ']'); at >= 0 && end > at {
			how = how[:at] + how[end+1:]
		}
		out = append(out, fmt.Sprintf("%d %s", v.Arg, how))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const poHeader = `# What cove says in simplified Chinese. The terms: README.md. What is missing: go test . -run Catalogue
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: zh_CN\n"
`

// writeCatalogue writes the files of the catalogue: what the program says, in the order of its source, with the translations there are.
func writeCatalogue(t *testing.T, want map[string]said, has map[string]lang.Entry) {
	t.Helper()
	for _, area := range areas {
		var ids []string
		for id, w := range want {
			if w.area == area {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, func(a, b string) int {
			x, y := want[a], want[b]
			return cmp.Or(cmp.Compare(x.pkg, y.pkg), cmp.Compare(x.file, y.file), cmp.Compare(x.pos, y.pos), cmp.Compare(a, b))
		})
		var b strings.Builder
		b.WriteString(poHeader)
		pkg := ""
		for _, id := range ids {
			if p := want[id].pkg; p != pkg {
				pkg = p
				fmt.Fprintf(&b, "\n# package %s\n", pkg)
			}
			fmt.Fprintf(&b, "\nmsgid %s\nmsgstr %s\n", poText(id), poText(has[id].Text))
		}
		if err := os.WriteFile(filepath.FromSlash(catalogue+area+".po"), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// poText is a text as a file of a catalogue has it: one quoted line for each of its lines.
func poText(text string) string {
	quote := func(line string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(line) + `"`
	}
	lines := slices.Collect(strings.Lines(text))
	if len(lines) <= 1 {
		return quote(text)
	}
	out := `""`
	for _, l := range lines {
		out += "\n" + quote(l)
	}
	return out
}

// helpTexts adds what the help of the commands says: texts of flags, arguments and commands, and paragraphs of long helps. Package cli has a test that its commands
// have no others.
func helpTexts(t *testing.T, into map[string]said) {
	t.Helper()
	s := &sayer{found: map[string]said{}}
	for _, f := range files(t) {
		if f.pkg != "cli" || f.isTest {
			continue
		}
		within(f, func(n ast.Node, in *ast.FuncDecl) {
			at := place{n, in, f}
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag != nil {
					tag, _ := strconv.Unquote(n.Tag.Value)
					s.addHelp(reflect.StructTag(tag).Get("help"), at)
				}
			case *ast.ReturnStmt:
				if in != nil && in.Name.Name == "Help" && in.Recv != nil && len(n.Results) == 1 {
					for _, text := range helpLiterals(n.Results[0]) {
						for _, p := range helpParagraphs(text) {
							s.addHelp(p, at)
						}
					}
				}
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.SelectorExpr); ok && name(fn.X) == "kong" && fn.Sel.Name == "Description" {
					text, _ := literal(n.Args[0])
					s.addHelp(text, at)
				}
			case *ast.ValueSpec:
				if name := n.Names[0].Name; name == "sections" || name == "chatHelp" {
					for _, one := range n.Values[0].(*ast.CompositeLit).Elts {
						text, _ := literal(one.(*ast.CompositeLit).Elts[1])
						s.addHelp(text, at)
					}
				}
			}
		})
		s.addHelp("Show context-sensitive help.", place{f.ast, nil, f}) // kong's own flag
	}
	s.settingTexts(t)
	maps.Copy(into, s.found)
}

// settingTexts adds what a config file says of the settings.
func (s *sayer) settingTexts(t *testing.T) {
	t.Helper()
	text, err := config.Template(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	for n, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "# variable: ") {
			s.found[strings.TrimPrefix(before, "# ")] = said{area: "help", pkg: "config", file: "internal/core/config/groups.go", pos: token.Pos(n)}
		}
		before = line
	}
}

// addHelp adds a text of the help as it is: it is no format.
func (s *sayer) addHelp(text string, at place) {
	if text != "" {
		s.found[text] = said{area: "help", pkg: at.file.pkg, file: at.file.path, pos: at.node.Pos()}
	}
}

// helpLiterals is the text that an expression is put together of.
func helpLiterals(e ast.Expr) []string {
	text := ""
	whole := true
	var add func(e ast.Expr)
	add = func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.BasicLit:
			l, _ := literal(e)
			text += l
		case *ast.BinaryExpr:
			add(e.X)
			add(e.Y)
		default:
			whole = false
		}
	}
	if add(e); !whole {
		return nil
	}
	return []string{text}
}

// helpParagraphs are those of a long help that are shown as text: all but indented examples.
func helpParagraphs(detail string) (all []string) {
	for p := range strings.SplitSeq(strings.Trim(detail, "\n"), "\n\n") {
		if p = strings.Trim(p, "\n"); !strings.HasPrefix(p, "    ") && p != "" {
			all = append(all, strings.Join(strings.Fields(p), " "))
		}
	}
	return all
}

// unspoken are the literals that files of package cli print as they are, with the reason.
var unspoken = map[string]string{
	"man.go":        "manual pages are English",
	"mcpinstall.go": "commands and settings of other programs",
	"figure.go":     "a page of HTML",
	"help.go":       "texts that were looked up",
}

// TestCommandsSpeak wants package cli to print what it says to people in the language of the process.
func TestCommandsSpeak(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, f := range files(t) {
		if f.pkg != "cli" || f.isTest {
			continue
		}
		seen := false
		within(f, func(n ast.Node, _ *ast.FuncDecl) {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return
			}
			fn, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(fn.Sel.Name, "Fprint") && fn.Sel.Name != "WriteString" || name(fn.X) == "lang" {
				return
			}
			looked++
			for _, said := range printed(call) {
				if unspoken[path.Base(f.path)] == "" && !slices.Contains(unspokenTexts, said) {
					t.Errorf("%s prints %q without package lang", f.set.Position(call.Pos()), said)
				}
				seen = true
			}
		})
		if unspoken[path.Base(f.path)] != "" && !seen {
			t.Errorf("%s prints nothing of its own any more, which unspoken lets it", f.path)
		}
	}
	if looked < 50 {
		t.Errorf("only %d prints were looked at", looked)
	}
}

// unspokenTexts are literals that are no language.
var unspokenTexts = []string{
	" -H \"Authorization: Bearer $COVE_KEY\" -H 'Content-Type: application/json' -d '{}'\n", "      cove ask \"What is the 1000th prime?\"\n", "  tools.%s(%s)\n",
}

// printed are the literals with words that a call prints as they are: those in calls of its arguments are theirs.
func printed(call *ast.CallExpr) (out []string) {
	for _, a := range call.Args {
		ast.Inspect(a, func(n ast.Node) bool {
			if _, inner := n.(*ast.CallExpr); inner {
				return false
			}
			if e, ok := n.(ast.Expr); ok {
				if text, ok := literal(e); ok && aWord.MatchString(verbs.ReplaceAllString(strings.ReplaceAll(text, "cove: ", ""), "")) {
					out = append(out, text)
				}
			}
			return true
		})
	}
	return out
}
