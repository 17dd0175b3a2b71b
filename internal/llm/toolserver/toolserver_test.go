package toolserver_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/llm/toolserver"
	"cove/internal/server/auth"
)

const secret = "s3cret-and-long"

// place is servers of this test binary, by the names of their roles with - for blanks.
type place struct {
	*testing.T
	*toolserver.Servers
	mu  sync.Mutex
	log bytes.Buffer
}

func (p *place) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *place) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// configured are settings as a file has them.
func configured(t *testing.T, text string) []toolserver.Config {
	t.Helper()
	path := t.TempDir() + "/tools.json"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := toolserver.Read(path, func(name string) string { return map[string]string{"FROM_OUTSIDE": secret}[name] })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newPlace(t *testing.T, change func(*toolserver.Config), roles ...string) *place {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]any{}
	for _, role := range roles {
		entries[strings.ReplaceAll(role, " ", "-")] = map[string]any{"command": self, "env": map[string]string{roleKey: role, "MY_TOKEN": "${FROM_OUTSIDE}"}}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	all := configured(t, string(text))
	for i := range all {
		if change != nil {
			change(&all[i])
		}
	}
	p := &place{T: t}
	p.Servers = toolserver.New(toolserver.Options{Servers: all, Getenv: os.Getenv, Log: slog.New(slog.NewTextHandler(p, nil)), Version: "1"})
	t.Cleanup(func() {
		p.Close()
	})
	return p
}

func (p *place) call(name, arguments string) tool.Result {
	return p.Call(p.Context(), auth.LocalProject, "", tool.Call{Number: 1, Name: name, Arguments: json.RawMessage(cmp.Or(arguments, "{}"))})
}

// start has servers started before their first calls: a start has a bound of its own, and takes longer than a call may on a machine that does much else.
func (p *place) start(servers ...string) {
	p.Helper()
	if _, err := p.Offer(p.Context(), auth.LocalProject, servers); err != nil {
		p.Fatal(err)
	}
}

// wants has a call answered with a value, or with an error that has the words.
func (p *place) wants(name, arguments, value, failure string) {
	p.Helper()
	r := p.call(name, arguments)
	if string(r.Value) != value || failure == "" && r.Err != "" || !strings.Contains(r.Err, failure) {
		p.Errorf("%s returned %.300q, failed with %.500q; wanted %q, %q", name, r.Value, r.Err, value, failure)
	}
}

func TestToolsOfAServer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, "good")
	tools, err := p.Offer(t.Context(), auth.LocalProject, []string{"good", "good"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tools)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]tool.Tool{}
	for function, one := range set.All {
		functions[function] = one
	}
	same := functions["good_same"]
	if same.Name != "good.same" || same.Description != "Returns what it gets." || !strings.Contains(string(same.Parameters), `"z"`) || !strings.Contains(string(same.Result), `"z"`) || len(functions) != 11 {
		t.Errorf("offered %v", functions)
	}
	p.wants("good.same", `{"z":7,"a":"b"}`, `{"a":"b","z":7}`, "")
	p.wants("good.text", "", `"one"`, "")
	p.wants("good.texts", "", `["one","two"]`, "")
	p.wants("good.nothing", "", "null", "")
	p.wants("good.picture", "", `[{"data":"YWJj","mimeType":"image/png","type":"image"},{"mimeType":"text/plain","text":"hello","type":"resource","uri":"file:///a"}]`, "")
	p.wants("good.fail", "", "", "it is broken, as [secret] is")
	p.wants("good.none", "", "", "does not have this tool")
	p.wants("good", "", "", "does not have this tool")
	p.wants("bad.text", "", "", "no tool server")
	p.wants("good.same", `{"z":"no number"}`, "", `type`)

	// What it may know of this process is what was said.
	var environment string
	if err := json.Unmarshal(p.call("good.environment", "").Value, &environment); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for line := range strings.Lines(environment) {
		key, _, _ := strings.Cut(line, "=")
		keys[key] = true
	}
	for _, key := range []string{"PATH", "HOME", "LANG", roleKey, "MY_TOKEN"} {
		delete(keys, key)
	}
	if len(keys) > 0 || !strings.Contains(environment, "MY_TOKEN=[secret]") {
		t.Errorf("its environment is %s", environment)
	}

	// A list that changes is read again.
	p.wants("good.grown", "", "", "does not have this tool")
	p.wants("good.grow", "", `"done"`, "")
	p.until("the new tool is known", func() bool {
		tools, err := p.Offer(t.Context(), auth.LocalProject, []string{"good"})
		return err == nil && len(tools) == 12
	})
	p.wants("good.grown", "", `"I am new"`, "")
}

// until waits for a fact.
func (p *place) until(what string, is func() bool) {
	p.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("not so: %s\n%s", what, p.logged())
		}
	}
}

// alive says whether there is a process, dead ones that nobody has asked for included.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func (p *place) pid(server string) int {
	p.Helper()
	var text string
	r := p.call(server+".pid", "")
	if err := json.Unmarshal(r.Value, &text); err != nil {
		p.Fatalf("%v %s", err, r.Err)
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		p.Fatal(err)
	}
	return pid
}

