package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// setting is one that a test finds by the tags alone.
type setting struct {
	table []string
	tag   reflect.StructTag
	index []int // of the field
	kind  reflect.Type
}

func (s setting) key() string { return strings.Join(append(s.table, s.tag.Get("toml")), ".") }

func settings() []setting { return settingsOf(reflect.TypeFor[config.Config](), nil, nil) }

func settingsOf(t reflect.Type, table []string, index []int) []setting {
	var out []setting
	for n := range t.NumField() {
		f, at := t.Field(n), slices.Concat(index, []int{n})
		switch {
		case f.Tag.Get("env") != "":
			out = append(out, setting{table, f.Tag, at, f.Type})
		case f.Type.Kind() == reflect.Struct:
			out = append(out, settingsOf(f.Type, append(table[:len(table):len(table)], f.Tag.Get("toml")), at)...)
		}
	}
	return out
}

// sample is a value that is no setting's default, as the file and a variable have it.
func (s setting) sample() (inFile, variable string) {
	switch reflect.New(s.kind).Elem().Interface().(type) {
	case bool:
		return "true", "yes"
	case config.Size:
		return `"777MiB"`, "777MiB"
	case config.Duration:
		return `"777s"`, "777"
	case config.List:
		return `["one", "two"]`, "one two"
	case string:
		return `"/some/thing"`, "/some/thing"
	}
	return "777", "777"
}

func load(t *testing.T, text string, env ...string) (config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(environment(append([]string{"HOME", "/home/u", "COVE_CONFIG", file}, env...)...))
	c.File = ""
	return c, err
}

// Every setting is the same by its key in a table, by its former key at the top of the file, and by its variable.
func TestEveryWayToASetting(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range settings() {
		inFile, variable := s.sample()
		flat := s.tag.Get("flat")
		for _, name := range []string{flat, s.key(), s.tag.Get("env")} {
			if seen[name] {
				t.Errorf("%s: %q is taken", s.key(), name)
			}
			seen[name] = name != "" // a new setting has no former key
		}
		nested, err := load(t, fmt.Sprintf("[%s]\n%s = %s\n", strings.Join(s.table, "."), s.tag.Get("toml"), inFile))
		if err != nil {
			t.Errorf("%s: %v", s.key(), err)
			continue
		}
		if flat != "" {
			former, err := load(t, flat+" = "+inFile+"\n")
			if want := []config.Moved{{From: flat, To: s.key()}}; err != nil || !cmp.Equal(former.Moved, want) {
				t.Errorf("%s: %v, moved %v", flat, err, former.Moved)
			}
			former.Moved = nil
			if diff := cmp.Diff(nested, former); diff != "" {
				t.Errorf("%s is not %s: %s", flat, s.key(), diff)
			}
		}
		byVariable, err := load(t, "", s.tag.Get("env"), variable)
		if diff := cmp.Diff(nested, byVariable); err != nil || diff != "" {
			t.Errorf("%s is not %s: %v %s", s.tag.Get("env"), s.key(), err, diff)
		}
		if nothing, _ := load(t, ""); s.kind.Kind() != reflect.Bool && cmp.Equal(nothing, nested) {
			t.Errorf("%s changes nothing", s.key())
		}
	}
}

func TestMistakesInTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"both":                {"session_idle = \"5m\"\n[session]\nidle = \"5m\"\n", []string{"session_idle and session.idle"}},
		"both, deeper":        {"project_tokens = 5\n[quota.project]\ntokens = 5\n", []string{"project_tokens and quota.project.tokens"}},
		"a word and a table":  {"packages = \"minimal\"\n[packages]\nset = \"minimal\"\n", []string{"packages", "already"}},
		"an unknown key":      {"[session]\nidel = \"5m\"\n", []string{"does not know: session.idel"}},
		"an unknown deep key": {"[quota.project]\nsesions = 5\n", []string{"does not know: quota.project.sesions"}},
		"an unknown table":    {"[sesion]\nidle = \"5m\"\n", []string{"does not know: sesion"}},
		"a key of nobody":     {"[quota]\nsessions = 5\n", []string{"does not know: quota.sessions"}},
		"no table":            {"session = 5\n", []string{"session"}},
		"a table for a word":  {"[memory]\nsize = 5\n", []string{"does not know: memory"}},
		"a bad value":         {"[sandbox]\nmemory = \"lots\"\n", []string{"lots"}},
		"another type":        {"[sandbox]\ncpus = \"many\"\n", []string{"cpus"}},
	} {
		got, err := load(t, c.text)
		for _, says := range c.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if d := config.Default(environment("HOME", "/home/u")); got.Session != d.Session || got.Sandbox != d.Sandbox {
			t.Errorf("%s: a file with a mistake counts: %+v", name, got)
		}
	}
}

// A number may be 0 where its documentation says what that means, and nowhere else.
func TestZeroIsDocumented(t *testing.T) {
	t.Parallel()
	good, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings() {
		c := good
		v := reflect.ValueOf(&c).Elem().FieldByIndex(s.index)
		if !v.CanInt() && !v.CanFloat() {
			if s.tag.Get("zero") != "" {
				t.Errorf("%s is no number", s.key())
			}
			continue
		}
		v.SetZero()
		if err := c.Validate(); (err == nil) != (s.tag.Get("zero") != "") {
			t.Errorf("%s: 0 is said to mean %q, and: %v", s.key(), s.tag.Get("zero"), err)
		}
		if v.CanInt() && s.kind.PkgPath() == "" && s.tag.Get("unit") == "" {
			t.Errorf("%s says not what it counts", s.key())
		}
	}
}

// docs/configuration.md is what the settings say of themselves.
func TestReference(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "docs", "configuration.md")
	var text strings.Builder
	if err := config.Reference(&text); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	there, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(there), text.String()); diff != "" {
		t.Errorf("run go test ./internal/core/config -update: %s", diff)
	}
}
