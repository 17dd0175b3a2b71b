package indextest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/deps/indextest"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// install installs requirements with the real uv into a new folder, and returns the folder and what uv said.
func install(t *testing.T, index string, requirements ...string) (folder, said string, err error) {
	t.Helper()
	env, uv := testneeds.Environment(t, pyenv.Minimal), testneeds.FindUV(t)
	folder = t.TempDir()
	args := append([]string{"pip", "install", "--no-config", "--python", env.Python, "--target", folder, "--index-url", index}, requirements...)
	cmd := exec.CommandContext(t.Context(), uv, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "UV_CACHE_DIR=" + t.TempDir(), "UV_HTTP_RETRIES=0", "UV_HTTP_TIMEOUT=20", "UV_PYTHON_DOWNLOADS=never"}
	out, err := cmd.CombinedOutput()
	return folder, string(out), err
}

func python(t *testing.T, folder, code string) string {
	t.Helper()
	env := testneeds.Environment(t, pyenv.Minimal)
	cmd := exec.CommandContext(t.Context(), env.Python, "-I", "-c", "import sys; sys.path.insert(0, sys.argv[1])\n"+code, folder)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestInstallsWithUV(t *testing.T) {
	t.Parallel()
	for name, style := range map[string]indextest.Style{"negotiated": indextest.Negotiated, "JSON": indextest.JSON, "HTML": indextest.HTML, "mirror": indextest.Mirror} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index := indextest.New(t)
			index.Speak(style)
			extra := map[string][]string{"loud": {"horn"}}
			index.Add(
				indextest.Wheel{Name: "Moo-Cow", Version: "1.0"},
				indextest.Wheel{Name: "Moo-Cow", Version: "1.5", Require: []string{"milk>=2"}, Extras: extra, Scripts: map[string]string{"moo": "moo_cow:main"}, Data: map[string]string{"data/share/cow.txt": "cow"}},
				indextest.Wheel{Name: "Moo-Cow", Version: "2.0", Listed: indextest.Listed{Yanked: "sour"}},
				indextest.Wheel{Name: "Moo-Cow", Version: "3.0", Listed: indextest.Listed{RequiresPython: ">=4"}},
				indextest.Wheel{Name: "milk", Version: "2.1", Padding: 100_000},
				indextest.Wheel{Name: "horn", Tag: "cp311-cp311-win32"},
				indextest.Wheel{Name: "horn", Version: "0.9"},
			)
			folder, said, err := install(t, index.URL, "moo.cow[loud]")
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			got := python(t, folder, "import moo_cow, milk, horn; print(moo_cow.__version__, milk.__version__, horn.__version__)")
			if got != "1.5 2.1 0.9" {
				t.Errorf("installed are %s, want 1.5 2.1 0.9\n%s", got, said)
			}
			for file, want := range map[string]int{"Moo_Cow-2.0-py3-none-any.whl": 0, "horn-1.0-cp311-cp311-win32.whl": 0} {
				if n := index.Downloads(file); n != want {
					t.Errorf("%s was downloaded %d times, want %d", file, n, want)
				}
			}
			if index.Downloads("milk-2.1-py3-none-any.whl") == 0 || index.Requests("/simple/moo-cow/") == 0 || index.Requests("") < index.Downloads("") {
				t.Error("requests are not counted")
			}
			if n := index.Requests("/files/milk-2.1-py3-none-any.whl.metadata"); (n > 0) != (style != indextest.Mirror) {
				t.Errorf("metadata was asked for %d times", n)
			}
		})
	}
}

func TestBuildsWithUV(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	index := indextest.New(t)
	index.Add(
		indextest.Sdist{Name: "from-source", Version: "1.2", Require: []string{"milk"}, Build: []string{"buildhelp"}, Script: "import buildhelp\nopen('src/made.py', 'w').write('by = ' + repr(buildhelp.__version__))"},
		indextest.Wheel{Name: "buildhelp", Version: "7"},
		indextest.Wheel{Name: "milk"},
	)
	folder, said, err := install(t, index.URL, "from-source")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if got := python(t, folder, "import from_source, made, milk; print(from_source.__version__, made.by)"); got != "1.2 7" {
		t.Errorf("built was %s, want 1.2 7", got)
	}
}

