package deps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/require"
)

// question is what the resolver is asked: which versions go together.
type question struct {
	New    []string          `json:"new"` // requirements whose closure is wanted
	Old    []string          `json:"old"` // requirements that have to hold as well
	Pinned map[string]string `json:"pinned"`
	Prefer map[string]string `json:"prefer"` // versions to stay with where nothing speaks against them

	bounds []string // further constraints, which follow from the rest
}

// solution is the resolver's answer.
type solution struct {
	Versions map[string]string   // of the whole closure of New and Old
	Parents  map[string][]string // distribution to those that need it
	Conflict string              // why there is no solution, in uv's words
}

const (
	maxAnswer = 1 << 20 // bytes of a resolver's output
	maxWords  = 64 << 10
)

// compile asks uv, which sees no other index than the gateway's and none of the user's settings.
func (i *Installer) compile(ctx context.Context, g *gateway.Gateway, q question) (solution, error) {
	uv, err := i.findUV(ctx)
	if err != nil {
		return solution{}, err
	}
	dir, err := i.workFolder()
	if err != nil {
		return solution{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	proxy, err := g.Serve(serving)
	if err != nil {
		return solution{}, fmt.Errorf("serve the package index: %w", err)
	}
	args := []string{"pip", "compile", "-", "--no-config", "--only-binary", ":all:", "--python", i.options.Env.Python, "--no-header", "--annotation-style", "line",
		"--cache-dir", filepath.Join(i.dir, "uv"), "--default-index", gateway.IndexURL, "--no-progress", "--color", "never"}
	if len(q.Pinned)+len(q.bounds) > 0 {
		path := filepath.Join(dir, "constraints.txt")
		if err := os.WriteFile(path, append(pins(q.Pinned), strings.Join(q.bounds, "\n")+"\n"...), 0o600); err != nil {
			return solution{}, unwritable(dir, err)
		}
		args = append(args, "--constraints", path)
	}
	if len(q.Prefer) > 0 { // uv stays with what it finds in its output file
		path := filepath.Join(dir, "answer.txt")
		if err := os.WriteFile(path, pins(q.Prefer), 0o600); err != nil {
			return solution{}, unwritable(dir, err)
		}
		args = append(args, "--output-file", path)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH"), "HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"NO_COLOR=1", "UV_PYTHON_DOWNLOADS=never", "UV_HTTP_RETRIES=0", "UV_HTTP_TIMEOUT=300"}
	stdin := strings.Join(slices.Concat(q.New, q.Old), "\n") + "\n"
	stdout, stderr, err := runBounded(ctx, uv, args, env, dir, stdin)
	switch {
	case err == nil:
		return parseAnswer(stdout)
	case ctx.Err() != nil:
		return solution{}, ended(ctx, "resolving packages")
	case strings.Contains(stderr, "No solution found"):
		return solution{Conflict: plainWords(stderr)}, indexFault(g, stderr)
	}
	if fault := indexFault(g, stderr); fault != nil {
		return solution{}, fault
	}
	return solution{}, problem.New(problem.ResolveFailed, "the versions of the packages could not be worked out").
		WithHint("run it again; if it fails again, the lines from uv say why").WithCause(fmt.Errorf("uv: %w\n%s", err, plainWords(stderr)))
}

// workFolder makes a folder for one question, and clears away those of killed processes.
func (i *Installer) workFolder() (string, error) {
	parent := filepath.Join(i.dir, "work")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", unwritable(parent, err)
	}
	if entries, err := os.ReadDir(parent); err == nil {
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
				_ = os.RemoveAll(filepath.Join(parent, entry.Name())) // a leftover costs space, not correctness
			}
		}
	}
	dir, err := os.MkdirTemp(parent, "resolve-")
	if err != nil {
		return "", unwritable(parent, err)
	}
	return dir, nil
}

func pins(versions map[string]string) []byte {
	var b bytes.Buffer
	for _, name := range sortedKeys(versions) {
		fmt.Fprintf(&b, "%s==%s\n", name, versions[name])
	}
	return b.Bytes()
}

// runBounded runs a program that dies with this process, and keeps the first bytes of what it says.
func runBounded(ctx context.Context, name string, args, env []string, dir, stdin string) (stdout, stderr string, err error) {
	out, words := &bounded{limit: maxAnswer}, &bounded{limit: maxWords}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, dir, strings.NewReader(stdin), out, words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	// The parent-death signal is tied to the thread that starts the child, so that thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	if err == nil && out.over {
		err = errors.New("the answer is too long")
	}
	return out.text.String(), words.text.String(), err
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	text  bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.text.Len()
	if len(p) > room {
		b.over = true
		b.text.Write(p[:room])
		return len(p), nil
	}
	return b.text.Write(p)
}

var _ io.Writer = (*bounded)(nil)

// answerLine is one distribution as uv pip compile prints it, with the line style of annotations.
var answerLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)==([A-Za-z0-9.!+_-]+)(?:\s+#\s*via\s+(.*))?$`)
})

// parseAnswer reads uv's answer and believes nothing that does not look exactly as expected.
func parseAnswer(text string) (solution, error) {
	s := solution{Versions: map[string]string{}, Parents: map[string][]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := answerLine().FindStringSubmatch(line)
		if m == nil {
			return solution{}, problem.New(problem.ResolveFailed, "the resolver's answer could not be read").
				WithHint("update uv").WithCause(fmt.Errorf("unexpected line %q", line))
		}
		name := require.Normalize(m[1])
		if _, twice := s.Versions[name]; twice {
			return solution{}, problem.New(problem.ResolveFailed, "the resolver's answer names "+name+" twice").WithHint("update uv")
		}
		s.Versions[name] = m[2]
		for _, parent := range strings.Split(m[3], ", ") {
			if parent != "" && !strings.HasPrefix(parent, "-") {
				s.Parents[name] = append(s.Parents[name], require.Normalize(parent))
			}
		}
	}
	return s, nil
}

// closure returns the distributions that roots need, themselves included.
func (s solution) closure(roots []string) map[string]bool {
	in := map[string]bool{}
	for _, name := range roots {
		if _, there := s.Versions[name]; there {
			in[name] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for name, parents := range s.Parents {
			if !in[name] && slices.ContainsFunc(parents, func(p string) bool { return in[p] }) {
				in[name], grown = true, true
			}
		}
	}
	return in
}

// indexFault returns the problem that an index has with a project which uv's words name, nil when there is none.
func indexFault(g *gateway.Gateway, words string) error {
	failures := g.Failures()
	for _, name := range sortedKeys(failures) {
		if gateway.IndexFailed(failures[name]) && (strings.Contains(words, gateway.IndexURL+name+"/") || mentions(words, name)) {
			return failures[name]
		}
	}
	return nil
}

// plainWords are uv's reasons without its ornaments and its advice, which is about uv's own options.
func plainWords(stderr string) string {
	text, _, _ := strings.Cut(stderr, "\nhint:")
	text, _, _ = strings.Cut(text, "\n      hint:")
	var words []string
	for _, word := range strings.Fields(text) {
		if !slices.Contains([]string{"×", "╰─▶", "├─▶", "│", "error:", "cause:"}, word) {
			words = append(words, word)
		}
	}
	plain := strings.Join(words, " ")
	_, after, found := strings.Cut(plain, "No solution found when resolving dependencies")
	if found {
		plain = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(after), ":"))
	}
	return plain
}
