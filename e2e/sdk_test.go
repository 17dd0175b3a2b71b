package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/llm/model/modeltest"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// sdkPatience bounds one script, its installation included.
const sdkPatience = 10 * time.Minute

const sdkPixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// sdkAnswers is what the scripted model says: by a word of the last question, the code that it runs and what it says then.
func sdkAnswers() map[string]struct{ code, text string } {
	return map[string]struct{ code, text string }{
		"compute": {"print(6*7)", "The answer is 42."},
		"plot": {"import base64\nfrom IPython.display import Image, display\nwith open('/mnt/data/plot.txt', 'w') as f:\n    f.write('plotted')\n" +
			"display(Image(data=base64.b64decode('" + sdkPixel + "')))", "Here is [the plot](sandbox:/mnt/data/plot.txt)."},
		"read the file":         {"print(open('/mnt/data/data.csv').read())", "It is read."},
		"read what is attached": {"print(open('input_file_0.csv').read(), end='')", "It is read."},
		"divide":                {"1/0", "It failed."},
		"slow":                  {"import time\ntime.sleep(600)", "It is over."},
		"greet":                 {"", "Hello!"},
		"set the var":           {"kept = 6*7", "It is set."},
		"recall":                {"print(f'It is {kept}.', end='')", sdkPrinted},
		"weather":               {"", "It is sunny in Rome."},
		"heavens": {"import asyncio\nprint('first')\nfirst = await get_weather(city='Rome')\n" +
			"others = await asyncio.gather(*(get_weather(city=c) for c in ('Oslo', 'Lima')))\nprint(first['sky'], *(o['sky'] for o in others), end='')", sdkPrinted},
		"skies": {"import asyncio, tools\nprint('first')\nfirst = tools.get_weather(city='Rome')\n" +
			"others = await asyncio.gather(*(tools.aio.get_weather(city=c) for c in ('Oslo', 'Lima')))\nprint(first['sky'], *(o['sky'] for o in others), end='')", sdkPrinted},
	}
}

// sdkPrinted stands for what the code printed.
const sdkPrinted = "<printed>"

func sdkModel(_ int, r modeltest.Request) modeltest.Turn {
	asked, printed, ran := "", "", false
	messages := r.Messages()
	for k := len(messages) - 1; k >= 0 && asked == ""; k-- {
		text := modeltest.Request{Body: map[string]any{"messages": []any{messages[k]}}}.Text()
		if messages[k]["role"] == "tool" {
			printed, ran = text, true
		}
		if messages[k]["role"] != "user" {
			continue
		}
		if strings.Contains(text, "limited") {
			return modeltest.Error(429, "rate_limit_error", "slow down", "Retry-After", "0")
		}
		for word := range sdkAnswers() {
			if strings.Contains(text, word) {
				asked = word
			}
		}
	}
	answer := sdkAnswers()[asked]
	turn := modeltest.Say(strings.ReplaceAll(answer.text, sdkPrinted, strings.TrimSpace(printed)))
	switch {
	case asked == "":
		turn = modeltest.Error(400, "invalid_request_error", "the script knows nothing of this question")
	case asked == "weather" && !ran:
		turn = modeltest.Turn{Calls: []modeltest.Call{{Name: "get_weather", Arguments: `{"city": "Rome"}`}}}
	case answer.code != "" && !ran:
		turn = modeltest.Run(answer.code)
	}
	turn.Input, turn.Output = 10, 5
	return turn
}

// TestClientsSDKs has the vendors' own client libraries, as they are published, talk to a server whose model follows a script.
func TestClientsSDKs(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	t.Run("go", func(t *testing.T) { goSDK(t, s) })
	for _, c := range []struct {
		name    string
		command func(t *testing.T, source string) *exec.Cmd
		told    string
	}{
		{"python", pythonSDK, "ok chat"},
		{"node", nodeSDK, "ok chat"},
		{"frameworks", pythonSDK, "ok three turns of pydantic_ai"},
		{"frameworksjs", nodeSDK, "ok three turns of agents"},
		{"aisdk", nodeSDK, "ok version 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
			cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+s.base+"/v1", "OPENAI_API_KEY="+s.key, "COVE_TEST_MODEL=scripted",
				"PYTHONDONTWRITEBYTECODE=") // whose folder is kept, and need not compile the libraries again each time
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.told) {
				t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
			}
		})
	}
}

// pythonSDK has a virtual environment with exactly what requirements.txt names.
func pythonSDK(t *testing.T, source string) *exec.Cmd {
	folder := pythonFolder(t, source)
	return sdkCommand(t, folder, source, filepath.Join(folder, "venv", "bin", "python"), "main.py")
}

// pythonFolder returns a folder whose venv has exactly what requirements.txt names.
func pythonFolder(t *testing.T, source string) string {
	t.Helper()
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	return sdkFolder(t, source, "requirements.txt", func(ctx context.Context, dir string) error {
		uv, err := pyenv.UV(ctx, cfg.Folders.Data, os.Stderr)
		if err != nil {
			return err
		}
		python, err := pyenv.FindPython(ctx, pyenv.Standard, cfg.Packages.Python)
		if err != nil {
			return err
		}
		return errors.Join(
			sdkRun(ctx, dir, uv, "venv", "--quiet", "--relocatable", "--python", python.Path, "venv"),
			sdkRun(ctx, dir, uv, "pip", "sync", "--quiet", "--python", "venv/bin/python", "--require-hashes", "requirements.txt"))
	})
}

// nodeSDK has a folder with exactly what package-lock.json names.
func nodeSDK(t *testing.T, source string) *exec.Cmd {
	node, folder := nodeFolder(t, source)
	return sdkCommand(t, folder, source, node, "main.mjs")
}

// nodeFolder returns Node's path, and a folder with exactly what package-lock.json names.
func nodeFolder(t *testing.T, source string) (node, folder string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		testneeds.Absent(t, testneeds.Node, err)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		testneeds.Absent(t, testneeds.Node, err)
	}
	folder = sdkFolder(t, source, "package-lock.json", func(ctx context.Context, dir string) error {
		return sdkRun(ctx, dir, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	})
	return node, folder
}

// sdkCommand runs the script as it is now, with those beside it, from the folder that has what they import.
func sdkCommand(t *testing.T, folder, source, program, script string) *exec.Cmd {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(source, "*"+filepath.Ext(script)))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Node looks for packages beside the script. Another test may be running it.
		target := filepath.Join(folder, filepath.Base(path))
		if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, text) {
			continue
		}
		if err := durable.Replace(target, 0o600, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), sdkPatience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, filepath.Join(folder, script))
	cmd.WaitDelay = time.Second
	return cmd
}

// sdkFolder returns a folder in the user's cache for what a lock file names; it is installed once, whoever asks.
func sdkFolder(t *testing.T, source, lockFile string, install func(ctx context.Context, dir string) error) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	locked, err := os.ReadFile(filepath.Join(source, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(locked)
	dir := filepath.Join(cache, "cove", "sdk", filepath.Base(source)+"-"+hex.EncodeToString(sum[:6]))
	if err := testneeds.Download(t, func() error { return fetchOnce(t.Context(), source, dir, install) }); err != nil {
		t.Fatalf("install %s: %v", source, err)
	}
	return dir
}

// fetchOnce makes a folder of a copy of source and what install adds, unless it is there.
func fetchOnce(ctx context.Context, source, dir string, install func(ctx context.Context, dir string) error) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(source))); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sdkPatience)
	defer cancel()
	if err := install(ctx, dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600)
}

func sdkRun(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}
