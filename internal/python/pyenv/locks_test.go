package pyenv_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cove/internal/core/config"
	"cove/internal/python/pyenv"
)

var (
	pin  = regexp.MustCompile(`^([a-z0-9-]+)==[A-Za-z0-9.!+]+( ; [^\\]+)?$`)
	hash = regexp.MustCompile(`^--hash=sha256:[0-9a-f]{64}$`)
)

// readLock returns the names that a lock pins, and fails when a line is anything but a pin with hashes.
func readLock(t *testing.T, name string) map[string]bool {
	t.Helper()
	text, err := fs.ReadFile(pyenv.Locks(), name+".txt")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "://") {
		t.Errorf("%s.txt names a host", name)
	}
	pinned := map[string]bool{}
	joined := strings.ReplaceAll(strings.TrimSpace(string(text)), "\\\n", "\x00")
	for line := range strings.SplitSeq(joined, "\n") {
		parts := strings.Split(line, "\x00")
		m := pin.FindStringSubmatch(strings.TrimSpace(parts[0]))
		if m == nil || len(parts) < 2 {
			t.Errorf("%s.txt: not a pin with hashes: %q", name, line)
			continue
		}
		for _, part := range parts[1:] {
			if !hash.MatchString(strings.TrimSpace(part)) {
				t.Errorf("%s.txt: %s: not a hash: %q", name, m[1], part)
			}
		}
		pinned[m[1]] = true
	}
	return pinned
}

func TestLocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"minimal", "standard", "standard-2024", "fonts", "uv"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pinned := readLock(t, name)
			text, err := fs.ReadFile(pyenv.Locks(), name+".in")
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSpace(line)
				if line == "" || line[0] == '#' {
					continue
				}
				asked++
				name := line[:strings.IndexAny(line+" ", "< ;")]
				if !pinned[name] {
					t.Errorf("the lock does not pin %s: run locks/update.sh", line)
				}
			}
			if asked == 0 {
				t.Errorf("%s.in asks for nothing", name)
			}
		})
	}
}

// TestSets has every set be one that settings take, and the folders of one not be taken for another's.
func TestSets(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, set := range pyenv.Sets() {
		c, err := config.Load(func(name string) string {
			return map[string]string{"COVE_HOME": data, "HOME": data, "COVE_PACKAGES": string(set)}[name]
		})
		if err != nil || c.Packages.Set != string(set) {
			t.Errorf("settings refuse %s: %v", set, err)
		}
		if err := os.MkdirAll(filepath.Join(data, "pyenv", string(set)+"-0123456789abcdef"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range pyenv.Sets() {
		if got := pyenv.Built(data, set); len(got) != 1 || filepath.Base(got[0]) != string(set)+"-0123456789abcdef" {
			t.Errorf("of %s there is %v", set, got)
		}
	}
}

func TestStandardHasWhatTheReadmePromises(t *testing.T) {
	t.Parallel()
	pinned := readLock(t, "standard")
	for name := range strings.FieldsSeq(`ipython numpy pandas scipy matplotlib seaborn scikit-learn statsmodels sympy pyarrow openpyxl xlsxwriter
		xlrd pillow requests beautifulsoup4 lxml tabulate networkx plotly pypdf python-docx python-pptx jinja2 pyyaml tqdm`) {
		if !pinned[name] {
			t.Errorf("%s is not in the standard set", name)
		}
	}
	for _, heavy := range []string{"torch", "tensorflow", "opencv-python"} {
		if pinned[heavy] {
			t.Errorf("%s is too heavy for the standard set", heavy)
		}
	}
}
