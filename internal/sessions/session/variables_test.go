package session_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// TestVariablesAreTakenAlong has an image salvaged with its variables, of which some cannot be had and one ends the kernel that is asked for it.
func TestVariablesAreTakenAlong(t *testing.T) {
	testneeds.FullTier(t)
	session.HurryVariables(t)
	for name, test := range map[string]struct{ code, want, then, values string }{
		"some": {`import math, numpy; a = b = [1]; c = {"a": a}; f = lambda: 1; g = (x for x in a); n = numpy.arange(3)`,
			"taken 6, left [f g]", "(a is b, c, math.floor(2.5), n.sum().item(), 'f' in globals())", "(True, {'a': [1]}, 2, 3, False)"},
		"too much":          {"import numpy; big = numpy.ones(300 << 20, 'u1'); x = 1", "taken 2, left [big]", "(x, 'big' in globals())", "(1, False)"},
		"the kernel ends":   {"import os\nclass Bad:\n    def __reduce__(self): os._exit(3)\nbad = Bad(); x = 1", "none", "'x' in globals()", "False"},
		"it never comes":    {"import time\nclass Slow:\n    def __reduce__(self):\n        while True: time.sleep(1)\nx = 1; slow = Slow(); y = 2", "taken 2, left [Slow slow y]", "(x, 'y' in globals())", "(1, False)"},
		"a name that is no": {"globals()['not a name'] = 1; x = 1", "taken 1, left []", "x", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newGVisor(t)
			o := session.Options{Engine: e, Env: standard(t)}
			s := open(t, e, sandbox.Limits{})
			runCell(t, s, code(test.code+"\nopen('kept.txt', 'w').write('kept');", "created kept.txt 4\nok"))
			o.Checkpoint = save(t, s, false)
			var archive bytes.Buffer
			if err := session.Salvage(t.Context(), o, true, &archive); err != nil {
				t.Fatal(err)
			}
			next := open(t, e, sandbox.Limits{})
			got, kept := "none", false
			for in := tar.NewReader(&archive); ; {
				h, err := in.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				kept = kept || h.Name == "kept.txt"
				if h.PAXRecords[session.VariablesRecord] == "" {
					if strings.Contains(h.Name, "variables") {
						t.Errorf("%s is left over", h.Name)
					}
					continue
				}
				if _, err := next.Write(t.Context(), h.Name, in); err != nil {
					t.Fatal(err)
				}
				taken, err := next.TakeVariables(t.Context(), h.Name)
				if err != nil {
					t.Fatal(err)
				}
				got = fmt.Sprintf("taken %d, left %v", taken.Taken, taken.Left)
			}
			if got != test.want || !kept {
				t.Errorf("%s, not %s; files: %v", got, test.want, kept)
			}
			runCell(t, next, code(test.then, "result "+test.values+"\nok"))
		})
	}
}
