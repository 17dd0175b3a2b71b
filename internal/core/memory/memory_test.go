package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	"cove/internal/core/memory"
)

const mib = 1 << 20

// lay makes the files of a machine.
func lay(t *testing.T, files map[string]string) memory.Machine {
	t.Helper()
	dir := t.TempDir()
	files["proc/meminfo"] = "MemTotal:       8388608 kB\nMemFree:         1000 kB\nMemAvailable:    4194304 kB\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return memory.Machine{Proc: filepath.Join(dir, "proc"), Cgroup: filepath.Join(dir, "cg")}
}

func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files            map[string]string
		total, available int64
		kills            int64
	}{
		"no groups": {map[string]string{}, 8192 * mib, 4096 * mib, 0},
		"v2, the lowest of two limits": {map[string]string{
			"proc/self/cgroup":      "0::/a/b\n",
			"cg/a/memory.max":       "3221225472\n",
			"cg/a/memory.current":   "2147483648\n",
			"cg/a/memory.stat":      "anon 5\ninactive_file 524288000\nactive_file 0\n",
			"cg/a/memory.events":    "oom 4\noom_kill 3\n",
			"cg/a/b/memory.max":     "max\n",
			"cg/a/b/memory.current": "1\n",
			"cg/a/b/memory.events":  "oom_kill 1\n",
		}, 3072 * mib, (1024+500-100)*mib + 0, 3},
		"v1": {map[string]string{
			"proc/self/cgroup":                     "4:memory:/unit\n0::/\n",
			"cg/memory/unit/memory.limit_in_bytes": "1073741824\n",
			"cg/memory/unit/memory.usage_in_bytes": "943718400\n",
			"cg/memory/unit/memory.stat":           "cache 1\ntotal_inactive_file 0\ntotal_active_file 10485760\n",
			"cg/memory/unit/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n",
			"cg/memory/memory.limit_in_bytes":      "9223372036854771712\n",
			"cg/memory/memory.usage_in_bytes":      "5\n",
		}, 1024 * mib, (124 + 10 - 100) * mib, 7},
		"more than the limit is used": {map[string]string{
			"proc/self/cgroup":  "0::/\n",
			"cg/memory.max":     "1048576\n",
			"cg/memory.current": "2097152\n",
		}, mib, 0, 0},
		"a container that sees the host's path": {map[string]string{
			"proc/self/cgroup":  "0::/docker/abc\n",
			"cg/memory.max":     "2147483648\n",
			"cg/memory.current": "1073741824\n",
		}, 2048 * mib, 1024 * mib, 0},
		"a process from outside of its name space": {map[string]string{
			"proc/self/cgroup":  "0::/..\n",
			"cg/memory.max":     "2147483648\n",
			"cg/memory.current": "1073741824\n",
		}, 2048 * mib, 1024 * mib, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := lay(t, c.files)
			m.Outside = func() int64 { return 100 * mib }
			got, err := m.Look()
			if want := (memory.Room{Total: c.total, Available: c.available}); err != nil || got != want {
				t.Errorf("got %+v %v, want %+v", got, err, want)
			}
			if got := m.Kills(); got != c.kills {
				t.Errorf("%d kills, want %d", got, c.kills)
			}
		})
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	room, err := memory.Machine{}.Look()
	if err != nil || room.Total <= 0 || room.Available <= 0 || room.Available > room.Total {
		t.Errorf("%+v %v", room, err)
	}
}
