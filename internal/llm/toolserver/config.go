package toolserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/server/auth"
)

// Config is how one server is reached, and who may use it.
type Config struct {
	Name        string // letters, digits, - and _
	Description string

	// A server on standard input and output is a program of this machine, with the rights of this process. Its environment has PATH, HOME and LANG of this process, and Env.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string // where it runs; "": in the root folder

	// A server at an address speaks streamable HTTP.
	URL     string
	Headers map[string]string

	Tools    []string      // which of its tools code may call; a * at the end makes a prefix. nil: all
	Ask      []string      // which of them wait for somebody's word before each call, likewise. nil: none
	Projects []string      // which projects may use it, by id; "local" is the one of the first key and of the command line, "*" is every one. nil: "local"
	Timeout  time.Duration // wall clock of a call; 0: a minute
	Idle     time.Duration // for how long a connection is kept that nobody uses; 0: ten minutes
	AtOnce   int           // calls that it is given at the same time; 0: 8. Further ones wait

	secrets []string // what nobody who uses it may see
}

// Bounds of a file.
const (
	mostConfig    = 1 << 20 // bytes
	mostServers   = 100
	mostSecret    = 64 << 10 // bytes of a file with a secret
	mostTimeout   = 10 * time.Minute
	mostIdle      = 24 * time.Hour
	mostAtOnce    = 64
	longestServer = 40 // characters of a name
)

const (
	everyProject = "*"
	localProject = "local"
)

// entry is a server in the file. The first fields are those that programs which use such servers have in common.
type entry struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Dir      string            `json:"cwd"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`

	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	Ask         []string `json:"ask"`
	Projects    []string `json:"projects"`
	Timeout     float64  `json:"timeout_seconds"`
	Idle        float64  `json:"idle_seconds"`
	AtOnce      int      `json:"at_once"`
}

// Read reads the servers that a file names, in the form that Claude Desktop, Cursor and others have: {"mcpServers": {NAME: {...}}}. docs/tools.md has the fields. In the values of
// env, headers, args and url, ${NAME} stands for a variable of getenv and ${file:/PATH} for what is in a file; neither is shown to anybody. Problems: config_unreadable,
// config_invalid.
func Read(path string, getenv func(string) string) ([]Config, error) {
	text, err := ownFile(path)
	if err != nil {
		return nil, err
	}
	invalid := func(format string, args ...any) error {
		return problem.New(problem.ConfigInvalid, fmt.Sprintf("the file of tool servers %s: %s", path, fmt.Sprintf(format, args...))).WithHint("docs/tools.md shows what it has")
	}
	var file struct {
		Servers map[string]entry `json:"mcpServers"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, invalid("%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("there is something behind its end")
	}
	if len(file.Servers) > mostServers {
		return nil, invalid("it has %d servers, which is more than %d", len(file.Servers), mostServers)
	}
	var out []Config
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		e := file.Servers[name]
		if e.Disabled {
			continue
		}
		c, err := e.config(name, getenv)
		if err != nil {
			return nil, invalid("%s: %v", name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// ownFile reads a file that nobody else can write to: what it names is run.
func ownFile(path string) ([]byte, error) {
	unreadable := func(err error) error {
		return problem.New(problem.ConfigUnreadable, "cannot read the file of tool servers "+path).WithCause(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return nil, problem.New(problem.ConfigInvalid, "the file of tool servers "+path+" can be written to by others, and names programs to run").WithHint("make it yours alone: chmod go-w " + path)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if len(text) > mostConfig {
		return nil, unreadable(errors.New("it is larger than 1 MiB"))
	}
	return text, nil
}

var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`) })

func (e entry) config(name string, getenv func(string) string) (Config, error) {
	x := expander{getenv: getenv}
	c := Config{
		Name: name, Description: e.Description, Command: e.Command, Args: x.all(e.Args), Env: x.values(e.Env), Dir: e.Dir, URL: x.one(e.URL), Headers: x.values(e.Headers),
		Tools: e.Tools, Ask: e.Ask, Projects: e.Projects, Timeout: seconds(e.Timeout), Idle: seconds(e.Idle), AtOnce: e.AtOnce,
	}
	c.secrets = x.secrets
	return c, errors.Join(x.err, c.check(e.Type))
}

func seconds(n float64) time.Duration {
	return time.Duration(max(min(n, mostIdle.Seconds()+1), -1) * float64(time.Second))
}

