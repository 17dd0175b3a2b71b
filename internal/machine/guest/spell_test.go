package guest

import (
	"fmt"
	"os"
	"path"
	"testing"
	"unicode/utf8"

	"cove/internal/machine/wire"
)

func TestSpell(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"plain.txt": "plain.txt", "100%.csv": "100%.csv", "caf\xe9.txt": "caf%E9.txt", "50% \xe9": "50%25 %E9", "数\xca\xfd据": "数%CA%FD据", "%E9\xe9": "%25E9%E9", "a%/\xff/b%": "a%/%FF/b%",
	} {
		if got := spell(raw); got != want {
			t.Errorf("%q is spelled %q, want %q", raw, got, want)
		}
	}
	for _, name := range []string{"100%.csv", "caf%E9.txt\xff", "%25", "%e9", "%C3%A9", "a%"} {
		if raw, ok := unspell(name); ok {
			t.Errorf("%q is taken for a spelling of %q", name, raw)
		}
	}
}

func FuzzSpell(f *testing.F) {
	f.Add("caf\xe9 %41")
	f.Fuzz(func(t *testing.T, name string) {
		said := spell(name)
		if !utf8.ValidString(said) {
			t.Fatalf("%q is spelled %q, which is no text", name, said)
		}
		if raw, ok := unspell(path.Base(said)); path.Base(name) == name && !utf8.ValidString(name) && (!ok || raw != name) {
			t.Errorf("%q is spelled %q, which is read as %q", name, said, raw)
		}
	})
}

// TestMeant has a name that the host says lead to what it was listed for, and one that is there as it is said to itself.
func TestMeant(t *testing.T) {
	t.Parallel()
	g := &guest{workspace: t.TempDir()}
	for _, name := range []string{"d\xfe/caf\xe9.txt", "twice%E9", "twice\xe9", "a%E9b/x"} {
		full := path.Join(g.workspace, name)
		if err := os.MkdirAll(path.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for said, want := range map[string]string{"d%FE/caf%E9.txt": "d\xfe/caf\xe9.txt", "twice%E9": "twice%E9", "a%E9b/x": "a%E9b/x", "new%E9": "new%E9", g.workspace + "/d%FE": g.workspace + "/d\xfe"} {
		if got := g.meant(said); got != want {
			t.Errorf("%q is taken for %q, want %q", said, got, want)
		}
	}
	listed, resp, err := g.listPlace(wire.FileSpec{Path: ".", Depth: 2})
	var names []string
	for _, e := range listed {
		names = append(names, e.Path)
	}
	if want := "[a%E9b a%E9b/x d%FE d%FE/caf%E9.txt twice%E9]"; err != nil || fmt.Sprint(names) != want || resp.Size != 1 {
		t.Errorf("listed is %v, %d without a name (%v), want %s and 1", names, resp.Size, err, want)
	}
}
