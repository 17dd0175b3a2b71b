package e2e_test

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// probe looks for everything of the host that it is told of, and prints what it found as JSON; of the machine's real
// secrets it says only that it could read them.
const probe = `
import glob, json, os, socket, sys
asked = json.load(open('asked.json'))
found = {'files': [], 'reached': [], 'variables': [], 'kernel': os.uname().release}

for path in asked['files']:
    try:
        text = open(path, errors='replace').read()
        found['files'].append([path, text if 'canary-' in text else 'can be read'])
    except OSError:
        pass
    if os.path.exists(path):
        found['files'].append([path, 'is there'])

for kind, address in asked['addresses']:
    s = socket.socket(getattr(socket, kind))
    s.settimeout(2)
    try:
        s.connect('\0' + address if kind == 'AF_UNIX' else tuple(address))
        found['reached'].append(address)
    except OSError:
        pass
    s.close()
found['interfaces'] = [name for _, name in socket.if_nameindex()]
found['routes'] = len(open('/proc/net/route').readlines()) - 1

for path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/task/*/environ'):
    try:
        entries = open(path, errors='replace').read().split('\0')
    except OSError:
        continue
    found['variables'] += [e for e in entries if e.split('=')[0] in asked['variables'] or 'canary-' in e]
found['variables'] += [k + '=' + v for k, v in os.environ.items() if k in asked['variables'] or 'canary-' in v]
status = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
found['capabilities'] = [status[k].strip() for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb') if k in status]
print(json.dumps(found))
`

// found is what the probe saw of the host.
type found struct {
	Files        [][2]string
	Reached      []any
	Variables    []string
	Kernel       string
	Interfaces   []string
	Routes       int
	Capabilities []string
}

// host is bait on the machine that runs the test: files with a canary, listeners that count their visitors.
type host struct {
	canary    string
	files     []string
	addresses [][2]any
	visits    atomic.Int64
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{canary: "canary-" + rand.Text()}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	inHome := filepath.Join(home, "."+h.canary)
	t.Cleanup(func() { _ = os.Remove(inHome) })
	temp := t.TempDir()
	if err := os.Chmod(filepath.Dir(temp), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inHome, filepath.Join(temp, "bait")} {
		if err := os.WriteFile(path, []byte(h.canary), 0o644); err != nil {
			t.Fatal(err)
		}
		h.files = append(h.files, path)
	}

	h.listen(t, "unix", "@"+h.canary)
	h.addresses = append(h.addresses, [2]any{"AF_UNIX", h.canary})
	_, port, _ := net.SplitHostPort(h.listen(t, "tcp4", "0.0.0.0:0"))
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil {
			n, _ := net.LookupPort("tcp", port)
			h.addresses = append(h.addresses, [2]any{"AF_INET", []any{ip.IP.String(), n}})
		}
	}
	return h
}

// listen counts who connects and returns the address.
func (h *host) listen(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.visits.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// look runs the probe. Away are addresses beyond this machine.
func (h *host) look(t *testing.T, engine string, away ...[2]any) (found, result) {
	t.Helper()
	asked, err := json.Marshal(map[string]any{
		"files": append([]string{"/etc/shadow"}, h.files...), "addresses": append(h.addresses, away...),
		"variables": []string{"COVE_CANARY", "OPENAI_API_KEY", "COVE_RUNTIME", "OLLAMA_HOST"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newCommand(t, "run", "--engine", engine, "-f", "asked.json", "probe.py")
	c.file("asked.json", string(asked))
	c.file("probe.py", probe)
	c.setenv("COVE_CANARY="+h.canary, "OPENAI_API_KEY="+h.canary)
	r := c.run()
	r.ended(t, 0)
	var seen found
	if err := json.Unmarshal([]byte(r.stdout), &seen); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	return seen, r
}

// TestRunIsIsolated looks from inside gVisor for what is open to the same code without a sandbox.
func TestRunIsIsolated(t *testing.T) {
	t.Parallel()
	t.Run("gvisor", func(t *testing.T) {
		t.Parallel()
		h := newHost(t)
		seen, r := h.look(t, "gvisor",
			[2]any{"AF_INET", []any{"169.254.169.254", 80}}, [2]any{"AF_INET", []any{"1.1.1.1", 443}}, [2]any{"AF_INET", []any{"8.8.8.8", 53}})
		if !strings.Contains(seen.Kernel, "gvisor") {
			t.Errorf("the kernel is %q", seen.Kernel)
		}
		if len(seen.Files) != 0 || strings.Contains(r.stdout+r.stderr, h.canary) {
			t.Errorf("the host shows: %q", seen.Files)
		}
		if len(seen.Reached) != 0 || h.visits.Load() != 0 {
			t.Errorf("%v can be reached; %d visits", seen.Reached, h.visits.Load())
		}
		if len(seen.Interfaces) != 1 || seen.Interfaces[0] != "lo" || seen.Routes > 0 {
			t.Errorf("there is a network: %q, %d routes", seen.Interfaces, seen.Routes)
		}
		if len(seen.Variables) != 0 {
			t.Errorf("variables of the host are visible: %q", seen.Variables)
		}
		for _, set := range seen.Capabilities {
			if strings.Trim(set, "0") != "" {
				t.Errorf("capabilities: %q", seen.Capabilities)
			}
		}
	})
	// What makes the checks above mean something: without a sandbox the same code finds it all.
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		h := newHost(t)
		seen, r := h.look(t, "local")
		r.told(t, "there is no isolation")
		if strings.Contains(seen.Kernel, "gvisor") {
			t.Error("the engine local runs in gVisor")
		}
		for _, path := range h.files {
			if !strings.Contains(r.stdout, `["`+path+`", "`+h.canary+`"]`) {
				t.Errorf("%s was not found", path)
			}
		}
		if len(seen.Reached) != len(h.addresses) || h.visits.Load() == 0 {
			t.Errorf("%v were reached of %v, with %d visits", seen.Reached, h.addresses, h.visits.Load())
		}
		for _, name := range []string{"COVE_CANARY", "OPENAI_API_KEY"} {
			if !slices.Contains(seen.Variables, name+"="+h.canary) {
				t.Errorf("the variable %s of cove was not found", name)
			}
		}
	})
}
