package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// ToolServers are the servers of tools that the settings name. Package toolserver documents the methods.
type ToolServers interface {
	Offer(ctx context.Context, project string, names []string) ([]tool.Tool, error)
	Call(ctx context.Context, project, key string, call tool.Call) tool.Result
	List(ctx context.Context, project string) []tool.Server
	Close()
}

// toolFlags let code call tools.
type toolFlags struct {
	Tools      []string `placeholder:"NAME" help:"Let the code call the tools of these tool servers, in the module tools; cove tools lists them. Repeatable."`
	AskTools   []string `placeholder:"NAME" help:"Ask before each call of these tools, SERVER.TOOL or SERVER.* for several, besides those of which the tool server says so. Repeatable."`
	AllowTools []string `placeholder:"NAME" help:"Call these tools, SERVER.TOOL or SERVER.* for several, without asking. Repeatable."`
}

// open returns the tool servers of the settings, of which none is started yet.
func (f toolFlags) open(p *Program, cfg config.Config) (ToolServers, error) {
	return p.Tools(cfg, slog.New(slog.DiscardHandler))
}

// asker asks about calls as the flags say.
func (f toolFlags) asker(p *Program) *toolAsker {
	return &toolAsker{err: p.Err, hold: p.live.Hold, allowed: f.AllowTools, before: f.AskTools}
}

// offer returns what the code may call, and what ends the servers that perform it.
func (f toolFlags) offer(ctx context.Context, p *Program, cfg config.Config) (tools *kernel.Tools, end func(), err error) {
	if len(f.Tools)+len(f.AskTools) == 0 {
		return nil, func() {}, nil
	}
	servers, err := f.open(p, cfg)
	if err != nil {
		return nil, nil, err
	}
	offered, err := servers.Offer(ctx, auth.LocalProject, f.Tools)
	var set *tool.Set
	if err == nil {
		offered, err = tool.AskBefore(f.AskTools, offered)
	}
	if err == nil {
		set, err = tool.NewSet(offered)
	}
	if err != nil {
		servers.Close()
		return nil, nil, err
	}
	call := tool.Each(func(ctx context.Context, c tool.Call) tool.Result { return servers.Call(ctx, auth.LocalProject, "", c) })
	ask := f.asker(p)
	return &kernel.Tools{Set: set, Patience: kernel.ToolPatience + time.Duration(cfg.Turn.ApprovalWait), Call: tool.Asking(set, func(ctx context.Context, c tool.Call) (tool.Word, error) {
		return ask.about(ctx, c.Name, string(c.Arguments)), nil
	}, call)}, servers.Close, nil
}

type toolsCmd struct {
	serverFlags
	Names []string `arg:"" optional:"" name:"server" help:"Show what these servers have, with what each tool takes."`
	JSON  bool     `name:"json" help:"Print the servers as JSON (GET /api/v1/tool-servers)."`
}

// Help is the long help.
func (toolsCmd) Help() string {
	return `A tool server is a server of the Model Context Protocol that the settings name (tools.file, docs/tools.md). Code calls its tools in the module tools:

    cove run --tools time -c 'import tools; tools.time_get_current_time(timezone="Europe/Berlin")'

This command starts the servers that do not run, and says what is wrong with those that cannot be used.
With --server it lists those of a server that your key may use.

Exit code: 0; 1 a server cannot be used; 125 cove itself failed.`
}

// toolsPatience bounds how long servers may take to start.
const toolsPatience = 2 * time.Minute

