package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/cli"
)

func TestMCPInstall(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	install := func(args ...string) result {
		t.Helper()
		return run(t, &scripted{}, func(_ string, p *cli.Program) {
			p.Getenv = func(name string) string {
				if name == "HOME" {
					return home
				}
				return environment(name)
			}
		}, append([]string{"mcp", "install", "--server", "http://h:1/", "--key", "cove_1"}, args...)...)
	}
	read := func(file string) (all map[string]map[string]any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(home, file))
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(cursor), 0o755); err != nil || os.WriteFile(cursor, []byte(`{"other":{"a":1},"mcpServers":{"mine":{"url":"x"}}}`), 0o644) != nil {
		t.Fatal(err)
	}
	if r := install("cursor"); r.code != 0 || !strings.Contains(r.err, "wrote cove into") {
		t.Errorf("%d %s", r.code, r.err)
	}
	all := read(".cursor/mcp.json")
	made, _ := all["mcpServers"]["cove"].(map[string]any)
	if all["other"]["a"] != 1.0 || all["mcpServers"]["mine"] == nil || made["url"] != "http://h:1/mcp" || made["headers"].(map[string]any)["Authorization"] != "Bearer cove_1" {
		t.Errorf("%v", all)
	}
	if info, err := os.Stat(cursor); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if r := install("claude-desktop", "--name", "py"); r.code != 0 {
		t.Errorf("%d %s", r.code, r.err)
	}
	if made, _ := read(".config/Claude/claude_desktop_config.json")["mcpServers"]["py"].(map[string]any); made["command"] == "" || made["env"].(map[string]any)["COVE_KEY"] != "cove_1" {
		t.Errorf("%v", made)
	}
	if r := install("gemini", "--print"); r.code != 0 || !strings.Contains(r.out, `"httpUrl": "http://h:1/mcp"`) {
		t.Errorf("%d %s %s", r.code, r.out, r.err)
	}
	if _, err := os.Stat(filepath.Join(home, ".gemini")); err == nil {
		t.Error("--print has written")
	}
	for client, want := range map[string]string{"claude-code": `claude mcp add --transport http cove http://h:1/mcp --header "Authorization: Bearer cove_1"`, "codex": "codex mcp add cove --url http://h:1/mcp"} {
		if r := install(client); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%s: %d %s %s", client, r.code, r.out, r.err)
		}
	}
	if err := os.WriteFile(cursor, []byte("// with a comment\n{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := install("cursor"); r.code == 0 || !strings.Contains(r.err, "add this to it yourself") {
		t.Errorf("settings with a comment: %d %s", r.code, r.err)
	}
	if text, err := os.ReadFile(cursor); err != nil || !strings.HasPrefix(string(text), "// with") {
		t.Errorf("settings that were not understood are lost: %s %v", text, err)
	}
	for _, args := range [][]string{{"emacs"}, {"cursor", "--name", "a b"}, {"cursor", "--server", "unix:/run/cove.sock"}} {
		if r := install(args...); r.code == 0 {
			t.Errorf("%v: %s", args, r.out)
		}
	}
}

// TestMCPInstallAlone has programs start cove without a server, with the folders that the user has set, whatever their own environment is.
func TestMCPInstallAlone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	install := func(set map[string]string, args ...string) string {
		t.Helper()
		r := run(t, &scripted{}, func(_ string, p *cli.Program) {
			set["HOME"] = home
			p.Getenv = func(name string) string { return set[name] }
		}, append([]string{"mcp", "install"}, args...)...)
		if r.code != 0 {
			t.Errorf("%v: %d %s", args, r.code, r.err)
		}
		return r.out
	}
	for client, member := range map[string]string{"claude-desktop": "mcpServers", "cursor": "mcpServers", "gemini": "mcpServers", "vscode": "servers"} {
		_, text, _ := strings.Cut(install(map[string]string{"COVE_HOME": "/srv/my cove", "COVE_MEMORY": "1G"}, client, "--print"), ":\n")
		var all map[string]map[string]struct {
			Command, URL string
			Args         []string
			Env          map[string]string
		}
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%s: %v %s", client, err, text)
		}
		one := all[member]["cove"]
		if one.Command != self || strings.Join(one.Args, " ") != "mcp" || one.URL != "" || len(one.Env) != 1 || one.Env["COVE_HOME"] != "/srv/my cove" {
			t.Errorf("%s: %+v", client, one)
		}
	}
	if out := install(map[string]string{}, "claude-code"); out != "claude mcp add cove -- "+self+" mcp\n" {
		t.Error(out)
	}
	if out := install(map[string]string{"COVE_HOME": "/srv/my cove"}, "codex", "--server", ""); out != "codex mcp add cove --env 'COVE_HOME=/srv/my cove' -- "+self+" mcp --server=\n" {
		t.Error(out)
	}
}
