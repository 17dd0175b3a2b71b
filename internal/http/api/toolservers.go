package api

import (
	"context"
	"encoding/json"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/server/auth"
)

// ToolServer is a server whose tools code may call.
type ToolServer struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Tools       []ServerTool       `json:"tools"`
	Without     []ToolWithout      `json:"without" doc:"What the server has and code is not offered"`
	Problem     *ToolServerProblem `json:"problem,omitempty" doc:"Why nothing is known of its tools"`
}

// ServerTool is a function that code may call.
type ServerTool struct {
	Name        string          `json:"name" doc:"SERVER.TOOL"`
	Function    string          `json:"function" doc:"What it is called in Python: tools.FUNCTION() waits, tools.aio.FUNCTION() is awaited"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty" doc:"A JSON Schema of its arguments"`
	Result      json.RawMessage `json:"result,omitempty" doc:"A JSON Schema of what it returns"`
	Asks        bool            `json:"asks,omitempty" doc:"Somebody is asked before each call: see POST /executions/{execution}/calls/{number}/approve"`
}

// ToolWithout is a tool that code is not offered.
type ToolWithout struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// ToolServerProblem is why a server cannot be used.
type ToolServerProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// ToolServerOf is a server as clients see it.
func ToolServerOf(s tool.Server) ToolServer {
	out := ToolServer{Name: s.Name, Description: s.Description, Tools: []ServerTool{}, Without: []ToolWithout{}}
	for _, w := range s.Without {
		out.Without = append(out.Without, ToolWithout(w))
	}
	set, err := tool.NewSet(s.Tools)
	if err != nil {
		s.Problem = problem.Of(err)
	} else {
		for function, t := range set.All {
			out.Tools = append(out.Tools, ServerTool{Name: t.Name, Function: function, Description: t.Description, Parameters: t.Parameters, Result: t.Result, Asks: t.Asks})
		}
	}
	if s.Problem != nil {
		p, _ := problem.Public(s.Problem)
		out.Problem = &ToolServerProblem{Code: p.Code, Message: p.Message, Hint: p.Hint}
	}
	return out
}

func (s *server) addToolServers() {
	add(s, operation{id: "tool_server.list", method: http.MethodGet, path: "/tool-servers", tag: "executions", action: auth.SessionsRead, summary: "List the tool servers that code may call",
		about:   "Those that the operator has set up for your project, each with its tools. Servers that do not run are started, which may take a minute. An execution names the servers in `tool_servers`.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/tool-servers`},
		func(ctx context.Context, who auth.Principal, _ *struct{}) (List[ToolServer], error) {
			out, err := s.o.Hub.ToolServers(ctx, who)
			return List[ToolServer]{Items: each(out, ToolServerOf)}, err
		})
}
