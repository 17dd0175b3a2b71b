package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/config"
	"cove/internal/core/problem"
)

func inFile(t *testing.T, text string) config.Config {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	if text != "" {
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(func(name string) string { return map[string]string{"HOME": dir, "COVE_CONFIG": file}[name] })
	if err != nil && text != "" {
		t.Fatal(err)
	}
	c.File = file
	return c
}

func TestSettingsAreWrittenIntoTheFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, key, value, after string }{
		"a new file":       {"", "sandbox.memory", "4GiB", "[sandbox]\nmemory = \"4GiB\"\n"},
		"a new table":      {"# mine\n[log]\nlevel = \"info\"", "sandbox.cpus", "1.5", "# mine\n[log]\nlevel = \"info\"\n\n[sandbox]\ncpus = 1.5\n"},
		"a table":          {"[sandbox] # of all\ncpus = 1\n[log]\n", "sandbox.memory", "4GiB", "[sandbox] # of all\nmemory = \"4GiB\"\ncpus = 1\n[log]\n"},
		"in its place":     {"[sandbox]\n# why\nmemory = \"1GiB\"\ncpus = 1\n", "COVE_MEMORY", "3GiB", "[sandbox]\n# why\nmemory = \"3GiB\"\ncpus = 1\n"},
		"several lines":    {"[network]\nallow = [\n  \"a.com\",\n]\n[log]\n", "network.allow", "b.com, c.com", "[network]\nallow = [\"b.com\", \"c.com\"]\n[log]\n"},
		"taken out":        {"[sandbox]\nmemory = \"1GiB\"\ncpus = 1\n", "sandbox.memory", "", "[sandbox]\ncpus = 1\n"},
		"a deeper table":   {"[quota.project]\ndisk = \"1GiB\"\n", "quota.key.sessions", "7", "[quota.project]\ndisk = \"1GiB\"\n\n[quota.key]\nsessions = 7\n"},
		"not a comment":    {"[sandbox]\n#memory = \"1GiB\"\n", "sandbox.memory", "2GiB", "[sandbox]\nmemory = \"2GiB\"\n#memory = \"1GiB\"\n"},
		"what is not said": {"", "log.level", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inFile(t, c.before)
			if err := s.SetInFile(c.key, c.value); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(s.File)
			if err != nil || string(got) != c.after {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.after)
			}
		})
	}
}

func TestMistakesAreNotWritten(t *testing.T) {
	t.Parallel()
	const before = "[sandbox]\ncpus = 1\n"
	for key, value := range map[string]string{"sandbox.memory": "much", "sandbox.speed": "1", "memory": "1GiB", "sandbox.cpus": "0", "sandbox.engine": "magic"} {
		s := inFile(t, before)
		err := s.SetInFile(key, value)
		if !problem.Is(err, problem.Invalid) {
			t.Errorf("%s = %s: %v", key, value, err)
		}
		if key == "memory" && !strings.Contains(problem.Of(err).Hint, "sandbox.memory") {
			t.Errorf("no hint at the setting: %v", err)
		}
		got, err := os.ReadFile(s.File)
		if err != nil || string(got) != before {
			t.Errorf("%s = %s: the file is %q, %v", key, value, got, err)
		}
	}
}

func TestTemplateChangesNothing(t *testing.T) {
	t.Parallel()
	s := inFile(t, "")
	none := func(string) string { return "" }
	if err := s.Init(none); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.File)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := s.Init(none); !problem.Has(err, problem.ConfigExists) {
		t.Errorf("a second time: %v", err)
	}
	text, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line != "\n" && line[0] != '#' && line[0] != '[' {
			t.Errorf("it sets %s", line)
		}
	}
	with := inFile(t, string(text))
	for _, key := range []string{"sandbox.memory", "turn.max_steps", "serve.listen"} {
		a, _ := s.Setting(key)
		b, _ := with.Setting(key)
		if a.Value == "" || a.Value != b.Value {
			t.Errorf("%s is %q with the file and %q without", key, b.Value, a.Value)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	s := inFile(t, "[models]\nopenai_api_key = \"sk-hidden\"\n")
	got, err := s.Setting("models.openai_api_key")
	if err != nil || !got.Secret || !got.Set || got.Value != "" {
		t.Errorf("%+v %v", got, err)
	}
}
