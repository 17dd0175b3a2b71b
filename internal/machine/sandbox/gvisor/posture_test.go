package gvisor_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/ident"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/sandboxtest"
)

// echoing is a network that says back what it hears.
type echoing struct{}

func (echoing) Allows() []string                     { return nil }
func (echoing) Certificates() []byte                 { return nil }
func (echoing) LookUp(context.Context, string) error { return nil }
func (echoing) Connect(_ context.Context, _ string, _ int, conn guestlink.Stream, ready func() error) error {
	if err := ready(); err != nil {
		return err
	}
	_, err := io.Copy(conn, conn)
	return err
}

var numbers = regexp.MustCompile(`\d+`)

// postureOf is what a process of a sandbox's may do on the host: its users, capabilities and filters, its namespaces, and what it has open beside files.
func postureOf(t *testing.T, pid int) map[string]any {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", pid)
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		t.Fatal(err)
	}
	p := map[string]any{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"}, name) {
			p[name] = strings.TrimSpace(value)
		}
	}
	// Who the process is here, its groups included, and whom else it might become.
	for _, file := range []string{"uid_map", "gid_map"} {
		text, err := os.ReadFile(filepath.Join(proc, file))
		if err != nil {
			t.Fatal(err)
		}
		p[file] = strings.Join(strings.Fields(string(text)), " ")
	}
	users := strings.Fields(fmt.Sprint(p["Uid"], " ", p["Gid"], " ", p["Groups"]))
	slices.Sort(users)
	p["users"] = slices.Compact(users)
	for _, ns := range []string{"mnt", "net", "ipc", "uts", "pid", "user", "cgroup"} {
		p["namespace "+ns], _ = os.Readlink(filepath.Join(proc, "ns", ns))
	}
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, fd := range open {
		to, err := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		// Files of the root file system, which programs inside read, come and go, and so do the processes that gVisor runs their code in, with one filter and,
		// while one starts, one pidfd each.
		if err == nil && !strings.HasPrefix(to, "/") && !strings.HasSuffix(to, "seccomp notify") && !strings.HasSuffix(to, "[pidfd]") {
			kinds[numbers.ReplaceAllString(to, "")]++
		}
	}
	p["open"] = kinds
	return p
}

// TestPostureAfterUse runs programs, reaches a port and gives the sandbox a network: the sentry and its gofer have on the host what they had before.
func TestPostureAfterUse(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]sandbox.Spec{"without root": {}, "with root": {Limits: sandbox.Limits{System: 64 << 20}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usePosture(t, spec)
		})
	}
}

// posturesOf is that of the processes of a sandbox on the host, by their names.
func posturesOf(t *testing.T, id string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, name := range []string{"runsc-sandbox", "runsc-gofer"} {
		pids := sandboxtest.Processes(t, name, id)
		if len(pids) != 1 {
			t.Fatalf("there are %d processes %s", len(pids), name)
		}
		all[name] = postureOf(t, pids[0])
	}
	return all
}

// hasLess says whether nothing differs but that less is open: what the start of a sandbox had open may be closed some time later.
func hasLess(before, now map[string]map[string]any) bool {
	less := false
	for name, p := range now {
		was := maps.Clone(before[name])
		open, had := p["open"].(map[string]int), was["open"].(map[string]int)
		for kind, n := range open {
			if n > had[kind] {
				return false
			}
		}
		less = less || !maps.Equal(open, had)
		was["open"] = open
		if !cmp.Equal(was, p) {
			return false
		}
	}
	return less
}

// usePosture uses a sandbox in all ways, as root where it has one, until it has before a use what it has after it.
func usePosture(t *testing.T, spec sandbox.Spec) {
	sb, l := sandboxtest.Start(t, newEngine(t), spec)
	before := posturesOf(t, sb.ID())
	for name, p := range before {
		if p["NoNewPrivs"] != "1" || p["Seccomp"] != "2" {
			t.Errorf("%s: %v", name, p)
		}
		if users := p["users"].([]string); os.Geteuid() == 0 && slices.Contains(users, "0") || p["uid_map"] != "0 "+strings.Fields(p["Uid"].(string))[0]+" 1" {
			t.Errorf("%s is %v on the host, and maps %v", name, users, p["uid_map"])
		}
	}
	for again := range 5 {
		var used map[string]map[string]any
		useAll(t, l, spec.Limits.System > 0, func() { used = posturesOf(t, sb.ID()) })
		after := posturesOf(t, sb.ID())
		if hasLess(before, after) && again < 4 {
			before = after
			continue
		}
		if diff := cmp.Diff(before, used); diff != "" {
			t.Errorf("in use (-before +now):\n%s", diff)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("after use (-before +now):\n%s", diff)
		}
		return
	}
}

// useAll runs a program in a sandbox that listens, which the host connects to, and that connects to the world, and calls meanwhile when all are connected.
func useAll(t *testing.T, l *guestlink.Link, root bool, meanwhile func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stop, err := l.ServeNetwork(ctx, echoing{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	script := `python3 -c '
import socket
l = socket.create_server(("127.0.0.1", 4000)); print("listens", flush=True)
c, _ = l.accept()
import os
if os.getuid() == 0: open("/usr/new", "w").write("x"); os.path.exists("/usr/bin/env") and os.remove("/usr/bin/env"); os.chown("/etc", 1, 1)
w = socket.create_connection(("world.test", 7)); w.sendall(b"hello"); c.sendall(w.recv(5)); input()'`
	info, err := l.StartProcess(ctx, guestlink.ToStart(ident.New(ident.Process), process.Start{Args: []string{"sh", "-c", script}, Input: true, Root: root}, []string{"PATH=/usr/bin:/bin"}, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range l.FollowProcess(ctx, info.ID, 0) {
		if err != nil || strings.Contains(string(e.Data), "listens") {
			break
		}
	}
	port, err := l.DialPort(ctx, 4000)
	if err != nil {
		t.Fatal(err)
	}
	heard := make([]byte, 5)
	if _, err := io.ReadFull(port, heard); err != nil || string(heard) != "hello" {
		t.Fatalf("%q, %v", heard, err)
	}
	meanwhile()
	_ = port.Close()
	if _, err := l.WriteProcess(ctx, info.ID, strings.NewReader(""), true); err != nil {
		t.Fatal(err)
	}
	for _, err := range l.FollowProcess(ctx, info.ID, 0) { // until it has ended
		if err != nil {
			t.Fatal(err)
		}
	}
}
