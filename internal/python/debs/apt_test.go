package debs

import (
	"io"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// TestFailure has the reason why apt failed said, with the names that it does not know.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		said string
		code problem.Code
		has  string
	}{
		{"Reading package lists...\nE: Unable to locate package grafviz\nE: Unable to locate package popler\n", problem.SystemPackageUnknown, "grafviz, popler"},
		{"E: Package 'ttf-mscorefonts-installer' has no installation candidate\n", problem.SystemPackageUnknown, "ttf-mscorefonts-installer"},
		{"E: Version '9' for 'graphviz' was not found\n", problem.SystemPackageUnknown, "graphviz"},
		{"W: Some index files failed to download. They have been ignored, or old ones used instead.\nE: Unable to locate package graphviz\n", problem.SystemPackagesFailed, "graphviz"},
		{"E: Failed to fetch http://x/y.deb  Could not connect\n", problem.SystemPackagesFailed, "could not be reached"},
		{"E: You don't have enough free space in /var/cache/apt/archives/.\n", problem.SystemPackagesFailed, "no room"},
		{"dpkg: error: failed to write: No space left on device\n", problem.SystemPackagesFailed, "no room"},
		{"E: Sub-process /usr/bin/dpkg returned an error code (1)\n\x1b[31mE: hostile\n", problem.SystemPackagesFailed, "could not be installed"},
		{"", problem.SystemPackagesFailed, "could not be installed"},
	} {
		err := failure(c.said)
		if p := problem.Of(err); !problem.Has(err, c.code) || !strings.Contains(p.Message, c.has) || p.Hint == "" || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q: %q (%s)", c.said, err, p.Hint)
		}
	}
}

// TestRoom has apt not started where it could not even read its lists.
func TestRoom(t *testing.T) {
	t.Parallel()
	err := Apt{Limits: sandbox.Limits{System: 20 << 20}}.Make(t.Context(), []string{"graphviz"}, io.Discard, io.Discard)
	if !problem.Has(err, problem.SystemPackagesFailed) || !strings.Contains(problem.Of(err).Hint, "sandbox.system") {
		t.Errorf("%v", err)
	}
}

// TestListener tells of steps in words of which a package's name alone is apt's, and keeps no more than the end.
func TestListener(t *testing.T) {
	t.Parallel()
	var told strings.Builder
	l := &listener{progress: &told}
	for _, piece := range []string{"Unpack", "ing libx:amd64 (1) ...\n", strings.Repeat("x", 1<<20), "\nE: last\n"} {
		if n, err := l.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if told.String() != "  unpacking libx:amd64\n" || len(l.kept) > 2*mostSaid || cap(l.line) > 2*longLine || !strings.HasSuffix(l.text(), "E: last\n") {
		t.Errorf("told was %q; kept are %d bytes", told.String(), len(l.kept))
	}
	for line, want := range map[string]string{
		"Setting up fonts (1) ...": "  setting up fonts\n", "Get:12 http://x y": "  downloading ...\n", "Setting up \x1b[2J": "", "Setting up " + strings.Repeat("a", 500): "  setting up " + strings.Repeat("a", 101) + "\n", "Unpacking ../x": "",
	} {
		told.Reset()
		(&listener{progress: &told}).tell(line)
		if told.String() != want {
			t.Errorf("%q is told as %q", line, told.String())
		}
	}
}
