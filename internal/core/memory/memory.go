// Package memory says how much memory there is: what the machine has available, and what the control groups leave that this process is in, of
// cgroup v1 and v2 alike. A server in a container or a systemd unit with a limit would else believe that it has the whole machine.
package memory

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Room is what there is, in bytes.
type Room struct {
	Total     int64 // the machine's memory, or the lowest limit of the process's groups
	Available int64 // what new programs can have before something must be killed; file caches do not count as used
}

// Growth is how much one program is expected to take on top of what it has, in bytes: an eighth of all memory, within bounds.
func (r Room) Growth() int64 { return min(max(r.Total/8, 128<<20), 1<<30) }

// Least is what must be available before anything is begun, in bytes.
func (r Room) Least() int64 { return min(max(r.Total/32, 64<<20), 512<<20) }

// Machine is where to look. The zero value is this machine.
type Machine struct {
	Proc   string // "" is /proc
	Cgroup string // "" is /sys/fs/cgroup
	// Outside is what the process uses in control groups that are not below its own, which counts for the limits of that all the same; nil: nothing.
	Outside func() int64
}

// Look reads what there is now.
func (m Machine) Look() (Room, error) {
	info, err := keyed(filepath.Join(orElse(m.Proc, "/proc"), "meminfo"))
	if err != nil {
		return Room{}, err
	}
	room := Room{Total: info["MemTotal:"] << 10, Available: info["MemAvailable:"] << 10}
	if room.Total == 0 || room.Available == 0 {
		return Room{}, errors.New("/proc/meminfo does not say how much memory is available")
	}
	for _, g := range m.groups() {
		limit, ok := g.number(g.files.limit)
		if !ok || limit >= room.Total && limit >= 1<<50 { // cgroup v1 writes a number near the highest for none
			continue
		}
		used, ok := g.number(g.files.usage)
		if !ok {
			continue
		}
		stat, _ := keyed(filepath.Join(g.dir, "memory.stat"))
		used -= stat[g.files.inactive] + stat[g.files.active]
		if m.Outside != nil && g.dir != g.root {
			used += m.Outside()
		}
		room.Total = min(room.Total, limit)
		room.Available = min(room.Available, max(0, limit-used))
	}
	return room, nil
}

// Kills is how many processes of the groups that this process is in the system has killed because a limit was reached. It only grows.
func (m Machine) Kills() int64 {
	var most int64
	for _, g := range m.groups() {
		events, _ := keyed(filepath.Join(g.dir, g.files.events))
		most = max(most, events["oom_kill"])
	}
	return most
}

// files are the names of what a version of cgroups says.
type files struct{ limit, usage, events, inactive, active string }

// group is a control group for memory.
type group struct {
	root, dir string
	files     files
}

// groups lists the group that this process is in and those above it, of every hierarchy that has limits on memory.
func (m Machine) groups() []group {
	text, err := os.ReadFile(filepath.Join(orElse(m.Proc, "/proc"), "self", "cgroup"))
	if err != nil {
		return nil
	}
	top := orElse(m.Cgroup, "/sys/fs/cgroup")
	var all []group
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "":
			all = append(all, upwards(top, parts[2], files{"memory.max", "memory.current", "memory.events", "inactive_file", "active_file"})...)
		case strings.Contains(","+parts[1]+",", ",memory,"):
			all = append(all, upwards(filepath.Join(top, "memory"), parts[2],
				files{"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control", "total_inactive_file", "total_active_file"})...)
		}
	}
	return all
}

// upwards lists a group and those above it. In a container without a name space for cgroups the path is the host's, and the root is the container's group. A
// process from outside of its name space has a path that begins with "/..".
func upwards(root, path string, f files) (all []group) {
	dir := filepath.Join(root, filepath.Clean("/"+path))
	if _, err := os.Stat(dir); err != nil {
		dir = root
	}
	for {
		all = append(all, group{root, dir, f})
		if dir == root || len(dir) <= len(root) {
			return all
		}
		dir = filepath.Dir(dir)
	}
}

// number reads a file that is one number; "max" is none.
func (g group) number(file string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// keyed reads a file whose lines are a name and a number.
func keyed(path string) (map[string]int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := map[string]int64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) >= 2 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				values[words[0]] = n
			}
		}
	}
	return values, lines.Err()
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
