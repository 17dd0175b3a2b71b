package bench

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is where a report was made.
type Machine struct {
	Cores     int     `json:"cores"`
	Processor string  `json:"processor,omitempty"`
	Memory    int64   `json:"memory_bytes"`
	Available int64   `json:"available_bytes"` // at the start
	System    string  `json:"system,omitempty"`
	Kernel    string  `json:"kernel"`
	LoadStart float64 `json:"load_start"` // over the last minute
	LoadEnd   float64 `json:"load_end"`
}

func lookAtMachine() Machine {
	var u unix.Utsname
	_ = unix.Uname(&u) // cannot fail with a valid pointer
	mem := memInfo()
	return Machine{
		Cores: runtime.NumCPU(), Processor: firstValue("/proc/cpuinfo", "model name", ":"),
		Memory: mem["MemTotal"], Available: mem["MemAvailable"],
		System: strings.Trim(firstValue("/etc/os-release", "PRETTY_NAME", "="), `"`),
		Kernel: unix.ByteSliceToString(u.Release[:]), LoadStart: load(),
	}
}

// load is the load average of the last minute, or 0 when the system does not say.
func load() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}

// firstValue returns what follows the separator on the first line that starts with name.
func firstValue(path, name, separator string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), separator); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memInfo is /proc/meminfo in bytes.
func memInfo() map[string]int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	return kilobytes(string(text))
}

func kilobytes(text string) map[string]int64 {
	values := map[string]int64{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		if fields := strings.Fields(rest); len(fields) == 2 && fields[1] == "kB" {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			values[name] += n << 10
		}
	}
	return values
}
