package pyenv

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"cove/internal/core/problem"
)

// files are the locks, the scripts that a build runs with the environment's own Python, and what is put into every environment: programs (pip, which
// says what is installed) and modules (cove.pth, by which child processes of a kernel find its packages, and every Python the number of processors).
//
//go:embed locks/*.in locks/*.txt scripts/*.py
//go:embed standin/programs/* standin/site-packages/*.p* standin/site-packages/cove_fonts/*.py standin/site-packages/pip/*.py standin/site-packages/pip/_internal/*.py
var files embed.FS

// Locks returns the committed requirement files: <name>.in lists what was asked for,
// <name>.txt the exact versions with hashes, for the names minimal, standard, standard-2024, fonts and uv.
func Locks() fs.FS {
	sub, err := fs.Sub(files, "locks")
	if err != nil {
		panic(err) // the name is a constant and valid
	}
	return sub
}

// recipe is everything besides the Python that decides what an environment contains.
type recipe struct {
	traits
	set    Set
	lock   []byte
	fonts  []byte // lock of the font package; nil when the set has no charts
	digest string
}

// layoutVersion is raised when environments are laid out differently, so that older ones are not taken for new.
const layoutVersion = "2"

// check says whether there is a set of that name.
func (s Set) check() error {
	if _, is := known[s]; is {
		return nil
	}
	names := make([]string, 0, len(known))
	for _, set := range Sets() {
		names = append(names, string(set))
	}
	return problem.New(problem.EnvironmentUnknown, fmt.Sprintf("there is no package set named %q", s)).WithHint("the sets are " + strings.Join(names, ", "))
}

func newRecipe(set Set) (recipe, error) {
	if err := set.check(); err != nil {
		return recipe{}, err
	}
	r := recipe{traits: known[set], set: set, lock: asset("locks/" + string(set) + ".txt")}
	if r.charts {
		r.fonts = asset("locks/fonts.txt")
	}
	h := sha256.New()
	parts := [][]byte{[]byte(layoutVersion), []byte(set), r.lock, r.fonts, asset("scripts/inspect.py"), asset("scripts/compile.py"), asset("scripts/fonts.py")}
	for _, name := range standins() {
		parts = append(parts, []byte(name), asset(name))
	}
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	r.digest = hex.EncodeToString(h.Sum(nil))
	return r, nil
}

// Recipe identifies everything besides the Python that decides what an environment of this set contains.
func (s Set) Recipe() (string, error) {
	r, err := newRecipe(s)
	return r.digest, err
}

// Pins returns what a build of this set on a machine without uv takes from an index, by lock: the set's packages, as far as its environment has them, the fonts and uv.
func (e *Environment) Pins() ([]Pin, error) {
	r, err := newRecipe(e.Set)
	if err != nil {
		return nil, err
	}
	pins := slices.DeleteFunc(Pins(r.lock), func(p Pin) bool { return e.Packages[p.Name] != p.Version })
	if len(pins) < len(e.Packages) {
		return nil, fmt.Errorf("the environment %s has %d packages, of which its lock names %d", e.Key, len(e.Packages), len(pins))
	}
	return slices.Concat(pins, Pins(r.fonts), Pins(asset("locks/uv.txt"))), nil
}

func asset(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded at build time under this very name
	}
	return b
}

// standins lists the files that every environment gets, sorted.
func standins() []string {
	var names []string
	err := fs.WalkDir(files, "standin", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		panic(err) // embedded
	}
	return names
}
