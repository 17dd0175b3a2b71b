package toolserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/toolserver"
)

func TestRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte("of-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"TOKEN": "abc"}[name] }
	read := func(text string) ([]toolserver.Config, error) {
		path := filepath.Join(t.TempDir(), "tools.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return toolserver.Read(path, getenv)
	}
	all, err := read(`{"mcpServers": {
		"b": {"type": "stdio", "command": "b", "args": ["--key", "${TOKEN}", "$HOME"], "env": {"K": "${env:TOKEN}-${TOKEN}"}, "cwd": "/srv", "tools": ["x*"], "projects": ["*"], "timeout_seconds": 1.5, "idle_seconds": 60, "at_once": 3, "description": "of b"},
		"a": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${file:` + folder + `/token}"}},
		"c": {"command": "c", "disabled": true}}}`)
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[0].Headers["Authorization"] != "Bearer of-a-file" {
		t.Fatalf("%v, %+v", err, all)
	}
	if b := all[1]; b.Args[1] != "abc" || b.Args[2] != "$HOME" || b.Env["K"] != "abc-abc" || b.Dir != "/srv" || b.Timeout != 1500*time.Millisecond || b.Idle != time.Minute || b.AtOnce != 3 || b.Description != "of b" {
		t.Errorf("%+v", b)
	}
	for text, says := range map[string]string{
		`{`:                         "",
		`{} {}`:                     "behind its end",
		`{"servers": {}}`:           "servers",
		`{"mcpServers": {"a": {}}}`: "either a command or a url",
		`{"mcpServers": {"a": {"command": "x", "url": "https://x"}}}`:               "either a command or a url",
		`{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["t"]}}}`:             "alwaysAllow",
		`{"mcpServers": {"a b": {"command": "x"}}}`:                                 "letters, digits",
		`{"mcpServers": {"a.b": {"command": "x"}}}`:                                 "letters, digits",
		`{"mcpServers": {"` + strings.Repeat("a", 41) + `": {"command": "x"}}}`:     "letters, digits",
		`{"mcpServers": {"a": {"type": "sse", "url": "https://x"}}}`:                "sse",
		`{"mcpServers": {"a": {"type": "pigeon", "command": "x"}}}`:                 "pigeon",
		`{"mcpServers": {"a": {"type": "http", "command": "x"}}}`:                   "type",
		`{"mcpServers": {"a": {"type": "stdio", "url": "https://x"}}}`:              "type",
		`{"mcpServers": {"a": {"url": "https://x", "env": {"A": "b"}}}}`:            "go with command",
		`{"mcpServers": {"a": {"command": "x", "headers": {"A": "b"}}}}`:            "headers with url",
		`{"mcpServers": {"a": {"url": "ftp://x"}}}`:                                 "an address",
		`{"mcpServers": {"a": {"url": "https://me:pw@x"}}}`:                         "header",
		`{"mcpServers": {"a": {"url": "https://x", "headers": {"A": "b\nc"}}}}`:     "header",
		`{"mcpServers": {"a": {"command": "x", "cwd": "here"}}}`:                    "absolute",
		`{"mcpServers": {"a": {"command": "x", "env": {"A=B": "c"}}}}`:              "variable",
		`{"mcpServers": {"a": {"command": "x", "env": {"A": "${NOWHERE}"}}}}`:       "${NOWHERE} is empty, or not set",
		`{"mcpServers": {"a": {"command": "x", "env": {"A": "${file:/no/such}"}}}}`: "no file /no/such",
		`{"mcpServers": {"a": {"command": "x", "projects": ["mine"]}}}`:             "prj_",
		`{"mcpServers": {"a": {"command": "x", "timeout_seconds": 1e9}}}`:           "at most 600",
		`{"mcpServers": {"a": {"command": "x", "timeout_seconds": -1}}}`:            "at most 600",
		`{"mcpServers": {"a": {"command": "x", "at_once": 1000}}}`:                  "at most 64",
	} {
		if _, err := read(text); !problem.Has(err, problem.ConfigInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	open := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(open, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o666); err != nil { // whatever the mask is
		t.Fatal(err)
	}
	if _, err := toolserver.Read(open, getenv); !problem.Has(err, problem.ConfigInvalid) || !strings.Contains(err.Error(), "others") {
		t.Errorf("a file that everybody can write to: %v", err)
	}
	if _, err := toolserver.Read(filepath.Join(t.TempDir(), "none"), getenv); !problem.Has(err, problem.ConfigUnreadable) {
		t.Errorf("no file: %v", err)
	}
}
