package scan_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"cove/internal/python/deps/scan"
	"cove/internal/testkit/testneeds"
)

// walkAll reads the standard library with the module ast: for each file its text, all modules that statements import, and those of them that no
// condition about versions, platforms or type checking is above. It shares nothing with the scanner.
const walkAll = `import ast, glob, json, os, sys
def modules(tree, skip):
    out, todo = set(), [tree]
    while todo:
        n = todo.pop()
        if skip and isinstance(n, (ast.If, ast.IfExp)):
            test = ast.dump(n.test)
            if isinstance(n.test, ast.Constant) or any(w in test for w in ("version_info", "'platform'", "'name'", "TYPE_CHECKING", "value=False", "value=0", "hexversion")):
                continue
        if isinstance(n, ast.Import):
            out |= {a.name for a in n.names}
        elif isinstance(n, ast.ImportFrom) and not n.level:
            out.add(n.module)
        todo += ast.iter_child_nodes(n)
    return sorted(out)
folder = os.path.dirname(os.__file__)
result = []
for path in sorted(glob.glob(folder + "/*.py") + glob.glob(folder + "/*/*.py")):
    part = path[len(folder) + 1:].split("/")[0]
    if part in ("site-packages", "dist-packages", "idlelib", "turtledemo", "test", "lib2to3", "tkinter", "encodings"):
        continue
    text = open(path, encoding="utf-8", errors="replace").read()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        continue
    result.append({"path": path, "text": text, "all": modules(tree, False), "sure": modules(tree, True)})
json.dump(result, sys.stdout)
`

// TestStandardLibrary compares the scanner with another reader of the same files, and Suspect with both.
func TestStandardLibrary(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	out, err := exec.Command(python(t).Path, "-I", "-c", walkAll).Output()
	if err != nil {
		t.Fatal(err)
	}
	var files []struct {
		Path, Text string
		All, Sure  []string
	}
	if err := json.Unmarshal(out, &files); err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d files were found", len(files))
	}
	_, s := startLocal(t)
	imports := 0
	for _, f := range files {
		r := look(t, s, scan.Code{Text: f.Text, Script: true})
		if r.Invalid {
			t.Errorf("%s is called invalid", f.Path)
		}
		var found []string
		for _, i := range r.Imports {
			found = append(found, i.Module)
			literal := strings.Contains(f.Text, `"`+i.Module+`"`) || strings.Contains(f.Text, `'`+i.Module+`'`)
			if i.Need == "" && !slices.Contains(f.All, i.Module) && !literal {
				t.Errorf("%s does not import %s", f.Path, i.Module)
			}
		}
		for _, module := range f.Sure {
			if !slices.Contains(found, module) {
				t.Errorf("%s imports %s, which was not found", f.Path, module)
			}
		}
		imports += len(found)
		requireSuspect(t, f.Text, r)
		suspectsNot(t, f.Text, r)
	}
	t.Logf("%d files, %d imports", len(files), imports)
}

// suspectsNot counts on Suspect to let go what imports nothing that is missing, unless something in the code may import by name.
func suspectsNot(t *testing.T, code string, r scan.Report) {
	t.Helper()
	roots := scan.Roots(code)
	for _, i := range r.Imports {
		root, _, _ := strings.Cut(i.Module, ".")
		if i.Need == "" && !slices.Contains(roots, root) && !strings.Contains(code, "import_module") && !strings.Contains(code, "__import__") {
			t.Errorf("Roots misses %s in\n%.300s", root, code)
		}
	}
}
