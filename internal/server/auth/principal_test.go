package auth_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/auth"
)

var update = flag.Bool("update", false, "write the golden files")

// TestRoles holds the whole decision: every role, with and without the server's admin, by every action. A new action or role is a new
// line or column that somebody has to look at.
func TestRoles(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	fmt.Fprintf(&out, "%-20s", "")
	for _, role := range auth.Roles() {
		fmt.Fprintf(&out, " %-8s %-13s", role, "server admin")
	}
	for _, action := range auth.Actions() {
		fmt.Fprintf(&out, "\n%-20s", action)
		for _, role := range auth.Roles() {
			for _, admin := range []bool{false, true} {
				word := "-"
				if (auth.Principal{Role: role, Admin: admin}).May(action) {
					word = "yes"
				}
				fmt.Fprintf(&out, " %-*s", map[bool]int{false: 8, true: 13}[admin], word)
			}
		}
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	golden(t, "roles.golden", strings.Join(lines, "\n")+"\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s has changed; run with -update and look at it (-want +got):\n%s", name, diff)
	}
}

func TestScopesNarrowEveryRole(t *testing.T) {
	t.Parallel()
	for _, role := range append(auth.Roles(), "", "nobody") {
		for _, scope := range auth.Actions() {
			whole := auth.Principal{Role: role, Admin: true}
			narrow := whole
			narrow.Scopes = []auth.Action{scope}
			for _, action := range auth.Actions() {
				if want := whole.May(action) && action == scope; narrow.May(action) != want {
					t.Errorf("a %s limited to %s may %s: %t", role, scope, action, !want)
				}
				if (narrow.Require(action) == nil) != narrow.May(action) {
					t.Errorf("Require and May differ for %s", action)
				}
			}
			none := whole
			none.Scopes = []auth.Action{}
			if slices.ContainsFunc(auth.Actions(), none.May) {
				t.Errorf("a %s with an empty list of scopes may something", role)
			}
		}
	}
}

func TestTheCallerIsInTheContext(t *testing.T) {
	t.Parallel()
	if _, ok := auth.From(t.Context()); ok {
		t.Error("there is a caller where nobody put one")
	}
	who, ok := auth.From(auth.With(t.Context(), auth.Local()))
	if !ok || who.User != auth.LocalUser {
		t.Errorf("the caller is %v", who)
	}
}
