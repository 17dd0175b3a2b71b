package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/python/deps/indextest"
	"cove/internal/testkit/testneeds"
)

// pagePatience bounds each of the front's programs, on a machine that does much else.
const pagePatience = 25 * time.Minute

// front is a copy of web/ with what its package-lock.json names, for a test of its own.
type front struct {
	t   *testing.T
	dir string
}

func newFront(t *testing.T) *front {
	t.Helper()
	testneeds.Asked(t, testneeds.Node)
	npm, err := exec.LookPath("npm")
	if err != nil {
		testneeds.Absent(t, testneeds.Node, err)
	}
	base := t.TempDir()
	// What is installed depends on these alone.
	source := filepath.Join(base, "web")
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		copyFile(t, filepath.Join("..", "web", name), filepath.Join(source, name))
	}
	installed := sdkFolder(t, source, "package-lock.json", func(ctx context.Context, dir string) error {
		return sdkRun(ctx, dir, npm, "ci", "--loglevel=error")
	})
	f := &front{t: t, dir: filepath.Join(base, "front")}
	err = filepath.WalkDir(filepath.Join("..", "web"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		within, err := filepath.Rel(filepath.Join("..", "web"), path)
		if err == nil {
			copyFile(t, path, filepath.Join(f.dir, within))
		}
		return err
	})
	if err == nil {
		err = os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(f.dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs one of the front's programs, and fails the test when that fails.
func (f *front) run(env []string, program string, args ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), pagePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.WaitDelay = f.dir, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it says where it was
	cmd.Env = append(append(os.Environ(), "LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1"), env...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if testing.Verbose() { // somebody watches
		cmd.Stdout = io.MultiWriter(&out, os.Stdout)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		var failed []string // in the first line, which is what is seen of a long report
		for line := range strings.Lines(out.String()) {
			if name, ok := strings.CutPrefix(line, "FAILED  "); ok {
				failed = append(failed, strings.TrimSpace(name))
			}
		}
		f.t.Errorf("%s %s: %v: %s\n%s", program, strings.Join(args, " "), err, strings.Join(failed, "; "), &out)
	}
	return out.String()
}

// TestPageIsBuilt builds the page from its source and compares that with what is in the repository, which `go build` takes. It runs what there is to check of the source
// without a server, too. Both take minutes and depend on the source alone: a source that was built on this machine before is not built again.
func TestPageIsBuilt(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	f := newFront(t)
	source := filepath.Join(t.TempDir(), "page")
	if err := errors.Join(os.Mkdir(source, 0o700), os.WriteFile(filepath.Join(source, "sums"), f.sums(), 0o600)); err != nil {
		t.Fatal(err)
	}
	built := sdkFolder(t, source, "sums", func(_ context.Context, dir string) error {
		for _, step := range []string{"types", "lint", "test", "build"} {
			f.run(nil, "npm", "run", "--silent", step)
		}
		if t.Failed() {
			return errors.New("a step failed")
		}
		return os.CopyFS(filepath.Join(dir, "dist"), os.DirFS(filepath.Join(f.dir, "dist")))
	})
	for _, pair := range [][2]string{{filepath.Join("..", "web", "dist"), filepath.Join(built, "dist")}, {filepath.Join(built, "dist"), filepath.Join("..", "web", "dist")}} {
		err := filepath.WalkDir(pair[0], func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			within, _ := filepath.Rel(pair[0], path)
			one, _ := os.ReadFile(path)
			if other, err := os.ReadFile(filepath.Join(pair[1], within)); err != nil || !bytes.Equal(one, other) {
				t.Errorf("web/dist/%s is not what the source says (%v); run `make web`", within, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sums are the SHA-256 of each file of the source, with its path.
func (f *front) sums() []byte {
	f.t.Helper()
	var sums bytes.Buffer
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type() == fs.ModeSymlink { // the installed packages are what package-lock.json says
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), strings.TrimPrefix(path, f.dir))
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return sums.Bytes()
}

// TestPageKnowsTheAPI compares the document of the API with the one that the page's types were made from.
func TestPageKnowsTheAPI(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "docs", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	types, err := os.ReadFile(filepath.Join("..", "web", "src", "api", "schema.ts"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(document)
	if want := "// Of the document with the SHA-256 " + hex.EncodeToString(sum[:]) + "\n"; !strings.HasPrefix(string(types), want) {
		t.Error("web/src/api/schema.ts was made from another docs/openapi.json; run `make web-types`")
	}
}

// browser returns the path of Chromium: of the one without windows where that is there, which takes half of the processor time.
func browser(t *testing.T) string {
	t.Helper()
	testneeds.Asked(t, testneeds.Browser)
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	testneeds.Absent(t, testneeds.Browser, "there is no chromium on the PATH")
	return ""
}

// TestPage goes the first way through the page in a real browser: sign in, ask about a file, see the chart, load the page again.
func TestPage(t *testing.T) {
	t.Parallel()
	page(t, "first")
}

func page(t *testing.T, part string) {
	t.Helper()
	chromium := browser(t)
	f := newFront(t)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(pageModel)
	home, index := pagePackages(t)
	asked := startServer(t, "", testKey(t), "COVE_HOME="+home, "UV_DEFAULT_INDEX="+index.URL, "COVE_PACKAGES=standard", "COVE_TITLES=false",
		"OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	own := t.TempDir()
	script := cmp.Or(os.Getenv("COVE_PAGE_SCRIPT"), "main.mjs")
	env := []string{
		"CHROMIUM=" + chromium, "HOME=" + own, "XDG_CONFIG_HOME=" + own, "XDG_CACHE_HOME=" + own, "COVE_PART=" + part, "COVE_ONLY=" + os.Getenv("COVE_ONLY"),
		"COVE_BASE=" + asked.base, "COVE_KEY=" + asked.key, "COVE_PID=" + strconv.Itoa(asked.cmd.Process.Pid), "COVE_SETUP=" + asked.setup(),
		"COVE_SALES=" + absolute(t, filepath.Join("..", "examples", "sales", "sales.csv")), "COVE_PICTURES=" + os.Getenv("COVE_PICTURES"), "COVE_SERVICE=" + upstream.OpenAIURL(),
	}
	if part != "first" {
		addWidgets(t, index)
		env = append(env, pageOthers(t, upstream, index, part == "scale" || script == "speed.mjs")...)
	}
	f.run(env, "node", "e2e/"+script)
}

// pageOthers starts what the whole of the page's test has beside its first server, with a long conversation when asked for, and returns the variables that lead there.
func pageOthers(t *testing.T, upstream *modeltest.Server, index *indextest.Index, long bool) []string {
	t.Helper()
	alone := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	world := newPageWorld(t, index, "COVE_PACKAGES=standard", "COVE_TITLES=false", "COVE_DRAIN_TIMEOUT=5s", "COVE_POOL=0",
		"COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0", // a thousand questions come as fast as they are answered
		"OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	env := []string{"COVE_ALONE=" + alone.base, "COVE_ALONE_KEY=" + alone.key, "COVE_JUPYTER=" + pageJupyter(t)}
	if long {
		env = append(env, "COVE_LONG="+world.server.converse(manyTurns))
	}
	return append(env, world.settings()...)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// setup returns the address that `cove open` prints: with a code that signs in once.
func (s *server) setup() string {
	s.t.Helper()
	cmd := newCommand(s.t, "open", "--json")
	cmd.cmd.Env = s.cmd.Env
	r := cmd.run()
	var said struct{ Page string }
	if err := json.Unmarshal([]byte(r.stdout), &said); err != nil || r.code != 0 {
		s.t.Fatalf("cove open: %v\n%+v", err, r)
	}
	return said.Page
}

// pageModel answers questions of the page's tests: it reads the file, fails once at a column's name, draws, and answers.
func pageModel(_ int, r modeltest.Request) modeltest.Turn {
	messages := r.Messages()
	if len(messages) > 0 && strings.HasPrefix(fmt.Sprint(messages[0]["content"]), "Write a title") {
		return modeltest.Say("**A number, printed.**")
	}
	question := ""
	results := 0
	for _, m := range messages {
		if m["role"] == "user" {
			question = modeltest.Asked(modeltest.Request{Body: map[string]any{"messages": []any{m}}}.Text())
			results = 0
		}
		if m["role"] == "tool" {
			results++
		}
	}
	if strings.Contains(question, "> Changed and run again:\n> ```\n> x = 48") && strings.Contains(question, "> x is 48") {
		return modeltest.Say("The steps have 48 now.")
	}
	if _, text, ok := strings.Cut(question, "say: "); ok {
		return modeltest.Say(text)
	}
	switch {
	case strings.Contains(question, "run: "):
		_, code, _ := strings.Cut(question, "run: ")
		if results == 0 {
			turn := modeltest.Run(code)
			if strings.Contains(question, "write slowly") {
				turn.Delay = 50 * time.Millisecond
			}
			return turn
		}
		return modeltest.Say("It ran.")
	case strings.Contains(question, "grew"), strings.Contains(question, "增长"):
		return growth(results, strings.Contains(question, "增长"))
	case strings.Contains(question, "stumble"):
		return stumble(results)
	case strings.Contains(question, "refused by the provider"):
		return modeltest.Error(401, "invalid_request_error", "the key is not accepted")
	case strings.Contains(question, "forever"):
		if results == 0 {
			return modeltest.Run("import time\nprint('begun')\nwhile True:\n    time.sleep(0.1)")
		}
	case strings.Contains(question, "refuse the key"):
		return modeltest.Error(401, "invalid_request_error", "Incorrect API key provided")
	case strings.Contains(question, "slowly"):
		if results == 0 {
			return modeltest.Run("import time\nfor i in range(5):\n    print('line', i, flush=True)\n    time.sleep(1)")
		}
		return modeltest.Say("Five lines, one a second.")
	case strings.Contains(question, "number "):
		return modeltest.Say("The answer to **" + question + "**, in a few words:\n\n- one\n- two\n\n```python\nprint(1)\n```\n")
	case strings.Contains(question, "hostile"):
		return modeltest.Say("![x](http://outside.invalid/?q=1) and <script>window.hurt = 1</script> and [a link](javascript:alert(1))")
	}
	return modeltest.Say("You said: " + question)
}

// stumble reads a file and fails twice after that.
func stumble(results int) modeltest.Turn {
	saying := func(text, code string) modeltest.Turn {
		turn := modeltest.Run(code)
		turn.Text = []string{text}
		return turn
	}
	switch results {
	case 0:
		return saying("I will read the file first.", "import pandas as pd\ndf = pd.read_csv('sales.csv')")
	case 1:
		return modeltest.Run("df['no']")
	case 2:
		return saying("I will try another name.", "missing")
	}
	return modeltest.Say("Nothing could be read.")
}

func growth(results int, chinese bool) modeltest.Turn {
	switch results {
	case 0:
		return modeltest.Run("# Read the file\nimport pandas as pd\ndf = pd.read_csv('sales.csv')\ndf.head()")
	case 1:
		return modeltest.Run("# Group by region\ndf.groupby('Region')['Umsatz'].sum()")
	case 2:
		return modeltest.Run("# Revenue by region and year\nby_year = df.pivot_table(index='region', columns=df['date'].str[:4], values='revenue', aggfunc='sum')\n" +
			"growth = ((by_year['2025'] / by_year['2024'] - 1) * 100).round(1).sort_values().rename('growth %')\ngrowth")
	case 3:
		return modeltest.Run("# Plot the growth\nimport matplotlib.pyplot as plt\nax = growth.plot.barh(figsize=(6.4, 3.2))\nax.bar_label(ax.containers[0], fmt='%+.1f %%', padding=4)\nax.margins(x=0.2)\n" +
			"ax.set(title='Growth of revenue, 2024 to 2025', xlabel='%', ylabel='')\nplt.show()\ngrowth.to_csv('regions.csv')")
	}
	if chinese {
		return modeltest.Say("**海外增长最快。**其次是南方。\n\n| 地区 | 增长 |\n|---|---:|\n| 海外 | +55.7% |\n| 南方 | +40.5% |\n| 西部 | +3.1% |\n| 北方 | +0.4% |\n| 东部 | −20.5% |")
	}
	return modeltest.Say("**Overseas grew fastest: +55.7 %.** South comes second; East fell.\n\n| region | growth |\n|---|---:|\n| Overseas | +55.7 % |\n| South | +40.5 % |\n| West | +3.1 % |\n| North | +0.4 % |\n| East | −20.5 % |\n")
}
