package e2e_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/telemetry"
	"cove/internal/testkit/testneeds"
)

// TestAlertRules has Prometheus's own checker read the alert rules and run their tests, and a server have every metric that they, the dashboard and the guide name.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		testneeds.Absent(t, testneeds.Promtool, err)
	}
	rules, err := filepath.Abs("../deploy/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	run := func(in string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), promtool, args...)
		c.Dir, c.Stdin = rules, strings.NewReader(in)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("", "check", "rules", "cove.rules.yaml")
	run("", "test", "rules", "cove.rules_test.yaml")

	s := startServer(t, t.TempDir(), testKey(t))
	s.once(s.session(), "word", "print(6 * 7)")
	metrics := string(s.must("GET", "/metrics", nil, nil).body)
	run(metrics, "check", "metrics")
	there := map[string]bool{"up": true}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(metrics, -1) {
		there[m[1]] = true
	}
	// These appear with the first value of a label: when a model is asked, something is refused, a follower is up to date with an event.
	for _, name := range []string{string(telemetry.Model), string(telemetry.Tokens), string(telemetry.Retries), string(telemetry.Refused), string(telemetry.Delivery)} {
		there[name] = true
	}
	dashboard, err := os.ReadFile("../deploy/grafana/cove.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(dashboard, &board); err != nil || len(board.Panels) < 10 {
		t.Fatalf("the dashboard has %d panels: %v", len(board.Panels), err)
	}
	alerts, err := os.ReadFile(filepath.Join(rules, "cove.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	all := string(alerts)
	for _, m := range regexp.MustCompile("`(cove_[a-z_]+)`").FindAllStringSubmatch(string(guide), -1) {
		all += "\n" + m[1]
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all += "\n" + target.Expr
		}
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b(?:cove|process)_[a-z_]+`).FindAllString(all, -1) {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		if named[name] = true; !there[name] {
			t.Errorf("a rule, the dashboard or the guide names %s, which a server does not have", name)
		}
	}
	if len(named) < 20 {
		t.Errorf("only %d metrics are named", len(named))
	}
}

// TestServiceStoppedBeforeItServes stops a server that is still getting its Python environment, from an index that never answers: systemd, which is told what it is at, must not
// take how it ends for a failure. The unit of the packages says which exit codes are none.
func TestServiceStoppedBeforeItServes(t *testing.T) {
	t.Parallel()
	index, err := net.Listen("tcp", "127.0.0.1:0") // whoever connects waits
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = index.Close() }()
	dir, err := os.MkdirTemp("", "cove-test-") // short: a socket's path has a bound
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = systemd.Close() }()
	address := "http://" + index.Addr().String() + "/simple"
	s := newServer(t, "", testKey(t), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "COVE_HOME="+t.TempDir(), "PIP_INDEX_URL="+address, "UV_DEFAULT_INDEX="+address)
	s.start()
	told := make([]byte, 1<<10)
	if err := systemd.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, err := systemd.Read(told)
	if err != nil || !strings.HasPrefix(string(told[:n]), "STATUS=preparing the Python environment") {
		_ = s.cmd.Process.Kill()
		t.Fatalf("systemd is told %q: %v", told[:n], err)
	}
	unit, err := os.ReadFile("../deploy/package/cove.service")
	if err != nil {
		t.Fatal(err)
	}
	fine := []string{"0"}
	if m := regexp.MustCompile(`(?m)^SuccessExitStatus=(.*)$`).FindSubmatch(unit); m != nil {
		fine = append(fine, strings.Fields(string(m[1]))...)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if r := s.wait(); !slices.Contains(fine, strconv.Itoa(r.code)) {
		t.Errorf("it ends with %d, which systemd takes for a failure; no failures are %q", r.code, fine)
	}
}
