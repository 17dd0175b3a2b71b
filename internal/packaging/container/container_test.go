package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"cove/internal/packaging/gobuild"
)

// TestProfile: the profile in the repository has no conditions, which Kubernetes would not know and take for granted, allows what gVisor needs, and nothing that takes a capability.
func TestProfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/seccomp/cove.json")
	if err != nil {
		t.Fatal(err)
	}
	var p profile
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if p.Default != "SCMP_ACT_ERRNO" || !slices.Equal(p.Machines, machines()) {
		t.Errorf("by default %s, on %v", p.Default, p.Machines)
	}
	always := map[string]bool{}
	for _, r := range p.Rules {
		if r.Includes != nil || r.Excludes != nil {
			t.Errorf("%v has conditions", r.Names)
		}
		for _, name := range r.Names {
			always[name] = always[name] || r.Action == "SCMP_ACT_ALLOW" && r.Args == nil
		}
	}
	for _, name := range append(needed(), "read", "execve", "seccomp", "ptrace") {
		if !always[name] {
			t.Errorf("%s is not allowed", name)
		}
	}
	for _, name := range []string{"bpf", "setns", "unshare", "reboot", "init_module", "perf_event_open", "open_by_handle_at", "fsopen", "keyctl", "add_key", "settimeofday", "clone3"} {
		if always[name] {
			t.Errorf("%s is allowed", name)
		}
	}
}

// TestProfileOfConditions: of Docker's profile, the rules for a container without capabilities are taken.
func TestProfileOfConditions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "default.json")
	const text = `{"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": [
		{"names": ["read", "mount"], "action": "SCMP_ACT_ALLOW"},
		{"names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_BPF"]}},
		{"names": ["arch_prctl"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["amd64"]}},
		{"names": ["s390_runtime_instr"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["s390"]}},
		{"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}], "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
		{"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "excludes": {"caps": ["CAP_SYS_ADMIN"]}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var p profile
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(writeProfile(w, path)) }()
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, r := range p.Rules {
		got = append(got, r.Names)
	}
	if want := [][]string{needed(), {"read"}, {"arch_prctl"}, {"clone3"}}; !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("got %v, want %v", got, want)
	}
	if last := p.Rules[len(p.Rules)-1]; last.Errno == nil || *last.Errno != 38 {
		t.Errorf("clone3 does not say that it is not there: %+v", last)
	}
}

// TestPack: what an archive has depends on the files alone, not on the day; a file with two names is in it once.
func TestPack(t *testing.T) {
	t.Parallel()
	date := time.Unix(1_700_000_000, 0)
	old := date.Add(-time.Hour)
	pack := func() string {
		root := t.TempDir()
		err := errors.Join(os.MkdirAll(filepath.Join(root, "a/b"), 0o755), os.WriteFile(filepath.Join(root, "a/b/one"), []byte("text"), 0o640),
			os.Link(filepath.Join(root, "a/b/one"), filepath.Join(root, "a/b/two")), os.Symlink("one", filepath.Join(root, "a/b/way")), os.WriteFile(filepath.Join(root, "a/other"), nil, 0o600),
			os.Chmod(filepath.Join(root, "a/b/one"), 0o640), os.Chtimes(filepath.Join(root, "a/b"), old, old))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "layer.tar")
		if err := (maker{Source: gobuild.Source{Date: date}}).pack(to, root, []string{"a/b"}); err != nil {
			t.Fatal(err)
		}
		return to
	}
	first, second := pack(), pack()
	one, err := os.ReadFile(first)
	other, err2 := os.ReadFile(second)
	if err := errors.Join(err, err2); err != nil || !slices.Equal(one, other) {
		t.Errorf("two archives of the same files differ, %v", err)
	}
	f, err := os.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var got []string
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		want := date
		if h.Name == "a/b/" {
			want = old
		}
		if !h.ModTime.Equal(want) {
			t.Errorf("%s is of %s", h.Name, h.ModTime)
		}
		got = append(got, h.Name+" "+h.Linkname)
	}
	if want := []string{"a/ ", "a/b/ ", "a/b/one ", "a/b/two a/b/one", "a/b/way one"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestComposeRuntime: the memory that Compose gives cove for its sandboxes allows execution. gVisor mounts it again within a user namespace, where what the outer mount forbids stays forbidden, and
// fails when it is not asked for that.
func TestComposeRuntime(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Tmpfs       []string
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	cove := file.Services["cove"]
	running := cove.Environment["COVE_RUNTIME"]
	for _, mount := range cove.Tmpfs {
		folder, options, _ := strings.Cut(mount, ":")
		if strings.HasPrefix(running, folder+"/") {
			if !slices.Contains(strings.Split(options, ","), "exec") {
				t.Errorf("%s has the options %s", folder, options)
			}
			return
		}
	}
	t.Errorf("COVE_RUNTIME is %q, below none of %q", running, cove.Tmpfs)
}
