// Package wheelfiles says which modules a distribution provides, given the list of its files.
package wheelfiles

import (
	"path"
	"sort"
	"strings"
)

const deepest = 5 // no namespace is nested deeper than this

// byproducts are the names of top-level folders that projects ship by accident; nobody imports them by that name.
var byproducts = map[string]bool{
	"test": true, "tests": true, "testing": true, "unittests": true, "unit_tests": true, "integration_tests": true, "test_utils": true,
	"doc": true, "docs": true, "documentation": true, "example": true, "examples": true, "sample": true, "samples": true, "demo": true,
	"demos": true, "tutorial": true, "tutorials": true, "script": true, "scripts": true, "bin": true, "benchmark": true, "benchmarks": true,
	"build": true, "dist": true, "wheelhouse": true, "tools": true, "build_tools": true, "node_modules": true, "third_party": true,
	"misc": true, "src": true, "lib": true, "setup": true, "conftest": true, "include": true, "__init__": true,
	"site_packages": true, "LICENSE": true, "README": true, "ci": true, "hack": true, "notebooks": true, "experiments": true, "temp": true,
	"tasks": true, "noxfile": true, "images": true, "assets": true, "static": true, "templates": true, "resources": true,
	"base": true, "cli": true, "com": true, "common": true, "contrib": true, "core": true, "data": true, "development": true, "dummy": true,
	"DUMMY": true, "e2e": true, "example_project": true, "integrations": true, "main": true, "plugin": true, "server": true, "test_app": true,
	"testapp": true, "tmp": true, "utilities": true, "utils": true, "vendor": true, "version": true, "website": true, "logger": true,
	"debug": true, "release": true, "target": true, "venv": true, "env": true, "htmlcov": true, "coverage_html": true, "packaging_scripts": true,
}

// Byproduct says whether a top-level name is one that many projects ship by accident (tests, docs, examples, ...).
func Byproduct(root string) bool { return byproducts[root] || strings.HasPrefix(root, "__") }

// Module is the importable name that a file in a folder gives ("a.cpython-311-x86_64-linux-gnu.so" is a), or "".
func Module(file string) string {
	ext := path.Ext(file)
	if ext != ".py" && ext != ".so" && ext != ".pyd" {
		return ""
	}
	stem := strings.TrimSuffix(file, ext)
	if ext != ".py" {
		var tag string
		if stem, tag, _ = strings.Cut(stem, "."); tag == "" && strings.HasPrefix(stem, "lib") {
			return "" // a shared library
		}
	}
	if !Identifier(stem) {
		return ""
	}
	return stem
}

// Identifier says whether a name can stand in an import statement.
func Identifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

type folder struct {
	folders map[string]*folder
	modules map[string]bool
}

func newFolder() *folder { return &folder{folders: map[string]*folder{}, modules: map[string]bool{}} }

func (f *folder) add(parts []string) {
	for _, name := range parts[:len(parts)-1] {
		if !Identifier(name) {
			return
		}
		if f.folders[name] == nil {
			f.folders[name] = newFolder()
		}
		f = f.folders[name]
	}
	if name := Module(parts[len(parts)-1]); name != "" {
		f.modules[name] = true
	}
}

func (f *folder) empty() bool {
	for _, sub := range f.folders {
		if !sub.empty() {
			return false
		}
	}
	return len(f.modules) == 0
}

func (f *folder) collect(prefix string, depth int, namespace func(string) bool, out map[string]bool) {
	for name := range f.modules {
		if name != "__init__" && name != "__main__" {
			out[prefix+name] = true
		}
	}
	for name, sub := range f.folders {
		full := prefix + name
		switch {
		case sub.empty():
		case depth < deepest && (!sub.modules["__init__"] || namespace != nil && namespace(full)):
			sub.collect(full+".", depth+1, namespace, out)
		default:
			out[full] = true
		}
	}
}

// Modules returns the importable names that a distribution's files (relative to site-packages, slash-separated, as in a wheel's
// list) provide, sorted: top-level packages, modules and extension modules. A folder without __init__.py, or one that namespace says
// is shared (it may be nil), counts as a namespace, and what is in it is named by its dotted path.
// Tests, documentation and the like are left out unless there is nothing else.
func Modules(files []string, namespace func(dotted string) bool) []string {
	root := newFolder()
	for _, file := range files {
		if parts := placed(strings.Split(file, "/")); len(parts) > 0 {
			root.add(parts)
		}
	}
	found := map[string]bool{}
	root.collect("", 0, namespace, found)
	var all, wanted []string
	for name := range found {
		all = append(all, name)
		if top, _, _ := strings.Cut(name, "."); !Byproduct(top) {
			wanted = append(wanted, name)
		}
	}
	if len(wanted) == 0 {
		wanted = all
	}
	sort.Strings(wanted)
	return wanted
}

// placed returns where below site-packages a file of a wheel is installed, nil when elsewhere.
func placed(parts []string) []string {
	top := parts[0]
	switch {
	case top == "" || top == ".." || strings.HasSuffix(top, ".dist-info") || strings.HasSuffix(top, ".egg-info"):
		return nil
	case strings.HasSuffix(top, ".data"):
		if len(parts) > 2 && (parts[1] == "purelib" || parts[1] == "platlib") {
			return parts[2:]
		}
		return nil
	}
	return parts
}