func (c *toolsCmd) run(ctx context.Context, p *Program) (int, error) {
	if p.ConfigErr != nil {
		return 0, p.ConfigErr
	}
	base, key, err := c.remote(p.Config)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, toolsPatience)
	defer cancel()
	i := p.interruptible(ctx)
	defer i.stop()
	var all []api.ToolServer
	if base != "" {
		remote := client.New(base, key)
		defer remote.Close()
		all, err = remote.ToolServers(i.soft)
	} else {
		all, err = c.here(i.soft, p)
	}
	if err != nil {
		return 0, err
	}
	if len(c.Names) > 0 {
		if all, err = c.chosen(all); err != nil {
			return 0, err
		}
	}
	if c.JSON {
		return failing(all), p.printJSON(map[string]any{"items": append([]api.ToolServer{}, all...)})
	}
	if len(all) == 0 {
		path, _ := p.Config.ToolsFile()
		notef(p.Err, "there are no tool servers")
		if base == "" {
			fmt.Fprintln(p.Err, "  "+lang.Text("write "+path+"; docs/tools.md shows what it has"))
		}
		return 0, nil
	}
	for _, s := range all {
		c.show(p, s)
	}
	return failing(all), nil
}

// mostToolLog is how much of what servers say in the log is kept for the case that one fails, in bytes.
const mostToolLog = 16 << 10

// here returns the servers of this machine's settings. What the programs of those that fail have printed is shown.
func (c *toolsCmd) here(ctx context.Context, p *Program) ([]api.ToolServer, error) {
	var said tail
	servers, err := p.Tools(p.Config, slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})))
	if err != nil {
		return nil, err
	}
	defer servers.Close()
	var out []api.ToolServer
	for _, s := range servers.List(ctx, auth.LocalProject) {
		one := api.ToolServerOf(s)
		if s.Problem != nil {
			one.Problem.Message = message(s.Problem) // all of it: who calls is the operator
			one.Problem.Hint = "correct it in the file of tool servers; cove tools tries it again"
		}
		out = append(out, one)
	}
	for _, line := range said.lines() {
		if slices.ContainsFunc(out, func(s api.ToolServer) bool {
			return s.Problem != nil && strings.Contains(line, "tool_server="+s.Name+" line=")
		}) {
			fmt.Fprintln(p.Err, "cove: "+lang.Text(oneLine(line)))
		}
	}
	return out, nil
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-mostToolLog):]
	return len(b), nil
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Split(strings.TrimSpace(string(t.text)), "\n")
}

func (c *toolsCmd) chosen(all []api.ToolServer) (out []api.ToolServer, err error) {
	for _, name := range c.Names {
		at := slices.IndexFunc(all, func(s api.ToolServer) bool { return s.Name == name })
		if at < 0 {
			return nil, problem.New(problem.ToolServerNotFound, fmt.Sprintf("there is no tool server %.60q", name)).WithHint("`cove tools` lists those that there are")
		}
		out = append(out, all[at])
	}
	return out, nil
}

// failing is the exit code: 1 where a server cannot be used.
func failing(all []api.ToolServer) int {
	if slices.ContainsFunc(all, func(s api.ToolServer) bool { return s.Problem != nil }) {
		return exitUncaught
	}
	return 0
}

// show writes a server with its tools. What it says of itself is anybody's text.
func (c *toolsCmd) show(p *Program, s api.ToolServer) {
	head := s.Name
	if s.Description != "" {
		head += ": " + oneLine(s.Description)
	}
	fmt.Fprintln(p.Out, head)
	if s.Problem != nil {
		lang.Fprintf(p.Out, "  cannot be used: %s\n  %s\n", lang.Text(oneLine(s.Problem.Message)), lang.Text(oneLine(s.Problem.Hint)))
	}
	for _, t := range s.Tools {
		fmt.Fprintf(p.Out, "  tools.%s(%s)\n", t.Function, oneLine(strings.Join(arguments(t.Parameters), ", ")))
		about, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		if len(c.Names) > 0 {
			about = strings.Join(strings.Fields(t.Description), " ")
		}
		if about != "" {
			fmt.Fprintln(p.Out, "      "+oneLine(about))
		}
	}
	for _, w := range s.Without {
		lang.Fprintf(p.Out, "  without %s: %s\n", oneLine(w.Name), oneLine(w.Why))
	}
}

// arguments are the names of what a tool takes, those that it needs first, others with a question mark.
func arguments(schema json.RawMessage) (names []string) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	names = append(names, s.Required...)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(s.Required, name) {
			names = append(names, name+"?")
		}
	}
	return names
}
