package pyenv_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// fakeUV puts a uv on the PATH that writes down its arguments and environment and then fails with these words.
func fakeUV(t *testing.T, words string) (record string) {
	t.Helper()
	dir := t.TempDir()
	record = filepath.Join(dir, "record")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'uv 0.9.1'; exit 0; }\n{ echo \"args $*\"; env; } >>" + record +
		"\n[ \"$1\" = venv ] && exit 0\ncat >&2 <<'EOF'\n" + words + "\nEOF\nexit 2\n"
	testneeds.Program(t, filepath.Join(dir, "uv"), script)
	fakePython(t, filepath.Join(dir, "python3.13"), usable)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return record
}

func TestFailedInstallation(t *testing.T) {
	tests := []struct{ words, code, hint string }{
		{"error: failed to write: No space left on device (os error 28)", "disk_full", "COVE_HOME"},
		{"error: Request failed after 3 retries\n  cause: dns error", "package_index_unreachable", "network"},
		{"error: error sending request\n  cause: invalid peer certificate: UnknownIssuer", "package_index_unreachable", "SSL_CERT_FILE"},
		{"error: Hash mismatch for `numpy==2.0`", "package_hash_mismatch", "cache"},
		{"error: No solution found when resolving dependencies:\n  numpy was not found in the package registry", "package_unavailable", "index"},
		{"error: something nobody has seen before", "environment_build_failed", "run the command again"},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			fakeUV(t, tt.words)
			data := t.TempDir()
			_, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: data, Set: pyenv.Minimal})
			p := problem.Of(err)
			if p == nil || p.Code != tt.code || !strings.Contains(p.Hint, tt.hint) || !strings.Contains(p.Error(), strings.TrimPrefix(tt.words, "error: ")) {
				t.Errorf("got %v (%v)", err, p)
			}
			if left := shelf(t, data); len(left) != 0 {
				t.Errorf("a failed build left %v", left)
			}
		})
	}
}

func TestPipSettingsReachUV(t *testing.T) {
	links := t.TempDir()
	conf := "[global]\nindex-url = mirror://conf/simple\ncert = /conf/ca.pem\ntrusted-host = one\n    two\n[install]\nextra_index_url: mirror://extra/a\n"
	tests := []struct {
		name  string
		set   map[string]string
		want  []string // lines of the record
		never []string // prefixes of lines
	}{
		{
			name: "from a file",
			want: []string{"UV_DEFAULT_INDEX=mirror://conf/simple", "UV_INDEX=mirror://extra/a", "SSL_CERT_FILE=/conf/ca.pem",
				"UV_INSECURE_HOST=one two", "UV_HTTP_TIMEOUT=120", "UV_INDEX_STRATEGY=unsafe-best-match"},
		},
		{
			name: "variables before files",
			set: map[string]string{"PIP_INDEX_URL": "mirror://env/simple", "PIP_FIND_LINKS": links + " /nonexistent/wheels", "PIP_DEFAULT_TIMEOUT": "600",
				"PIP_NO_INDEX": "1"},
			want: []string{"UV_DEFAULT_INDEX=mirror://env/simple", "UV_FIND_LINKS=" + links, "UV_HTTP_TIMEOUT=600"},
		},
		{
			name:  "uv's own before pip's",
			set:   map[string]string{"UV_INDEX_URL": "mirror://uv/simple", "SSL_CERT_FILE": "/uv/ca.pem", "UV_HTTP_TIMEOUT": "7"},
			want:  []string{"UV_INDEX_URL=mirror://uv/simple", "SSL_CERT_FILE=/uv/ca.pem", "UV_HTTP_TIMEOUT=7"},
			never: []string{"UV_DEFAULT_INDEX="},
		},
		{
			name:  "nothing that changes the lock",
			set:   map[string]string{"UV_EXCLUDE_NEWER": "2020-01-01", "UV_TARGET": "/elsewhere", "PYTHONPATH": "/elsewhere", "UV_NO_VERIFY_HASHES": "1", "VIRTUAL_ENV": "/v"},
			never: []string{"UV_EXCLUDE_NEWER=", "UV_TARGET=", "PYTHONPATH=", "UV_NO_VERIFY_HASHES=", "VIRTUAL_ENV="},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, pair := range os.Environ() {
				name, _, _ := strings.Cut(pair, "=")
				if strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "UV_") || strings.HasPrefix(name, "SSL_") || strings.HasSuffix(name, "CA_BUNDLE") {
					t.Setenv(name, "")
				}
			}
			path := filepath.Join(t.TempDir(), "pip.conf")
			if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PIP_CONFIG_FILE", path)
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			for name, value := range tt.set {
				t.Setenv(name, value)
			}
			record := fakeUV(t, "error: enough")
			if _, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: t.TempDir(), Set: pyenv.Minimal}); err == nil {
				t.Fatal("the fake uv did not fail")
			}
			text, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := tt.set["PIP_NO_INDEX"]; ok != strings.Contains(string(text), " --no-index") {
				t.Errorf("--no-index given: %t, want %t", !ok, ok)
			}
			for _, line := range tt.want {
				if !strings.Contains(string(text), "\n"+line+"\n") {
					t.Errorf("uv was not told %s:\n%s", line, text)
				}
			}
			for _, prefix := range tt.never {
				if strings.Contains(string(text), "\n"+prefix) {
					t.Errorf("uv was told %s", prefix)
				}
			}
			if !strings.Contains(string(text), "--require-hashes") || !strings.Contains(string(text), "--only-binary :all:") {
				t.Errorf("uv may install what the lock does not name:\n%s", text)
			}
		})
	}
}

func TestUVFromThePath(t *testing.T) {
	fakeUV(t, "error: never started")
	data := filepath.Join(t.TempDir(), "data")
	path, err := pyenv.UV(context.Background(), data, nil)
	if err != nil || filepath.Base(path) != "uv" || strings.HasPrefix(path, data) {
		t.Errorf("got %s, %v", path, err)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("a data folder was made for a uv that is on the PATH")
	}
}

// A Python whose pip makes a uv, slowly, and counts how often.
const pip = `#!/bin/sh
case "$2" in -c) echo '%s'; exit 0;; pip) ;; *) exit 1;; esac
[ "$3" = --version ] && exit 0
echo fetched >>%s
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/bin"
printf '#!/bin/sh\necho uv 0.9.9\n' >"$2/bin/uv"
chmod 755 "$2/bin/uv"
`

func TestUVIsFetchedOnce(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	python, record := filepath.Join(dir, "python3.13"), filepath.Join(dir, "record")
	script := fmt.Sprintf(pip, strings.ReplaceAll(usable, "SELF", python), record)
	testneeds.Program(t, python, script)
	for _, name := range []string{"sh", "mkdir", "chmod"} {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	want := filepath.Join(data, "tools", "uv", "bin", "uv")
	var together sync.WaitGroup
	for range 4 {
		together.Go(func() {
			if got, err := pyenv.UV(context.Background(), data, nil); err != nil || got != want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	together.Wait()
	if text, err := os.ReadFile(record); err != nil || string(text) != "fetched\n" {
		t.Errorf("fetched %q, %v", text, err)
	}
}

func TestNoUVToBeHad(t *testing.T) {
	dir := t.TempDir()
	fakePython(t, filepath.Join(dir, "python3"), usable)
	t.Setenv("PATH", dir)
	if _, err := pyenv.UV(context.Background(), t.TempDir(), nil); problem.Of(err) == nil || problem.Of(err).Code != "uv_not_found" {
		t.Errorf("got %v", err)
	}
}
