package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

type mcpInstall struct {
	Client string `arg:"" enum:"claude-code,claude-desktop,codex,cursor,gemini,vscode" help:"The program: claude-code, claude-desktop, codex, cursor, gemini or vscode."`
	serverFlags
	Name  string `placeholder:"NAME" default:"cove" help:"What the program calls it (default: ${default})."`
	Print bool   `help:"Print what would be written, and where, and write nothing."`
}

// Help is the long help.
func (mcpInstall) Help() string {
	return `Has a program use cove as a tool, by the Model Context Protocol: writes what is needed into the program's settings, beside what is there. For claude-code and codex it prints the
command that does so. vscode is about the current folder (.vscode/mcp.json), the others about you. Start the program again afterwards.

The program then starts cove mcp, and code runs on this machine; no server is needed. With --server, or a server in the settings, it uses that: its address and the key are written.

Examples:

    cove mcp install claude-desktop
    cove mcp install cursor --print
    COVE_KEY=$(cove key create --name cursor) cove mcp install cursor --server http://127.0.0.1:8700`
}

func (c *mcpInstall) run(_ context.Context, p *Program) (int, error) {
	base, key, err := c.remote(p.Config)
	if err != nil {
		return 0, err
	}
	if strings.HasPrefix(base, "unix:") {
		return 0, problem.New(problem.Usage, "programs cannot use a server's socket").WithHint("give the server's address with --server, or have them use none: --server ''")
	}
	if strings.ContainsAny(c.Name, " \t\n\"'/") || c.Name == "" {
		return 0, problem.New(problem.Usage, "the name has no spaces, quotes and slashes").WithHint("leave --name out")
	}
	if base == "" {
		return 0, c.alone(p)
	}
	base = strings.TrimSuffix(base, "/")
	bearer := map[string]any{"Authorization": "Bearer " + key}
	switch c.Client {
	case "claude-code":
		_, err = fmt.Fprintf(p.Out, "claude mcp add --transport http %s %s/mcp --header \"Authorization: Bearer %s\"\n", c.Name, base, key)
	case "codex":
		_, err = fmt.Fprintf(p.Out, "codex mcp add %s --url %s/mcp --bearer-token-env-var COVE_KEY\n", c.Name, base)
	case "claude-desktop": // takes no address
		var self string
		if self, err = os.Executable(); err == nil {
			err = c.put(p, map[string]any{"command": self, "args": []string{"mcp", "--server", base}, "env": map[string]string{"COVE_KEY": key}})
		}
	case "cursor":
		err = c.put(p, map[string]any{"url": base + "/mcp", "headers": bearer})
	case "gemini":
		err = c.put(p, map[string]any{"httpUrl": base + "/mcp", "headers": bearer})
	case "vscode":
		err = c.put(p, map[string]any{"type": "http", "url": base + "/mcp", "headers": bearer})
	}
	return 0, err
}

// placed are the variables that say where cove has its settings and sessions. A program that was not started from the user's shell does not have them.
var placed = []string{"COVE_CONFIG", "COVE_HOME", "COVE_RUNTIME", "COVE_SESSIONS"}

// alone has a program start cove without a server.
func (c *mcpInstall) alone(p *Program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args, env := []string{"mcp"}, map[string]string{}
	if c.Server != nil { // although the settings may name one
		args = append(args, "--server=")
	}
	for _, name := range placed {
		if at := p.Getenv(name); at != "" {
			if env[name], err = filepath.Abs(at); err != nil {
				return err
			}
		}
	}
	by := map[string]string{"claude-code": "claude mcp add %s%s -- %s\n", "codex": "codex mcp add %s%s -- %s\n"}[c.Client]
	if by == "" {
		entry := map[string]any{"command": self, "args": args}
		if c.Client == "vscode" {
			entry["type"] = "stdio"
		}
		if len(env) > 0 {
			entry["env"] = env
		}
		return c.put(p, entry)
	}
	var given strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		given.WriteString(" --env " + quoted(name+"="+env[name]))
	}
	_, err = fmt.Fprintf(p.Out, by, c.Name, given.String(), quoted(self)+" "+strings.Join(args, " "))
	return err
}

// quoted is a word for a shell.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("/._-=+:,@%", r) && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z')
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// settings are the file of a program's settings, and the member of it that has the servers.
func (c *mcpInstall) settings(p *Program) (file, member string) {
	home := p.Getenv("HOME")
	switch c.Client {
	case "claude-desktop":
		return filepath.Join(home, ".config", "Claude", "claude_desktop_config.json"), "mcpServers"
	case "gemini":
		return filepath.Join(home, ".gemini", "settings.json"), "mcpServers"
	case "vscode":
		return filepath.Join(".vscode", "mcp.json"), "servers"
	}
	return filepath.Join(home, ".cursor", "mcp.json"), "mcpServers"
}

// put puts the server into a program's settings, a JSON object. What is there besides stays.
func (c *mcpInstall) put(p *Program, entry map[string]any) error {
	file, member := c.settings(p)
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
