package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cove/internal/packaging/gobuild"
	"cove/internal/python/pyenv"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, good := range map[string]bool{
		"1.2.3": true, "0.1.0-dev": true, "1.3.0-rc.1": true, "": false, "1.2": false, "v1.2.3": false, "01.2.3": false, "1.2.3 -X": false, "1.2.3-": false, "../1.2.3": false, "1.2.3\n": false,
	} {
		if err := checkVersion(version); (err == nil) != good {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// TestAlpineVersions wants nothing but what apk takes for a version: numbers, then _alpha, _beta, _pre or _rc with a number or none.
func TestAlpineVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "1.3.0-rc.1": "1.3.0_rc1", "1.3.0-rc2": "1.3.0_rc2", "2.0.0-alpha": "2.0.0_alpha", "2.0.0-beta.10": "2.0.0_beta10", "0.1.0-dev": "0.1.0_pre", "1.3.0-rc.1.2": "1.3.0_pre",
	} {
		if got := alpineVersion(version); got != want {
			t.Errorf("%s is %s for Alpine, want %s", version, got, want)
		}
	}
}

var commitDate = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// fakeStage is what an architecture's archive has, with a script that stands in for the program.
func fakeStage(t *testing.T, dir, name string) string {
	t.Helper()
	stage := filepath.Join(dir, name)
	for path, text := range map[string]string{
		"cove": "#!/bin/sh\necho cove 1.2.3 linux\n", "LICENSE": "licence", "README.md": "read me", gobuild.Notices: "notices",
		"man/cove.1": ".TH COVE", "completions/cove.bash": "bash", "completions/_cove": "zsh", "completions/cove.fish": "fish",
	} {
		path = filepath.Join(stage, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return stage
}

// TestPackTwice wants the same archive of the same contents, whatever else is true of the files.
func TestPackTwice(t *testing.T) {
	t.Parallel()
	var texts [2][]byte
	for i := range texts {
		dir := t.TempDir()
		stage := fakeStage(t, dir, "cove-1.2.3-linux-amd64")
		if i == 1 {
			path := filepath.Join(stage, "man", "cove.1")
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		archive := filepath.Join(dir, "a.tar.gz")
		if err := pack(archive, stage, commitDate); err != nil {
			t.Fatal(err)
		}
		var err error
		if texts[i], err = os.ReadFile(archive); err != nil || len(texts[i]) == 0 {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the two archives differ")
	}
}

// TestDifferences finds what a release has that another has not.
func TestDifferences(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{a + "/same": "x", b + "/same": "x", a + "/other": "x", b + "/other": "y", a + "/less": "", b + "/more": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, count, err := differences(a, b)
	if err != nil || len(names) != 3 || count != 3 || strings.Contains(strings.Join(names, " "), "same") {
		t.Errorf("%v of %d differ: %v", names, count, err)
	}
}

// TestPythonMaterials wants each distribution of the locks once, with what it is for, and the same text each time.
func TestPythonMaterials(t *testing.T) {
	t.Parallel()
	text, err := pythonMaterials(pyenv.Locks(), "1.2.3", commitDate)
	again, _ := pythonMaterials(pyenv.Locks(), "1.2.3", commitDate)
	if err != nil || !bytes.Equal(text, again) {
		t.Fatalf("the two lists differ, or: %v", err)
	}
	var list materialList
	if err := json.Unmarshal(text, &list); err != nil || list.Format != "CycloneDX" || list.Spec != "1.6" {
		t.Fatalf("%+v: %v", list.Metadata, err)
	}
	seen := map[string]bool{}
	for _, m := range list.Components {
		if seen[m.Ref] || m.PURL != "pkg:pypi/"+m.Name+"@"+m.Version || len(m.Properties) < 2 {
			t.Errorf("%+v", m)
		}
		seen[m.Ref], seen[m.Name] = true, true
	}
	if len(list.Components) < 110 || !seen["pandas"] || !seen["uv"] || !seen["ipython"] {
		t.Errorf("there are %d distributions", len(list.Components))
	}
}

// TestInstallScript installs from a folder and from a server, and installs nothing of what is not as it was published.
func TestInstallScript(t *testing.T) {
	t.Parallel()
	name := "cove-1.2.3-linux-" + runtime.GOARCH
	r := &release{source: gobuild.Source{Version: "1.2.3"}, out: t.TempDir()}
	archive := filepath.Join(r.out, name+".tar.gz")
	if err := pack(archive, fakeStage(t, t.TempDir(), name), commitDate); err != nil {
		t.Fatal(err)
	}
	if err := r.sums(t.Context()); err != nil {
		t.Fatal(err)
	}
	sum, err := sumOf(archive)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	tampered := bytes.Clone(good)
	tampered[len(tampered)/2] ^= 1
	for what, test := range map[string]struct {
		serve   []byte // instead of the archive
		release string // "": the server's address
		env     string
		says    string
		fails   bool
	}{
		"from a server":       {says: "installed cove 1.2.3"},
		"from a folder":       {release: r.out, says: "installed cove 1.2.3"},
		"the sum I was told":  {env: "COVE_SHA256=" + sum, says: "installed cove 1.2.3"},
		"another sum":         {env: "COVE_SHA256=" + strings.Repeat("0", 64), says: "COVE_SHA256 is 000", fails: true},
		"tampered":            {serve: tampered, says: "is not what was published", fails: true},
		"cut off":             {serve: good[:len(good)/2], says: "is not what was published", fails: true},
		"empty":               {serve: []byte{}, says: "is not what was published", fails: true},
		"no release there":    {release: t.TempDir(), says: "there is no SHA256SUMS", fails: true},
		"nobody serves there": {release: "http://127.0.0.1:1/", says: "cannot be fetched", fails: true},
		"no address":          {release: "ftp://example.invalid", says: "is not an address of HTTP", fails: true},
		"nothing":             {release: "-", says: "where is the release?", fails: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			files := http.FileServer(http.Dir(r.out))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if test.serve != nil && strings.HasSuffix(q.URL.Path, ".tar.gz") {
					_, _ = w.Write(test.serve)
					return
				}
				files.ServeHTTP(w, q)
			}))
			t.Cleanup(server.Close)
			where := map[string]string{"": server.URL, "-": ""}[test.release]
			if test.release != "" && test.release != "-" {
				where = test.release
			}
			prefix := filepath.Join(t.TempDir(), "prefix")
			cmd := exec.CommandContext(t.Context(), "sh", "../../../deploy/install.sh")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "COVE_RELEASE=" + where, "COVE_PREFIX=" + prefix, test.env}
			out, err := cmd.CombinedOutput()
			if (err != nil) != test.fails || !strings.Contains(string(out), test.says) {
				t.Errorf("%v: %s", err, out)
			}
			_, bad := os.Stat(prefix)
			if test.fails != os.IsNotExist(bad) {
				t.Errorf("below the prefix there is something, or nothing: %v", bad)
			}
			if !test.fails {
				for _, path := range []string{"bin/cove", "share/man/man1/cove.1", "share/bash-completion/completions/cove"} {
					if _, err := os.Stat(filepath.Join(prefix, path)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}
