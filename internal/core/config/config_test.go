package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/core/config"
)

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Size{
		"512MiB": 512 << 20, "2G": 2 << 30, "2GiB": 2 << 30, "2gb": 2 << 30, "1.5 GiB": 3 << 29, "1048576": 1 << 20, "0": 0, "64k": 64 << 10, "1TB": 1 << 40,
	} {
		var got config.Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
		var again config.Size
		if err := again.UnmarshalText([]byte(want.String())); err != nil || again != want {
			t.Errorf("%s does not read back: %d, %v", want, again, err)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "2X", "12GiBB", "9999999999T", "NaN", "1e3q"} {
		var got config.Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"60s": time.Minute, "60": time.Minute, "1h30m": 90 * time.Minute, "0": 0, "250ms": 250 * time.Millisecond,
		"3d": 72 * time.Hour, "0.5d": 12 * time.Hour, "25h": 25 * time.Hour} {
		var got config.Duration
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
		var again config.Duration
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%s does not read back: %v, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "soon", "-5s", "-5", "d", "-3d", "99999d"} {
		var got config.Duration
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestLaterSourceWins(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("memory = \"1GiB\"\ntimeout = \"5m\"\nmodel = \"ollama/qwen3\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(environment("HOME", "/home/u", "COVE_CONFIG", file, "COVE_MEMORY", "3G"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Sandbox.Memory != 3<<30 || c.Sandbox.Timeout != config.Duration(5*time.Minute) || c.Models.Default != "ollama/qwen3" || c.Sandbox.Engine != "gvisor" {
		t.Errorf("got memory %s, timeout %s, model %s, engine %s", c.Sandbox.Memory, c.Sandbox.Timeout, c.Models.Default, c.Sandbox.Engine)
	}
	if c.Folders.Data != "/home/u/.local/share/cove" || c.Folders.Sessions != c.Folders.Data+"/sessions" {
		t.Errorf("data is %s, sessions are in %s", c.Folders.Data, c.Folders.Sessions)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct {
		env  []string
		want string
	}{
		"unknown key":  {[]string{"COVE_CONFIG", write("a", "memroy = \"1G\"\n")}, "memroy"},
		"bad value":    {[]string{"COVE_CONFIG", write("b", "memory = \"lots\"\n")}, "lots"},
		"missing file": {[]string{"COVE_CONFIG", filepath.Join(dir, "none")}, "none"},
		"bad switch":   {[]string{"HOME", "/h", "COVE_PACKAGES_INSTALL", "maybe"}, "maybe"},
		"bad list":     {[]string{"COVE_CONFIG", write("c", "packages_deny = [1]\n")}, "text"},
		"bad variable": {[]string{"HOME", "/h", "COVE_CPUS", "many"}, "COVE_CPUS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Load(environment(test.env...))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a mention of %q", err, test.want)
			}
			if c.Sandbox.Memory != 2<<30 {
				t.Errorf("the rest of the settings is not usable: memory %s", c.Sandbox.Memory)
			}
		})
	}
}

func TestDocumentHidesSecretsAndReadsBack(t *testing.T) {
	t.Parallel()
	c, err := config.Load(environment("HOME", "/home/u", "OPENAI_API_KEY", "sk-very-secret", "COVE_MEMORY", "3G"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Document(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "sk-very-secret") {
		t.Error("the key is shown")
	}
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := config.Load(environment("HOME", "/home/u", "COVE_CONFIG", file))
	if err != nil {
		t.Fatalf("the documentation is not a config file: %v", err)
	}
	if back.Sandbox.Memory != 3<<30 || back.Sandbox.Timeout != c.Sandbox.Timeout {
		t.Errorf("read back memory %s, timeout %s", back.Sandbox.Memory, back.Sandbox.Timeout)
	}
}

func TestListsAndSwitches(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("packages_allow = [\"a\", \"b-*\"]\npackages_deny = \"c, d\"\npackages_install = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(environment("HOME", "/home/u", "COVE_CONFIG", file, "COVE_PACKAGES_MIN_AGE_EXEMPT", "e f,g", "COVE_PACKAGES_OFFLINE", "yes"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Packages.Allow.String() != "a, b-*" || c.Packages.Deny.String() != "c, d" || c.Packages.MinAgeExempt.String() != "e, f, g" || c.Packages.Install || !c.Packages.Offline {
		t.Errorf("got allow %q, deny %q, exempt %q, install %t, offline %t", c.Packages.Allow, c.Packages.Deny, c.Packages.MinAgeExempt, c.Packages.Install, c.Packages.Offline)
	}
	var text strings.Builder
	if err := c.Document(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`allow = "a, b-*"`, `min_age = "3d"`, "install = false"} {
		if !strings.Contains(text.String(), line+"\n") {
			t.Errorf("the documentation lacks %s", line)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good, err := config.Load(environment("HOME", "/home/u"))
	if err != nil {
		t.Fatal(err)
	}
	if err := good.Validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for name, change := range map[string]func(*config.Config){
		"engine":   func(c *config.Config) { c.Sandbox.Engine = "podman" },
		"packages": func(c *config.Config) { c.Packages.Set = "all" },
		"memory":   func(c *config.Config) { c.Sandbox.Memory = 1 << 20 },
		"cpus":     func(c *config.Config) { c.Sandbox.CPUs = 0 },
		"stall":    func(c *config.Config) { c.Models.StallTimeout = 0 },
		"data":     func(c *config.Config) { c.Folders.Data = ".local/share/cove" },
		"sessions": func(c *config.Config) { c.Folders.Sessions = "sessions" },
		"idle":     func(c *config.Config) { c.Session.Idle = -1 },
		"undo":     func(c *config.Config) { c.Session.UndoDepth = 0 },
		"count":    func(c *config.Config) { c.Packages.MaxCount = 0 },
		"download": func(c *config.Config) { c.Packages.MaxDownload = 0 },
		"index":    func(c *config.Config) { c.Packages.Index = "mirror" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("%s: a bad value is accepted", name)
		}
	}
}