func (c *Config) check(kind string) error {
	switch {
	case !serverName().MatchString(c.Name) || len(c.Name) > longestServer:
		return fmt.Errorf("the name of a server has letters, digits, - and _, at most %d", longestServer)
	case kind == "sse":
		return errors.New("the transport sse of 2024 is not there; most servers speak streamable HTTP, too, often at /mcp")
	case !slices.Contains([]string{"", "stdio", "http", "streamable-http", "streamableHttp"}, kind):
		return fmt.Errorf("type is stdio or http, not %q", kind)
	case (c.Command == "") == (c.URL == ""):
		return errors.New("it has either a command or a url")
	case c.Command == "" && kind == "stdio", c.URL == "" && kind != "" && kind != "stdio":
		return fmt.Errorf("it has the type %s, and what belongs to another", kind)
	case c.Command == "" && len(c.Args)+len(c.Env)+len(c.Dir) > 0, c.URL == "" && len(c.Headers) > 0:
		return errors.New("args, env and cwd go with command, and headers with url")
	case c.Dir != "" && !filepath.IsAbs(c.Dir):
		return errors.New("cwd is an absolute path")
	case c.Timeout < 0 || c.Timeout > mostTimeout:
		return fmt.Errorf("timeout_seconds is at most %.0f", mostTimeout.Seconds())
	case c.Idle < 0 || c.Idle > mostIdle:
		return fmt.Errorf("idle_seconds is at most %.0f", mostIdle.Seconds())
	case c.AtOnce < 0 || c.AtOnce > mostAtOnce:
		return fmt.Errorf("at_once is at most %d", mostAtOnce)
	}
	for _, p := range c.Projects {
		if p != everyProject && p != localProject && !strings.HasPrefix(p, "prj_") {
			return fmt.Errorf("projects has ids such as prj_..., %q or %q, not %q", localProject, everyProject, p)
		}
	}
	for key, value := range c.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%q is no name of a variable, or its value no text", key)
		}
		if secretName(key) {
			c.secrets = append(c.secrets, value)
		}
	}
	for key, value := range c.Headers {
		if !httpguts.ValidHeaderFieldName(key) || !httpguts.ValidHeaderFieldValue(value) || http.CanonicalHeaderKey(key) == "Host" {
			return fmt.Errorf("%q cannot be a header, or its value not one's value", key)
		}
		_, behind, _ := strings.Cut(value, " ") // Bearer SECRET
		c.secrets = append(c.secrets, value, behind)
	}
	return c.checkURL()
}

func (c *Config) checkURL() error {
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("url is an address such as https://example.com/mcp")
	}
	if u.User != nil {
		return errors.New("url has a user's name in it; send it in a header, as Authorization")
	}
	return nil
}

// allows says whether a project may use the server.
func (c *Config) allows(project string) bool {
	projects := c.Projects
	if projects == nil {
		projects = []string{localProject}
	}
	return slices.ContainsFunc(projects, func(p string) bool {
		return p == everyProject || p == project || p == localProject && project == auth.LocalProject
	})
}

// offers says whether code may call a tool, by the server's name for it.
func (c *Config) offers(name string) bool {
	return c.Tools == nil || matches(c.Tools, name)
}

// asks says whether somebody is asked before each call of a tool, by the server's name for it.
func (c *Config) asks(name string) bool { return matches(c.Ask, name) }

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return tool.Matches(pattern, name) })
}

// secretName says whether a variable of this name has a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTHORIZATION", "DSN", "DATABASE_URL"}, func(word string) bool { return strings.Contains(name, word) })
}

// expander replaces ${NAME} and ${file:/PATH}, and notes what it put there.
type expander struct {
	getenv  func(string) string
	secrets []string
	err     error
}

var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[^}]*\}`) })

func (x *expander) one(text string) string {
	return reference().ReplaceAllStringFunc(text, func(r string) string {
		name := strings.TrimPrefix(r[2:len(r)-1], "env:")
		value := ""
		if path, ok := strings.CutPrefix(name, "file:"); ok {
			f, err := os.Open(path)
			if err != nil {
				x.err = fmt.Errorf("the file of a secret cannot be read: %w", errors.Unwrap(err)) // its name is in r
				if errors.Is(err, fs.ErrNotExist) {
					x.err = fmt.Errorf("there is no file %s", path)
				}
				return ""
			}
			defer func() { _ = f.Close() }()
			content, err := io.ReadAll(io.LimitReader(f, mostSecret))
			if err != nil {
				x.err = fmt.Errorf("the file %s cannot be read", path)
			}
			value = strings.TrimRight(string(content), "\r\n")
		} else {
			value = x.getenv(name)
		}
		if value == "" && x.err == nil {
			x.err = fmt.Errorf("%s is empty, or not set", r)
		}
		x.secrets = append(x.secrets, value)
		return value
	})
}

func (x *expander) all(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, x.one(t))
	}
	return out
}

func (x *expander) values(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	out := map[string]string{}
	for key, value := range of {
		out[key] = x.one(value)
	}
	return out
}
