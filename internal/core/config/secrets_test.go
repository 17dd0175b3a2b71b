package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/config"
	"cove/internal/core/problem"
)

func secretFile(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return path
}

func TestSecretsComeFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := secretFile(t, dir, "one", "sk-one\n", 0o600)
	two := secretFile(t, dir, "two", "  postgres://u:p@h/db  \n\n", 0o644)
	credential := secretFile(t, dir, "models.anthropic_api_key", "sk-three", 0o400)
	file := secretFile(t, dir, "config.toml", "[store]\ndatabase_file = \""+two+"\"\n[models]\nanthropic_api_key_file = \""+credential+"\"\n", 0o600)
	c, err := config.Load(environment("HOME", "/h", "OPENAI_API_KEY_FILE", one, "COVE_CONFIG", file))
	if err != nil {
		t.Fatal(err)
	}
	if c.Models.OpenAIKey != "sk-one" || c.Store.Database != "postgres://u:p@h/db" || c.Models.AnthropicKey != "sk-three" {
		t.Errorf("%q, %q, %q", c.Models.OpenAIKey, c.Store.Database, c.Models.AnthropicKey)
	}
	if len(c.Exposed) != 1 || c.Exposed[0] != two {
		t.Errorf("said to be readable by all are %q", c.Exposed)
	}
	if c, err = config.Load(environment("HOME", "/h", "CREDENTIALS_DIRECTORY", dir)); err != nil || c.Models.AnthropicKey != "sk-three" {
		t.Errorf("of systemd's folder: %q, %v", c.Models.AnthropicKey, err)
	}
	if c, err = config.Load(environment("HOME", "/h", "CREDENTIALS_DIRECTORY", dir, "ANTHROPIC_API_KEY", "later")); err != nil || c.Models.AnthropicKey != "later" {
		t.Errorf("a variable does not win: %q, %v", c.Models.AnthropicKey, err)
	}
}

func TestBadSecretFilesAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := secretFile(t, dir, "good", "sk", 0o600)
	for name, test := range map[string]struct {
		env  []string
		want string
	}{
		"missing":      {[]string{"OPENAI_API_KEY_FILE", filepath.Join(dir, "none")}, "OPENAI_API_KEY_FILE"},
		"empty":        {[]string{"COVE_ENCRYPTION_KEY_FILE", secretFile(t, dir, "empty", "\n", 0o600)}, "empty"},
		"a folder":     {[]string{"COVE_KEY_FILE", dir}, "COVE_KEY_FILE"},
		"long":         {[]string{"COVE_KEY_FILE", secretFile(t, dir, "long", strings.Repeat("x", 70_000), 0o600)}, "COVE_KEY_FILE"},
		"both":         {[]string{"COVE_KEY_FILE", good, "COVE_KEY", "x"}, "both"},
		"both in file": {[]string{"COVE_CONFIG", secretFile(t, dir, "a", "[remote]\nkey = \"x\"\nkey_file = \""+good+"\"\n", 0o600)}, "remote.key_file"},
		"relative":     {[]string{"COVE_CONFIG", secretFile(t, dir, "b", "[remote]\nkey_file = \"good\"\n", 0o600)}, "absolute"},
		"no secret":    {[]string{"COVE_CONFIG", secretFile(t, dir, "c", "[sandbox]\nmemory_file = \""+good+"\"\n", 0o600)}, "sandbox.memory_file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(environment(append(test.env, "HOME", "/h")...))
			if err == nil {
				t.Fatal("it was taken")
			}
			said := err.Error()
			if cause := problem.Of(err).Cause; cause != nil {
				said += cause.Error()
			}
			if !strings.Contains(said, test.want) {
				t.Errorf("got %v, want a mention of %q", err, test.want)
			}
		})
	}
}