func TestAServerThatDies(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, "good")
	p.wants("good.die", "", "", "in the middle of the call")
	first := p.pid("good") // it was started again
	answers := make(chan tool.Result, 5)
	for range 5 {
		go func() { answers <- p.call("good.wait", "") }()
	}
	p.wants("good.text", "", `"one"`, "") // the others are under way meanwhile, as far as one can see
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if r := <-answers; r.Err == "" {
			t.Errorf("a call on a server that was killed returned %s", r.Value)
		}
	}
	if second := p.pid("good"); second == first {
		t.Error("the server that was killed answers")
	}
	p.until("the first is gone", func() bool { return !alive(first) })
}

func TestNoProcessIsLeft(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, "family")
	pid := p.pid("family")
	family := func() int { return len(toolserver.Descendants(parent(t, pid))) }
	p.until("it has children", func() bool { return family() >= 5 })
	all := toolserver.Descendants(parent(t, pid))
	p.Close()
	for _, one := range all {
		if alive(one) {
			t.Errorf("process %d of %v is left", one, all)
		}
	}
	p.wants("family.text", "", "", "this process ends")
}

// TestNothingOutlivesItsOwner kills the process that runs a server, in the middle of a call.
func TestNothingOutlivesItsOwner(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(self)
	owner.Env = append(os.Environ(), roleKey+"=owner")
	out, err := owner.StdoutPipe()
	if err == nil {
		err = owner.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, `"`) {
		t.Errorf("the owner says %s, %v", line, err)
	}
	p.until("the family is there", func() bool { return len(toolserver.Descendants(owner.Process.Pid)) >= 6 })
	family := toolserver.Descendants(owner.Process.Pid)
	if err := owner.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = owner.Wait()
	p.until("all are gone", func() bool { return !slices.ContainsFunc(family, alive) })
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	parent, ok := toolserver.ParentOf(pid)
	if !ok {
		t.Fatalf("process %d is gone", pid)
	}
	return parent
}

func TestAnIdleServerIsEnded(t *testing.T) {
	t.Parallel()
	p := newPlace(t, func(c *toolserver.Config) { c.Idle = time.Second }, "good")
	first := p.pid("good")
	p.until("it has ended", func() bool { return !alive(first) })
	if second := p.pid("good"); second == first {
		t.Error("the server that was ended answers")
	}
}

func TestCallsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	p := newPlace(t, func(c *toolserver.Config) {
		if c.Name == "silent" || c.Name == "deaf" {
			c.Timeout = 2 * time.Second
		}
		c.AtOnce = 2
	}, "good", "silent", "deaf")
	p.start("silent", "deaf")
	p.wants("silent.t", "", "", "it went on for longer than 2s")
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan tool.Result)
	for range 4 { // two of them wait for the others
		go func() {
			answers <- p.Call(ctx, auth.LocalProject, "", tool.Call{Name: "good.wait", Arguments: []byte("{}")})
		}()
	}
	cancel()
	for range 4 {
		if r := <-answers; !strings.Contains(r.Err, "the code that called has ended") {
			t.Errorf("%s %s", r.Value, r.Err)
		}
	}
	p.wants("good.text", "", `"one"`, "")
	// One that does not read what it is told is given up, with those who wait to tell it something.
	large := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 900_000))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			// A call that was being told when another one's time was over ends with the server.
			r := p.Call(t.Context(), auth.LocalProject, "", tool.Call{Name: "deaf.t", Arguments: []byte(large)})
			if !strings.Contains(r.Err, "it went on for longer than 2s") && !strings.Contains(r.Err, "in the middle of the call") {
				t.Errorf("%s %s", r.Value, r.Err)
			}
		})
	}
	all.Wait()
	p.until("it was given up", func() bool { return strings.Contains(p.logged(), "tool_server=deaf why=") })
}

// TestAServerThatHangs: one that answers nothing after a call that took too long is started anew, so that calls that follow are answered.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	mark := t.TempDir() + "/mark"
	p := newPlace(t, func(c *toolserver.Config) { c.Timeout, c.Env["MARK"] = 2*time.Second, mark }, "hangs once")
	p.start("hangs-once")
	p.wants("hangs-once.t", "", "", "it went on for longer than 2s")
	p.until("it answers again", func() bool { return string(p.call("hangs-once.t", "").Value) == `"after all"` })
}

// TestASlowServerGoesOn: one that answers a ping after a call that took too long, in whatever words, is left alone.
func TestASlowServerGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, func(c *toolserver.Config) { c.Timeout = 2 * time.Second }, "slow once", "slow once pingless")
	p.start("slow-once", "slow-once-pingless")
	for _, name := range []string{"slow-once", "slow-once-pingless"} {
		before := string(p.call(name+".t", "").Value)
		p.wants(name+".t", "", "", "it went on for longer than 2s")
		after := strings.Replace(before, " 0", " 1", 1) // the same process, after a ping
		p.until("it was asked whether it answers", func() bool {
			r := p.call(name+".t", "")
			if got := string(r.Value); got != before && got != after {
				t.Fatalf("%s: %s %s, was %s", name, got, r.Err, before)
			}
			return string(r.Value) == after
		})
	}
}

