package toolserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/llm/tool"
	"cove/internal/llm/toolserver"
	"cove/internal/server/auth"
)

// roleKey is the variable that makes this test binary a server of tools.
const roleKey = "TOOLSERVER_ROLE"

func TestMain(m *testing.M) {
	if toolserver.IsWarden(os.Args) {
		toolserver.Ward(os.Args)
	}
	if role := os.Getenv(roleKey); role != "" {
		play(role)
		return
	}
	os.Exit(m.Run())
}

// play is a server of tools in a process of its own.
func play(role string) {
	switch role {
	case "good":
		_ = goodServer().Run(context.Background(), &sdk.StdioTransport{})
	case "noisy":
		fmt.Println("Welcome to my server!\n[1, 2]\n{\"json\": \"but no message\"}")
		fmt.Fprintln(os.Stderr, "the token is "+os.Getenv("MY_TOKEN"))
		for range 5000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 1000))
		}
		_ = goodServer().Run(context.Background(), &sdk.StdioTransport{})
	case "family": // with a child that has left its group and session, and does not mind the end of its input
		for _, args := range [][]string{{"sleep", "1000"}, {"sh", "-c", "trap '' TERM HUP; sleep 1001 & sleep 1002"}} {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		_ = goodServer().Run(context.Background(), &sdk.StdioTransport{})
		time.Sleep(time.Hour)
	case "owner": // of a family, until it is killed
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		all := toolserver.New(toolserver.Options{Servers: []toolserver.Config{{Name: "family", Command: self, Env: map[string]string{roleKey: "family"}}}, Getenv: os.Getenv})
		r := all.Call(context.Background(), auth.LocalProject, "", tool.Call{Name: "family.pid", Arguments: []byte("{}")})
		fmt.Println(string(r.Value), r.Err)
		all.Call(context.Background(), auth.LocalProject, "", tool.Call{Name: "family.wait", Arguments: []byte("{}")})
	case "gone":
		os.Exit(3)
	case "mute":
		time.Sleep(time.Hour)
	default:
		rawServer(role)
	}
}

// empty are no arguments.
type empty struct{}