func TestTroublesOfUV(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	wheel := indextest.Wheel{Name: "milk", Padding: 50_000}
	page, file := "/simple/milk/", "/files/"+wheel.Filename()
	for name, test := range map[string]struct {
		path string
		kind indextest.Trouble
		want string
	}{
		"error":          {page, indextest.ServerError, "500"},
		"overloaded":     {page, indextest.Overloaded, "503"},
		"denied":         {page, indextest.Denied, "401"},
		"forbidden":      {page, indextest.Forbidden, "403"},
		"missing":        {page, indextest.Missing, "not found"},
		"circle":         {page, indextest.RedirectLoop, "no versions"},
		"malformed":      {page, indextest.Malformed, "unexpected JSON"},
		"hollow":         {page, indextest.Hollow, "unexpected JSON"},
		"cut":            {page, indextest.Truncated, "Failed"},
		"corrupt":        {file, indextest.Corrupt, "CRC"},
		"cut file":       {file, indextest.Truncated, "Failed"},
		"malformed file": {file, indextest.Malformed, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index := indextest.New(t)
			index.Metadata(true)
			index.Add(wheel)
			index.Misbehave(test.path, test.kind, 0)
			_, said, err := install(t, index.URL, "milk")
			if err == nil || !strings.Contains(strings.ToLower(said), strings.ToLower(test.want)) {
				t.Errorf("uv ended with %v and said, without %q:\n%s", err, test.want, said)
			}
			if index.Requests(test.path) == 0 {
				t.Errorf("%s was never asked for", test.path)
			}
		})
	}
}

func TestLyingIndex(t *testing.T) {
	t.Parallel()
	index := indextest.New(t)
	index.Add(indextest.Wheel{Name: "milk", Listed: indextest.Listed{Hash: strings.Repeat("0", 64)}})
	if _, said, err := install(t, index.URL, "milk"); err == nil || !strings.Contains(said, "Hash mismatch") {
		t.Errorf("uv ended with %v and said:\n%s", err, said)
	}
}

func get(t *testing.T, client *http.Client, url string, header ...string) (status int, body string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), err
}

