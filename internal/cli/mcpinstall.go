package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/durable"
	"cove/internal/problem"
)

type mcpInstall struct {
	Client string `arg:"" enum:"claude-code,claude-desktop,codex,cursor,gemini,vscode" help:"The program: claude-code, claude-desktop, codex, cursor, gemini or vscode."`
	serverFlags
	Name  string `placeholder:"NAME" default:"cove" help:"What the program calls the server (default: ${default})."`
	Print bool   `help:"Print what would be written, and where, and write nothing."`
}

// Help is the long help.
func (mcpInstall) Help() string {
	return `Has a program use a cove server as a tool, by the Model Context Protocol: writes the server's address and the key into the program's settings, beside what is there. For
claude-code and codex it prints the command that does so. vscode is about the current folder (.vscode/mcp.json), the others about you. Start the program again afterwards.

Examples:

    COVE_KEY=$(cove key create --name cursor) cove mcp install cursor --server http://127.0.0.1:8700
    cove mcp install claude-desktop --print`
}

func (c *mcpInstall) run(_ context.Context, p *Program) (int, error) {
	base, key, err := c.remote(p.Config)
	if err != nil {
		return 0, err
	}
	if base == "" && p.Served != nil {
		if base = p.Served(p.Config); base != "" && key == "" {
			return 0, problem.New(problem.KeyMissing, "the server "+oneLine(base)+" wants a key").WithHint(wantsKey)
		}
	}
	if base == "" || strings.HasPrefix(base, "unix:") {
		return 0, problem.New(problem.Usage, "say which server the program is to use").WithHint("start one with `cove serve`, and give its address with --server, or as COVE_SERVER")
	}
	if strings.ContainsAny(c.Name, " \t\n\"'/") || c.Name == "" {
		return 0, problem.New(problem.Usage, "the name has no spaces, quotes and slashes").WithHint("leave --name out")
	}
	base = strings.TrimSuffix(base, "/")
	bearer := map[string]any{"Authorization": "Bearer " + key}
	home := p.Getenv("HOME")
	switch c.Client {
	case "claude-code":
		_, err = fmt.Fprintf(p.Out, "claude mcp add --transport http %s %s/mcp --header \"Authorization: Bearer %s\"\n", c.Name, base, key)
	case "codex":
		_, err = fmt.Fprintf(p.Out, "codex mcp add %s --url %s/mcp --bearer-token-env-var COVE_KEY\n", c.Name, base)
	case "claude-desktop":
		var self string
		if self, err = os.Executable(); err == nil {
			err = c.put(p, filepath.Join(home, ".config", "Claude", "claude_desktop_config.json"), "mcpServers", map[string]any{"command": self, "args": []string{"mcp", "--server", base}, "env": map[string]any{"COVE_KEY": key}})
		}
	case "cursor":
		err = c.put(p, filepath.Join(home, ".cursor", "mcp.json"), "mcpServers", map[string]any{"url": base + "/mcp", "headers": bearer})
	case "gemini":
		err = c.put(p, filepath.Join(home, ".gemini", "settings.json"), "mcpServers", map[string]any{"httpUrl": base + "/mcp", "headers": bearer})
	case "vscode":
		err = c.put(p, filepath.Join(".vscode", "mcp.json"), "servers", map[string]any{"type": "http", "url": base + "/mcp", "headers": bearer})
	}
	return 0, err
}

// put puts the server into a program's settings, a JSON object, below a member. What is there besides stays.
func (c *mcpInstall) put(p *Program, file, member string, entry map[string]any) error {
	old, err := os.ReadFile(file) //nolint:gosec // the user's own settings
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.InputUnreadable, "cannot read "+oneLine(file)).WithCause(err)
	}
	text, err := c.merged(old, member, entry)
	if err != nil {
		alone, _ := c.merged(nil, member, entry)
		return problem.New(problem.ClientSettings, oneLine(file)+" is no JSON object that could be added to").WithHint("add this to it yourself:\n" + string(alone)).WithCause(err)
	}
	if c.Print {
		_, err := fmt.Fprintf(p.Out, "%s:\n%s", file, text)
		return err
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil { //nolint:gosec // as the program would make it
		err = durable.Replace(file, 0o600, bytes.NewReader(text)) // it has a key
	}
	if err != nil {
		return problem.New(problem.ClientSettings, "cannot write "+oneLine(file)).WithHint("look at who may write there, or add what --print shows yourself").WithCause(err)
	}
	notef(p.Err, "wrote %s into %s; start the program again", c.Name, file)
	return err
}

func (c *mcpInstall) merged(old []byte, member string, entry map[string]any) ([]byte, error) {
	all, servers := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(bytes.TrimSpace(old)) > 0 {
		if err := json.Unmarshal(old, &all); err != nil {
			return nil, err
		}
		if all == nil {
			return nil, errors.New("it is null")
		}
	}
	if have := all[member]; len(have) > 0 && string(have) != "null" {
		if err := json.Unmarshal(have, &servers); err != nil {
			return nil, err
		}
	}
	var err error
	if servers[c.Name], err = json.Marshal(entry); err != nil {
		return nil, err
	}
	if all[member], err = json.Marshal(servers); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(all, "", "  ")
	return append(text, '\n'), err
}