// goodServer is one with tools that do what their names say.
func goodServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "good", Version: "1"}, nil)
	texts := func(t ...string) *sdk.CallToolResult {
		out := &sdk.CallToolResult{}
		for _, one := range t {
			out.Content = append(out.Content, &sdk.TextContent{Text: one})
		}
		return out
	}
	type pair struct {
		Z int    `json:"z"`
		A string `json:"a,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "same", Description: "Returns what it gets."}, func(_ context.Context, _ *sdk.CallToolRequest, in pair) (*sdk.CallToolResult, pair, error) {
		return nil, in, nil
	})
	add := func(name string, perform func(ctx context.Context) *sdk.CallToolResult) {
		sdk.AddTool(s, &sdk.Tool{Name: name}, func(ctx context.Context, _ *sdk.CallToolRequest, _ empty) (*sdk.CallToolResult, any, error) {
			return perform(ctx), nil, nil
		})
	}
	add("text", func(context.Context) *sdk.CallToolResult { return texts("one") })
	add("texts", func(context.Context) *sdk.CallToolResult { return texts("one", "two") })
	add("nothing", func(context.Context) *sdk.CallToolResult { return &sdk.CallToolResult{} })
	add("picture", func(context.Context) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: []byte("abc"), MIMEType: "image/png"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: "hello"}}}}
	})
	add("fail", func(context.Context) *sdk.CallToolResult {
		r := texts("it is broken, as " + os.Getenv("MY_TOKEN") + " is")
		r.IsError = true
		return r
	})
	add("environment", func(context.Context) *sdk.CallToolResult { return texts(strings.Join(os.Environ(), "\n")) })
	add("pid", func(context.Context) *sdk.CallToolResult { return texts(fmt.Sprint(os.Getpid())) })
	add("die", func(context.Context) *sdk.CallToolResult { os.Exit(1); return nil })
	add("wait", func(ctx context.Context) *sdk.CallToolResult {
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return texts("late")
	})
	add("grow", func(context.Context) *sdk.CallToolResult {
		add("grown", func(context.Context) *sdk.CallToolResult { return texts("I am new") })
		return texts("done")
	})
	return s
}

// rawServer is a server that keeps to no more of the protocol than its role says.
func rawServer(role string) {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	say := func(v any) {
		text, _ := json.Marshal(v)
		_, _ = out.Write(append(text, '\n'))
		_ = out.Flush()
	}
	type object = map[string]any
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	pages, calls, pings := 0, 0, 0
	for in.Scan() {
		var q struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
		}
		_ = json.Unmarshal(in.Bytes(), &q)
		reply := func(result any) { say(object{"jsonrpc": "2.0", "id": q.ID, "result": result}) }
		switch q.Method {
		case "server/discover":
			say(object{"jsonrpc": "2.0", "id": q.ID, "error": object{"code": -32601, "message": "no such method"}})
		case "initialize":
			reply(object{"protocolVersion": "2025-06-18", "capabilities": object{"tools": object{}}, "serverInfo": object{"name": role, "version": "1"}})
		case "tools/list":
			tools := []any{object{"name": "t", "inputSchema": object{"type": "object"}}}
			switch role {
			case "wrong list":
				reply(object{"tools": "none"})
				continue
			case "bad schemas":
				tools = append(tools, object{"name": "u", "inputSchema": object{"type": "object", "properties": object{"a": object{"type": "nonsense"}}}}, object{"name": "v", "inputSchema": object{"type": "object"}, "outputSchema": object{"$ref": "file:///etc/passwd"}},
					object{"name": "x y/z", "description": strings.Repeat("é", 100_000), "inputSchema": object{"type": "object"}}, object{"name": "x_y_z", "inputSchema": object{"type": "object"}}, object{"name": strings.Repeat("n", 200), "inputSchema": object{"type": "object"}},
					object{"name": "large", "inputSchema": object{"type": "object", "description": strings.Repeat("x", 200_000)}}, object{"name": "", "inputSchema": object{"type": "object"}})
			case "endless pages":
				pages++
				reply(object{"tools": []any{object{"name": fmt.Sprint("t", pages), "inputSchema": object{"type": "object"}}}, "nextCursor": fmt.Sprint(pages)})
				continue
			case "large pages":
				pages++
				reply(object{"tools": []any{}, "nextCursor": fmt.Sprint(pages), "junk": strings.Repeat("x", 4<<20)})
				continue
			}
			reply(object{"tools": tools})
		case "ping":
			switch pings++; role {
			case "slow once":
				reply(object{})
			case "slow once pingless":
				say(object{"jsonrpc": "2.0", "id": q.ID, "error": object{"code": -32601, "message": "no such method"}})
			}
		case "tools/call":
			if calls++; strings.HasPrefix(role, "slow once") {
				if calls != 2 {
					reply(object{"content": []any{object{"type": "text", "text": fmt.Sprint(os.Getpid(), " ", pings)}}})
				}
				continue
			}
			rawCall(role, fmt.Sprint(q.ID), say, reply)
		}
	}
}

func rawCall(role, id string, say, reply func(any)) {
	type object = map[string]any
	after := object{"content": []any{object{"type": "text", "text": "after all"}}}
	switch role {
	case "hangs once": // the mark is of those that started before
		if mark, err := os.OpenFile(os.Getenv("MARK"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = mark.Close()
			time.Sleep(time.Hour)
		}
		reply(after)
	case "no number":
		fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"structuredContent":{"x":NaN}}}`)
	case "deep":
		fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"structuredContent":{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}}`)
	case "100 MB":
		fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 100_000_000) + `"}]}}`)
	case "nobody":
		fmt.Println(`{"jsonrpc":"2.0","result":{"content":[],"structuredContent":{"x":NaN}}}`)
	case "noise":
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":NaN}}`)
		reply(after)
	case "huge result":
		reply(object{"content": []any{object{"type": "text", "text": strings.Repeat("x", 20<<20)}}})
	case "large result": // more than code gets, and less than a message may have
		reply(object{"content": []any{object{"type": "text", "text": strings.Repeat("x", 5<<20)}}})
	case "no result":
		reply([]any{1, 2, 3})
	case "many parts":
		reply(object{"content": make([]int, 100_000)})
	case "needs input":
		reply(object{"resultType": "input_required", "inputRequests": object{"a": object{"method": "elicitation/create", "params": object{}}}})
	case "an error":
		say(object{"jsonrpc": "2.0", "id": 0, "error": object{"code": 1, "message": "x"}}) // of no request
		reply(nil)
	case "numbers":
		reply(object{"content": []any{}, "structuredContent": json.RawMessage(`{"z":12345678901234567890,"a":1.10}`)})
	case "unasked":
		for n := range 8000 {
			say(object{"jsonrpc": "2.0", "method": "notifications/message", "params": object{"level": "info", "data": n}})
		}
		reply(after)
	case "asks":
		for n := range 1000 {
			say(object{"jsonrpc": "2.0", "id": fmt.Sprint("q", n), "method": "ping"})
		}
	case "deaf":
		select {}
	case "silent":
	}
}
