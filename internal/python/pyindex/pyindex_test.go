package pyindex_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

// home returns the environment of a user without settings, but for those.
func home(t *testing.T, settings ...string) []string {
	t.Helper()
	dir := t.TempDir()
	return append([]string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_CONFIG_DIRS=/nonexistent", "PIP_CONFIG_FILE=" + os.DevNull, "PATH=" + os.Getenv("PATH")}, settings...)
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	testneeds.Program(t, path, content)
	return path
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	links := t.TempDir()
	conf := write(t, filepath.Join(t.TempDir(), "pip.conf"),
		"[global]\nindex-url = mirror://conf/simple\ncert = /conf/ca.pem\ntrusted-host = one\n    two\n[install]\nextra_index_url: mirror://extra/a\n[other]\nproxy = http://no\n")
	uvConf := t.TempDir()
	write(t, filepath.Join(uvConf, "uv", "uv.toml"), "[[index]]\nurl = \"mirror://toml/simple\"\n")
	tests := []struct {
		name  string
		set   []string
		want  []string
		never []string // prefixes
		flags string
	}{
		{name: "from a file", set: []string{"PIP_CONFIG_FILE=" + conf},
			want: []string{"UV_DEFAULT_INDEX=mirror://conf/simple", "UV_INDEX=mirror://extra/a", "SSL_CERT_FILE=/conf/ca.pem", "UV_INSECURE_HOST=one two", "UV_HTTP_TIMEOUT=120",
				"UV_INDEX_STRATEGY=unsafe-best-match"}, never: []string{"ALL_PROXY="}},
		{name: "variables before files", set: []string{"PIP_CONFIG_FILE=" + conf, "PIP_INDEX_URL=mirror://env/simple", "PIP_FIND_LINKS=" + links + " /nonexistent/wheels", "PIP_DEFAULT_TIMEOUT=600",
			"PIP_NO_INDEX=1", "PIP_PROXY=http://proxy:3128"},
			want: []string{"UV_DEFAULT_INDEX=mirror://env/simple", "UV_FIND_LINKS=" + links, "UV_HTTP_TIMEOUT=600", "ALL_PROXY=http://proxy:3128"}, flags: "--no-index"},
		{name: "uv's own before pip's", set: []string{"PIP_CONFIG_FILE=" + conf, "UV_INDEX_URL=mirror://uv/simple", "SSL_CERT_FILE=/uv/ca.pem", "UV_HTTP_TIMEOUT=7"},
			want: []string{"UV_INDEX_URL=mirror://uv/simple", "SSL_CERT_FILE=/uv/ca.pem", "UV_HTTP_TIMEOUT=7"}, never: []string{"UV_DEFAULT_INDEX="}},
		{name: "uv's file before pip's", set: []string{"PIP_CONFIG_FILE=" + conf, "XDG_CONFIG_HOME=" + uvConf}, want: []string{"SSL_CERT_FILE=/conf/ca.pem"}, never: []string{"UV_DEFAULT_INDEX=", "UV_INDEX="}},
		{name: "nothing that changes the lock", set: []string{"UV_EXCLUDE_NEWER=2020-01-01", "UV_TARGET=/elsewhere", "PYTHONPATH=/elsewhere", "UV_NO_VERIFY_HASHES=1", "VIRTUAL_ENV=/v", "UV_INDEX="},
			never: []string{"UV_EXCLUDE_NEWER=", "UV_TARGET=", "PYTHONPATH=", "UV_NO_VERIFY_HASHES=", "VIRTUAL_ENV=", "UV_INDEX="}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env, flags := pyindex.Environment(append(home(t), tt.set...), "")
			for _, pair := range tt.want {
				if !slices.Contains(env, pair) {
					t.Errorf("%s is missing in %v", pair, env)
				}
			}
			for _, prefix := range tt.never {
				if i := slices.IndexFunc(env, func(pair string) bool { return strings.HasPrefix(pair, prefix) }); i >= 0 {
					t.Errorf("there is %s", env[i])
				}
			}
			if got := strings.Join(flags, " "); got != tt.flags {
				t.Errorf("the flags are %q", got)
			}
		})
	}
}
