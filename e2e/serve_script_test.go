package e2e_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptServer is the server of one script.
type scriptServer struct {
	cmd *exec.Cmd
	log *watched
}

// serveScript starts `cove serve` with these arguments for the rest of a script and points cove at it: serve [ARGS]. "serve stop" ends it as an operator
// does, and checks that it ends well.
func serveScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve [ARGS] | serve stop")
	}
	s, _ := ts.Value("server").(*scriptServer)
	if len(args) == 1 && args[0] == "stop" {
		ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
		if err := s.cmd.Wait(); err != nil {
			ts.Fatalf("the server ended with %v:\n%s", err, s.log.String())
		}
		return
	}
	path, err := exec.LookPath("cove")
	for _, dir := range strings.Split(ts.Getenv("PATH"), ":") {
		if info, serr := os.Stat(dir + "/cove"); serr == nil && !info.IsDir() {
			path, err = dir+"/cove", nil
			break
		}
	}
	ts.Check(err)
	*s = scriptServer{exec.Command(path, append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...), &watched{}}
	s.cmd.Dir, s.cmd.Stderr = ts.MkAbs("."), s.log
	for _, name := range []string{"PATH", "HOME", "COVE_HOME", "COVE_RUNTIME", "COVE_DATABASE", "COVE_SERVER_FOLDER", "COVE_PACKAGES", "OLLAMA_HOST", "OPENAI_BASE_URL", "OPENAI_API_KEY", "COVE_MODEL",
		"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "COVE_FIRST_KEY", "TMPDIR"} {
		s.cmd.Env = append(s.cmd.Env, name+"="+ts.Getenv(name))
	}
	s.cmd.Env = append(s.cmd.Env, "COVE_POOL=1")
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = s.cmd.Wait()
		ts.Fatalf("the server did not start: %s", s.log.String())
	}
	var about struct{ Address, Key string }
	ts.Check(json.Unmarshal([]byte(line), &about))
	ts.Setenv("COVE_SERVER", about.Address)
	if about.Key != "" {
		ts.Setenv("COVE_KEY", about.Key)
	}
}