func TestPages(t *testing.T) {
	t.Parallel()
	index := indextest.New(t)
	uploaded := time.Date(2024, 5, 6, 7, 8, 9, 0, time.FixedZone("", 3600))
	wheel := indextest.Wheel{Name: "a.b", Listed: indextest.Listed{Uploaded: uploaded, Yanked: `"bad"`, RequiresPython: ">=3.9"}}
	index.Add(wheel, indextest.Sdist{Name: "a-b", Version: "0.1", Listed: indextest.Listed{Undated: true, Hash: "none", Size: 5}})
	index.Status("A_B", "archived")
	_, text, err := get(t, http.DefaultClient, index.URL+"A.b", "Accept", "application/vnd.pypi.simple.v1+json")
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Name   string
		Files  []map[string]any
		Status map[string]string `json:"project-status"`
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	if page.Name != "a-b" || page.Status["status"] != "archived" || len(page.Files) != 2 {
		t.Fatalf("the page is %s", text)
	}
	delete(page.Files[0], "core-metadata")
	want := []map[string]any{{
		"filename": "a_b-1.0-py3-none-any.whl", "url": "../../files/a_b-1.0-py3-none-any.whl", "hashes": map[string]any{"sha256": wheel.SHA256()}, "size": float64(len(wheel.Bytes())),
		"yanked": `"bad"`, "requires-python": ">=3.9", "upload-time": "2024-05-06T06:08:09.000000Z",
	}, {
		"filename": "a_b-0.1.tar.gz", "url": "../../files/a_b-0.1.tar.gz", "hashes": map[string]any{}, "size": float64(5), "yanked": false,
	}}
	if diff := cmp.Diff(want, page.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	index.Speak(indextest.Mirror)
	_, text, err = get(t, http.DefaultClient, index.URL+"a-b/")
	if err != nil || !strings.Contains(text, fmt.Sprintf(`<a href="../../files/a_b-1.0-py3-none-any.whl#sha256=%s" data-requires-python="&gt;=3.9" data-yanked="&#34;bad&#34;" data-upload-time="2024-05-06T06:08:09.000000Z">`, wheel.SHA256())) ||
		!strings.Contains(text, `<a href="../../files/a_b-0.1.tar.gz">`) || !strings.Contains(text, `content="archived"`) {
		t.Errorf("the page (%v) is\n%s", err, text)
	}
	files := strings.TrimSuffix(index.URL, "simple/") + "files/"
	status, part, err := get(t, http.DefaultClient, files+wheel.Filename(), "Range", "bytes=1-4")
	if err != nil || status != http.StatusPartialContent || part != string(wheel.Bytes()[1:5]) {
		t.Errorf("a range is %v %q", err, part)
	}
	index.Remove("a-b")
	for _, url := range []string{index.URL + "a-b/", files + wheel.Filename()} {
		if status, _, err := get(t, http.DefaultClient, url); err != nil || status != http.StatusNotFound {
			t.Errorf("%s is still there (%v)", url, err)
		}
	}
}

func TestLockedAndTLS(t *testing.T) {
	t.Parallel()
	index := indextest.NewTLS(t)
	index.Lock("me", "secret")
	if _, _, err := get(t, http.DefaultClient, index.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client that trusts nobody: %v", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs = index.Certificates()
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	if status, _, err := get(t, client, index.URL); err != nil || status != http.StatusUnauthorized {
		t.Errorf("without a password: %v", err)
	}
	if status, _, err := get(t, client, strings.Replace(index.URL, "https://", "https://me:secret@", 1)); err != nil || status != http.StatusOK {
		t.Errorf("with the password: %v", err)
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	index := indextest.New(t)
	index.Add(indextest.Wheel{Name: "x"})
	arrived, release := index.Hold("/simple/*")
	done := make(chan error, 1)
	go func() {
		_, _, err := get(t, http.DefaultClient, index.URL+"x/")
		done <- err
	}()
	<-arrived
	select {
	case err := <-done:
		t.Fatalf("a request that is held was answered: %v", err)
	default:
	}
	release()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTroublesEnd(t *testing.T) {
	t.Parallel()
	index := indextest.New(t)
	wheel := indextest.Wheel{Name: "x"}
	index.Add(wheel)
	index.Misbehave("/simple/x/", indextest.ServerError, 2)
	for _, want := range []int{500, 500, 200} {
		if status, _, err := get(t, http.DefaultClient, index.URL+"x/"); err != nil || status != want {
			t.Errorf("answered %d (%v), want %d", status, err, want)
		}
	}
	index.Misbehave("/simple/x/", indextest.SlowHeaders, 0)
	index.Misbehave("/files/*", indextest.StalledBody, 0)
	file := "/files/" + wheel.Filename()
	ends := make(chan error, 2)
	for _, path := range []string{"/simple/x/", file} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(index.URL, "/simple/")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			answer, err := http.DefaultClient.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			ends <- err
		}()
	}
	for index.Requests("/simple/x/") < 4 || index.Requests(file) < 1 {
		runtime.Gosched()
	}
	select {
	case err := <-ends:
		t.Fatalf("an answer that never comes has come: %v", err)
	default:
	}
	index.Close()
	for range 2 {
		if err := <-ends; err == nil {
			t.Error("an answer that never comes has come")
		}
	}
	if _, _, err := get(t, http.DefaultClient, indextest.Absent(t)); err == nil {
		t.Error("an absent index answers")
	}
}

func TestSameBytes(t *testing.T) {
	t.Parallel()
	wheel := indextest.Wheel{Name: "x", Padding: 1000, Links: map[string]string{"link": "/etc/passwd"}, Extras: map[string][]string{"a": {"b"}, "c": {"d"}}}
	sdist := indextest.Sdist{Name: "x", Build: []string{"y"}}
	for _, release := range []indextest.Release{wheel, sdist} {
		first := release.Bytes()
		if !bytes.Equal(first, release.Bytes()) {
			t.Errorf("%s has different bytes each time", release.Filename())
		}
	}
}
