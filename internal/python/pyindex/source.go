package pyindex

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
)

// askTimeout is how long uv may take to say which indexes it uses. It asks no network for that.
const askTimeout = 30 * time.Second

// Source is one place that packages come from.
type Source struct {
	Name   string // for messages, without credentials
	URL    string // of a PEP 503 index, with credentials where the user gave some; "" for a Folder
	Flat   bool   // URL is one page with the files of many projects (find-links)
	Folder string // a local folder of wheels (find-links)
}

// Access is how the sources are reached.
type Access struct {
	TLS   *tls.Config                           // the user's certificates; nil for those of the system
	Proxy func(*http.Request) (*url.URL, error) // the user's proxies; nil for none
	// Insecure lists hosts, with or without a port, whose certificates the user wants to go unchecked.
	Insecure []string
}

// Sources returns the places that packages come from, in the order in which uv would ask them, and how they are reached. environ is the process's environment and base
// the prefix of the Python in use, as for Environment. uv is the path of uv, which is asked for the index that it uses
// by default and for those of its own configuration. No network is used. What lists files (find-links) comes first: it adds to the indexes. Project files
// in the working folder (uv.toml, pyproject.toml) have no say, since they may come from anybody.
//
// Problems: index_settings_invalid, canceled.
func Sources(ctx context.Context, environ []string, base, uv string) ([]Source, Access, error) {
	env, flags := Environment(environ, base)
	set := map[string]string{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	conf := readConfig(set)
	access, err := reach(set, conf)
	if err != nil {
		return nil, Access{}, err
	}
	answer, err := ask(ctx, uv, base, env, flags)
	if err != nil {
		return nil, Access{}, err
	}
	secrets := newKeyring(set, conf)
	var links, indexes, last []Source
	for line := range strings.Lines(answer) {
		option, place, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch option {
		case "--find-links":
			links = appendSource(links, place, true, secrets)
		case "--extra-index-url":
			indexes = appendSource(indexes, place, conf.flat(place), secrets)
		case "--index-url":
			last = appendSource(last, place, conf.flat(place), secrets)
		}
	}
	indexes = append(indexes, last...)
	return unique(append(links, indexes...)), access, nil
}

// ask has uv resolve nothing at all, for which it tells the indexes that it would use.
func ask(ctx context.Context, uv, base string, env, flags []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	args := []string{"pip", "compile", "-", "--no-cache", "--emit-index-url", "--emit-find-links", "--no-header", "--offline"}
	if python := filepath.Join(base, "bin", "python3"); base != "" && exists(python) {
		args = append(args, "--python", python)
	}
	cmd := exec.CommandContext(ctx, uv, append(args, flags...)...)
	cmd.Stdin = strings.NewReader("\n")
	cmd.Env = env
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err == nil {
		return string(out), nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return "", problem.New(problem.GivenUp, "asking uv for its package indexes was canceled").WithCause(ctx.Err())
	}
	words := err.Error()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		words = strings.TrimSpace(string(exit.Stderr))
	}
	return "", invalid("uv does not accept the settings for package indexes").
		WithHint("look at the UV_ and PIP_ variables, uv.toml and pip.conf; `uv pip list` shows the same error").
		WithCause(errors.New(redact(words)))
}

func appendSource(to []Source, place string, flat bool, secrets keyring) []Source {
	if place == "" {
		return to
	}
	scheme, rest, isURL := strings.Cut(place, "://")
	if !isURL || strings.EqualFold(scheme, "file") {
		folder := place
		if isURL {
			u, err := url.Parse("file://" + rest)
			if err != nil {
				return to
			}
			folder = u.Path
		}
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return to
		}
		return append(to, Source{Name: folder, Folder: folder})
	}
	u, err := url.Parse(place)
	if err != nil || u.Host == "" {
		return to
	}
	u.Fragment = ""
	name := secrets.unlock(u)
	return append(to, Source{Name: name, URL: u.String(), Flat: flat})
}

func unique(sources []Source) []Source {
	seen := map[string]bool{}
	var out []Source
	for _, s := range sources {
		key := s.Folder + "\n" + s.URL
		if !seen[key] {
			seen[key] = true
			out = append(out, s)
		}
	}
	return out
}

var credentials = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^/@\s"']+@`) })

// redact hides the credentials of URLs in a text.
func redact(text string) string { return credentials().ReplaceAllString(text, "://***@") }

func invalid(message string) *problem.Error {
	return problem.New(problem.IndexSettingsInvalid, message)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func unreadable(what, path string, err error) error {
	return invalid(fmt.Sprintf("%s cannot be used: %s", what, path)).WithHint("correct the setting or remove it").WithCause(err)
}