// TestAnswersThatCannotBeRead fail the call that they are for at once. They end the connection only where that is not to be seen, or where they are too large to be looked at.
func TestAnswersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, "no number", "deep", "100 MB", "nobody", "noise")
	for range 2 {
		p.wants("no-number.t", "", "", "gave an answer that cannot be read: ")
		p.wants("deep.t", "", "", "gave an answer that cannot be read: ")
		p.wants("100-MB.t", "", "", "a message of more than 9 MiB; its connection was ended")
		p.wants("nobody.t", "", "", "a message that is no JSON; its connection was ended")
		p.wants("noise.t", "", `"after all"`, "")
	}
	for server, ends := range map[string]int{"no-number": 0, "deep": 0, "100-MB": 2, "nobody": 2, "noise": 0} {
		p.until(fmt.Sprintf("the connection to %s has ended %d times", server, ends), func() bool {
			return strings.Count(p.logged(), fmt.Sprintf("msg=\"a connection to a tool server has ended\" tool_server=%s ", server)) == ends
		})
	}
}

func TestServersThatBreakTheRules(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, "noisy", "gone", "wrong list", "bad schemas", "endless pages", "large pages", "huge result", "large result", "no result", "many parts", "needs input", "numbers", "unasked", "asks", "an error")
	p.wants("noisy.text", "", `"one"`, "")
	p.until("what it prints is in the log", func() bool { return strings.Contains(p.logged(), "the token is [secret]") })
	if strings.Contains(p.logged(), secret) || strings.Count(p.logged(), "a tool server says") > 200 || !strings.Contains(p.logged(), "Welcome to my server!") {
		t.Errorf("the log has %d bytes: %.1000s", len(p.logged()), p.logged())
	}
	for server, code := range map[string]problem.Code{"gone": problem.ToolServerUnreachable, "wrong-list": problem.ToolServerUnreachable, "large-pages": problem.ToolServerInvalid, "other": problem.ToolServerNotFound} {
		_, err := p.Offer(t.Context(), auth.LocalProject, []string{server})
		if !problem.Has(err, code) {
			t.Errorf("%s: %v", server, err)
		}
	}
	p.wants("gone.t", "", "", "its program does not start, ends, or does not speak the protocol")
	p.wants("huge-result.t", "", "", "more than 9 MiB")
	p.wants("huge-result.t", "", "", "more than 9 MiB") // it was started again
	p.wants("no-result.t", "", "", "no result")
	p.wants("many-parts.t", "", "", "no result, or one of too many parts")
	p.wants("needs-input.t", "", "", "asks for input")
	p.wants("numbers.t", "", `{"z":12345678901234567890,"a":1.10}`, "")
	p.wants("unasked.t", "", `"after all"`, "")
	p.wants("an-error.t", "", "null", "")
	if r := p.call("asks.t", ""); r.Err == "" {
		t.Errorf("a server that asks only: %s", r.Value)
	}
	if r := p.call("large-result.t", ""); r.Err != "" || len(r.Value) < 5<<20 { // package tool refuses it
		t.Errorf("a large result: %.100s %s", r.Value, r.Err)
	}
	tools, err := p.Offer(t.Context(), auth.LocalProject, []string{"bad-schemas", "endless-pages"})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, one := range tools {
		names[one.Name] = len(one.Description)
	}
	if len(names) != 3+50 || names["bad-schemas.x_y_z"] > 8<<10 || names["bad-schemas.x_y_z"] < 8000 {
		t.Errorf("offered %v", names)
	}
	for _, s := range p.List(t.Context(), auth.LocalProject) {
		if s.Name == "bad-schemas" && len(s.Without) != 5 || s.Name == "endless-pages" && len(s.Without) != 1 || s.Name == "gone" && s.Problem == nil {
			t.Errorf("%s lacks %v, %v", s.Name, s.Without, s.Problem)
		}
	}
}

func TestWhoMayUseAServer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, func(c *toolserver.Config) { c.Tools = []string{"text*", "fail"} }, "good")
	tools, err := p.Offer(t.Context(), auth.LocalProject, []string{"good"})
	if err != nil || len(tools) != 3 {
		t.Fatalf("%v, %v", tools, err)
	}
	p.wants("good.pid", "", "", "does not have this tool")
	if _, err := p.Offer(t.Context(), "prj_other", []string{"good"}); !problem.Has(err, problem.ToolServerNotFound) {
		t.Errorf("another project: %v", err)
	}
	if r := p.Call(t.Context(), "prj_other", "", tool.Call{Name: "good.text", Arguments: []byte("{}")}); !strings.Contains(r.Err, "no tool server") {
		t.Errorf("another project calls: %s %s", r.Value, r.Err)
	}
	if list := p.List(t.Context(), "prj_other"); len(list) != 0 {
		t.Errorf("another project sees %v", list)
	}
}
