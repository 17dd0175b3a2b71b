package build_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/deps/indextest"
	"cove/internal/testkit/testneeds"
)

// impostorSource stands for a uv that a hostile build has got hold of: it does what the JSON behind its own end says.
const impostorSource = `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	self, _ := os.ReadFile("/proc/self/exe")
	var orders struct {
		Answer string
		Repeat int
		Files  []string
	}
	end := self[bytes.LastIndex(self, []byte("\n{"))+1:]
	if err := json.Unmarshal(end, &orders); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if os.Args[1] == "pip" {
		fmt.Print(strings.Repeat(orders.Answer, max(1, orders.Repeat)))
		return
	}
	for _, name := range orders.Files {
		name, target, link := strings.Cut(name, " -> ")
		_ = os.MkdirAll(filepath.Dir(name), 0o755)
		switch {
		case link:
			_ = os.Symlink(target, name)
		case strings.HasSuffix(name, "|"):
			_ = syscall.Mkfifo(strings.TrimSuffix(name, "|"), 0o644)
		case strings.HasSuffix(name, "/"):
			_ = os.MkdirAll(name, 0o755)
		default:
			_ = os.WriteFile(name, []byte("not a wheel"), 0o644)
		}
	}
}
`

// impostor is a variable because sync.OnceValues makes one value for all tests of a process.
var impostor = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "cove-test-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "uv")
	if err := os.WriteFile(source, []byte(impostorSource), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "build", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(program)
})

type orders struct {
	Answer string
	Repeat int
	Files  []string
}

// impostor makes the builder use a uv that follows orders.
func (w *world) impostor(o orders) {
	w.t.Helper()
	program, err := impostor()
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), "uv")
	testneeds.Program(w.t, path, string(program)+"\n"+string(text))
	w.options.UV = func(context.Context) (string, error) { return path, nil }
}

// TestBelievesNothing has uv itself lie, about the versions that go together and with what it leaves behind.
func TestBelievesNothing(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const good = "x==1.0\n"
	for name, test := range map[string]struct {
		orders orders
		code   string
		want   string
	}{
		"nothing asked for":  {orders{Answer: "milk==1.0\n"}, "resolve_failed", "x<2 was asked for"},
		"another version":    {orders{Answer: "x==2.0\n"}, "resolve_failed", "x<2 was asked for"},
		"constraint broken":  {orders{Answer: good + "milk==2.0\n"}, "resolve_failed", "milk==1.0 has to hold"},
		"version unheard of": {orders{Answer: "x==1.1\n"}, "no_wheel", "x 1.1 has neither"},
		"project unheard of": {orders{Answer: good + "unheard-of==1.0\n"}, "package_unknown", "unheard-of"},
		"a URL":              {orders{Answer: "x @ https://host.example/x.whl\n"}, "resolve_failed", "is not the version"},
		"an option":          {orders{Answer: good + "--index-url=https://host.example\n"}, "resolve_failed", "is not the version"},
		"garbage":            {orders{Answer: "\x1b[31m\x00\xff\n"}, "resolve_failed", "is not the version"},
		"twice":              {orders{Answer: good + "X==1.0\nx==1.0\n"}, "resolve_failed", ""},
		"no end":             {orders{Answer: good, Repeat: 200_000}, "resolve_failed", "too long"},
		"no wheel":           {orders{Answer: good}, "build_failed", "0 wheels"},
		"a wheel too many":   {orders{Answer: good, Files: []string{"out/x-1.0-py3-none-any.whl", "out/milk-1.0-py3-none-any.whl"}}, "build_failed", "2 wheels"},
		"another's wheel":    {orders{Answer: good, Files: []string{"out/milk-1.0-py3-none-any.whl"}}, "build_failed", "a wheel of another package"},
		"a newer wheel":      {orders{Answer: good, Files: []string{"out/x-1.1-py3-none-any.whl"}}, "build_failed", "a wheel of another package"},
		"an odd name":        {orders{Answer: good, Files: []string{"out/x-1.0-\x1b[31m.whl"}}, "build_failed", "not the name of a wheel"},
		"a link":             {orders{Answer: good, Files: []string{"out/x-1.0-py3-none-any.whl -> /etc/passwd"}}, "build_failed", "could not be read"},
		"a link of folders":  {orders{Answer: good, Files: []string{"/tmp/trap/x-1.0-py3-none-any.whl", "out -> /tmp/trap"}}, "build_failed", "could not be read"},
		"a pipe":             {orders{Answer: good, Files: []string{"out/x-1.0-py3-none-any.whl|"}}, "build_failed", "could not be read"},
		"a folder":           {orders{Answer: good, Files: []string{"out/x-1.0-py3-none-any.whl/"}}, "build_failed", "could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.index.Add(indextest.Sdist{Name: "x"}, indextest.Wheel{Name: "milk"})
			w.impostor(test.orders)
			said := w.fails(test.code, "x<2", "!milk==1.0")
			if !strings.Contains(said, test.want) || strings.ContainsAny(said, "\x1b\x00") {
				t.Errorf("it is said, without %q:\n%q", test.want, said)
			}
		})
	}
}

// TestTakesUVAlone makes sure that a script in place of uv is told apart before a sandbox is started for it.
func TestTakesUVAlone(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "uv")
	testneeds.Program(t, path, "#!/bin/sh\nexec pyenv exec uv \"$@\"\n")
	w.options.UV = func(context.Context) (string, error) { return path, nil }
	_, err := w.build("x")
	if err == nil || problem.Of(err).Code != "uv_unusable" || problem.Of(err).Hint == "" {
		t.Errorf("with a script for uv: %v", err)
	}
}
