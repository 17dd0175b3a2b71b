package scan_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cove/internal/python/deps/scan"
	"cove/internal/testkit/testneeds"
)

// TestMutations damages the corpus at random, always in the same way, and holds Suspect and Plain to what is found in the remains.
func TestMutations(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	_, s := startLocal(t)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"\n", "\\\n", "\r\n", ";", " ", "\t", "\x0c", "#", "'''", "\"", "(", ")", ",", ".", ":", "%", "!", "?", "import ", "from ", " as ", "import_module('m')",
		"　", "中文", "ｉmport x", "try:\n  ", "\nexcept ImportError:\n  pass\n", "pip install q", ">>> ", "\x0b", "\u00a0", "\x00", "if x: ", "%time ", "%%time\n", "\\"}
	found, plain := 0, 0
	for range 3000 {
		code := corpus[random.IntN(len(corpus))].code
		for range 1 + random.IntN(4) {
			at, end := random.IntN(len(code)+1), 0
			switch random.IntN(4) {
			case 0:
				end = min(at+random.IntN(6), len(code))
				code = code[:at] + code[end:]
			case 1:
				lines := strings.Split(code, "\n")
				random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
				code = strings.Join(lines, "\n")
			default:
				code = code[:at] + pieces[random.IntN(len(pieces))] + code[at:]
			}
		}
		r := look(t, s, scan.Code{Text: code, Script: random.IntN(2) == 0})
		requireSuspect(t, code, r)
		if requirePlain(t, s, code) {
			plain++
		}
		found += len(r.Imports)
		if t.Failed() {
			t.Fatalf("%q\n%s", code, describe(r))
		}
	}
	if found < 1000 || plain < 100 {
		t.Errorf("only %d imports were found, and %d codes read as plain", found, plain)
	}
}

// TestSuspect is about what must not cost a scan, and what must.
func TestSuspect(t *testing.T) {
	t.Parallel()
	provided := func(root string) bool {
		return slices.Contains([]string{"os", "json", "collections", "numpy", "pandas", "matplotlib", "openpyxl"}, root)
	}
	for code, want := range map[string]bool{
		program: false,
		"":      false,
		"import os, json as j\nfrom numpy.linalg import norm": false,
		"# import the data\nprint('please import foo')":       false,
		"from . import foo\nfrom ..a.b import c":              false,
		"from os \\\n import path":                            false,
		"text = '导入数据 import，完成'":                             true,
		"print('中文')\nimport os":                              false,
		"df.to_excel('a.xlsx')":                               false,
		"df.to_parquet('a')":                                  true,
		"x = 3 % 4\nimport os":                                false,
		"import os; import requests":                          true,
		"if x: import requests":                               true,
		"import os, \\\n  requests":                           true,
		"from requests import get":                            true,
		"from\trequests\\\n.adapters import get":              true,
		"def f():\n\treturn __import__(name)":                 true,
		"import google.protobuf":                              true,
		"import ｒequests":                                     true,
		"%pip install x":                                      true,
		"# requirements: x":                                   true,
		"# /// script\n# ///":                                 true,
	} {
		if got := scan.Suspect(code, provided); got != want {
			t.Errorf("%q: suspect is %v", code, got)
		}
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	got := scan.Roots("import os.path, numpy as np\nfrom sklearn.svm import SVC\nfrom . import x\nif y: import requests; import numpy\n# import this\nimport módulo\nimport (")
	if want := []string{"os", "numpy", "sklearn", "requests"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
