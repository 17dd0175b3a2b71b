package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// desk is servers of tools that one project may use.
type desk struct {
	project string
	calls   chan string
}

func (d desk) Offer(_ context.Context, project string, names []string) ([]tool.Tool, error) {
	if project != d.project || !slices.Equal(names, []string{"desk"}) {
		return nil, problem.New(problem.ToolServerNotFound, "there is no such server")
	}
	return []tool.Tool{{Name: "desk.good"}, {Name: "desk.bad"}, {Name: "desk.slow"}}, nil
}

func (d desk) Call(ctx context.Context, project, key string, c tool.Call) tool.Result {
	d.calls <- fmt.Sprintf("%s for %s %s", c.Name, project, key)
	switch c.Name {
	case "desk.bad":
		return tool.Failed("it is broken")
	case "desk.slow":
		<-ctx.Done()
		return tool.Failed("nobody waits any more")
	}
	return tool.Result{Value: json.RawMessage("7")}
}

func (d desk) List(_ context.Context, project string) []tool.Server {
	if project != d.project {
		return nil
	}
	return []tool.Server{{Name: "desk"}}
}

func TestCodeCallsServersOfTools(t *testing.T) {
	t.Parallel()
	d := desk{auth.LocalProject, make(chan string, 10)}
	l, who, other := newLife(t, func(o *hub.Options) { o.ToolServers = d }), someone(auth.LocalProject), someone("prj_other")
	s := l.session(who)
	own, err := tool.NewSet([]tool.Tool{{Name: "own"}})
	if err != nil {
		t.Fatal(err)
	}
	tools := &kernel.Tools{Set: own, Call: tool.Each(func(_ context.Context, c tool.Call) tool.Result {
		return tool.Result{Value: json.RawMessage(`"` + c.Name + `"`)}
	})}
	e, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "call desk.good\ncall desk.bad\ncall own", Servers: []string{"desk"}, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	if got, done := l.wait(who, e.ID); fmt.Sprint(got) != `[7 it is broken "own"]` || done.Outcome != kernel.OutcomeOK {
		t.Errorf("the code heard %q, %+v", got, done)
	}
	if first := <-d.calls; first != "desk.good for "+who.Project+" "+who.Key {
		t.Errorf("called: %s", first)
	}
	<-d.calls

	// What is interrupted in the middle of a call has one end, and the call is in the audit log.
	e, err = l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "call desk.slow", Servers: []string{"desk"}})
	if err != nil {
		t.Fatal(err)
	}
	<-d.calls
	if _, err := l.InterruptExecution(t.Context(), who, e.ID); err != nil {
		t.Fatal(err)
	}
	l.wait(who, e.ID)
	if e, err = l.Execution(t.Context(), who, e.ID); err != nil || !e.State.Final() {
		t.Errorf("ended as %s, %v", e.State, err)
	}
	rows, err := l.store.Rows(t.Context(), audit.Query{Project: who.Project, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]string{}
	for _, row := range rows {
		if row.Action == "tool.call" {
			outcomes[row.Detail] = row.Outcome
		}
	}
	if fmt.Sprint(outcomes) != "map[desk.bad:tool_failed desk.good:ok desk.slow:tool_failed own:ok]" {
		t.Errorf("the audit log has %v", outcomes)
	}

	for _, n := range []hub.NewExecution{{Servers: []string{"bench"}}, {Servers: []string{"desk", "bench"}}} {
		n.Session, n.Code = s.ID, "say hello"
		_, err := l.StartExecution(t.Context(), who, n)
		fails(t, err, "tool_server_not_found")
	}
	_, err = l.StartExecution(t.Context(), other, hub.NewExecution{Session: l.session(other).ID, Code: "say hello", Servers: []string{"desk"}})
	fails(t, err, "tool_server_not_found")
	twice, err := tool.NewSet([]tool.Tool{{Name: "desk.good"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello", Servers: []string{"desk"}, Tools: &kernel.Tools{Set: twice, Call: tools.Call}})
	fails(t, err, "tool_invalid")

	if list, err := l.ToolServers(t.Context(), who); err != nil || len(list) != 1 {
		t.Errorf("listed %v, %v", list, err)
	}
	if list, err := l.ToolServers(t.Context(), other); err != nil || len(list) != 0 {
		t.Errorf("another project sees %v, %v", list, err)
	}
	none := newLife(t, nil)
	_, err = none.StartExecution(t.Context(), who, hub.NewExecution{Session: none.session(who).ID, Code: "say hello", Servers: []string{"desk"}})
	fails(t, err, "tool_server_not_found")
}
