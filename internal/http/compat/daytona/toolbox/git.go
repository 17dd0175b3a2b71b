package toolbox

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

// Git runs in the sandbox, as a process of the session: it reads whatever is there, and its hooks and filters are code of the sandbox.

const (
	gitUserVariable     = "COVE_GIT_USERNAME"
	gitPasswordVariable = "COVE_GIT_PASSWORD"
	mostHistory         = 1000 // commits of an answer
	longestGitText      = 8192 // bytes of a name, address or path
)

// gitHelper gives Git the credentials of one call, which are in the environment of that process and its children alone, and in no file. Code that runs in the sandbox as the same
// user at that time can read them there.
const gitHelper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$` + gitUserVariable + `" "$` + gitPasswordVariable + `"; }; f`

// gitCall is one run of Git.
type gitCall struct {
	dir                string // the repository; "": none is needed
	args               []string
	username, password string // for this call
	input              []byte
}

// git runs Git, and returns what it has written. Problems have Daytona's codes.
func (t *Toolbox) git(c *call, g gitCall) (string, error) {
	text, exit, stderr, err := t.gitStatus(c, g)
	if err != nil {
		return "", err
	}
	if exit != 0 {
		return "", gitFault(stderr, text)
	}
	return text, nil
}

// gitDone runs Git, and answers that it is done.
func (t *Toolbox) gitDone(c *call, g gitCall) error {
	if _, err := t.git(c, g); err != nil {
		return err
	}
	return done(c)
}

// gitStatus is git for calls whose status says something.
func (t *Toolbox) gitStatus(c *call, g gitCall) (text string, exit int, stderr string, err error) {
	args := []string{"git"}
	env := c.s.environment(map[string]string{
		"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_EDITOR": "true", "GIT_PAGER": "cat",
	})
	if g.password != "" || g.username != "" {
		args = append(args, "-c", "credential.helper=", "-c", "credential.helper="+gitHelper)
		env[gitUserVariable], env[gitPasswordVariable] = g.username, g.password
	}
	if g.dir != "" {
		args = append(args, "-C", g.dir)
	}
	var out, errs output
	end, err := t.run(c, process.Start{Args: append(args, g.args...), Dir: c.s.Work, Env: env}, g.input, func(kind process.Kind, data []byte) {
		if kind == process.Stderr {
			errs.add(data)
		} else {
			out.add(data)
		}
	})
	if problem.Has(err, problem.ProgramMissing) {
		err = &fault{http.StatusNotImplemented, "", "there is no git in the sandboxes of this server; its operator can install it on the host"}
	}
	if err == nil && out.dropped > 0 {
		err = &fault{http.StatusUnprocessableEntity, "", "git has more to say than an answer holds; run it with process.exec"}
	}
	return out.text.String(), end.Status(), errs.String(), err
}

// gitFaults tell what is wrong by Git's own words, in English, the first that fits.
var gitFaults = []struct {
	words  []string
	status int
	code   string
}{
	{[]string{"Authentication failed", "could not read Username", "could not read Password", "terminal prompts disabled", "Permission denied (publickey", "returned error: 401", "returned error: 403"}, 401, "GIT_AUTH_FAILED"},
	{[]string{"Repository not found", "not a git repository", "does not appear to be a git repository", "does not exist\n", "returned error: 404", "cannot change to", "No such remote"}, 404, "GIT_REPO_NOT_FOUND"},
	{[]string{"[rejected]", "failed to push some refs"}, 409, "GIT_PUSH_REJECTED"},
	{[]string{"[remote rejected]"}, 409, "GIT_REMOTE_REJECTED"},
	{[]string{"would be overwritten", "Please commit your changes or stash them", "You have unstaged changes"}, 409, "GIT_DIRTY_WORKTREE"},
	{[]string{"CONFLICT (", "Automatic merge failed", "unmerged files", "need to resolve your current index"}, 409, "GIT_MERGE_CONFLICT"},
	{[]string{"a branch named"}, 409, "GIT_BRANCH_EXISTS"},
	{[]string{"Remote branch", "not found in upstream", "pathspec", "invalid reference", "couldn't find remote ref", "error: branch '", "not a valid object name", "not a valid branch", "not found."}, 404, "GIT_BRANCH_NOT_FOUND"},
	{[]string{"already exists"}, 409, "CONFLICT"},
	{[]string{"Could not resolve host", "unable to access", "Could not read from remote", "Connection refused", "Connection timed out", "unable to connect", "early EOF"}, 502, "GIT_TRANSPORT_FAILED"},
}

func gitFault(stderr, stdout string) error {
	said := strings.TrimSpace(stderr)
	if said == "" {
		said = strings.TrimSpace(stdout)
	}
	said = said[:min(len(said), 4096)]
	all := stderr + stdout
	for _, one := range gitFaults {
		for _, word := range one.words {
			if strings.Contains(all, word) {
				return &fault{one.status, one.code, said}
			}
		}
	}
	return &fault{http.StatusBadRequest, "BAD_REQUEST", said}
}

// goodName says what is wrong with a name that becomes an argument: it must not be taken for an option.
func goodName(field, name string) error {
	if name == "" || strings.HasPrefix(name, "-") || len(name) > longestGitText || strings.ContainsAny(name, "\x00\n") {
		return invalid(fmt.Sprintf("%s: %.100q is not a name that git takes", field, name))
	}
	return nil
}

// repository returns the folder of a repository that a request names.
func (c *call) repository(p string) (string, error) {
	if p == "" {
		return "", invalid("path: the path of the repository is missing")
	}
	return c.s.absolute(p), nil
}

func done(c *call) error {
	c.w.WriteHeader(http.StatusOK)
	return nil
}

type cloneRequest struct {
	URL      string `json:"url"`
	Path     string `json:"path"`
	Branch   string `json:"branch"`
	Commit   string `json:"commit_id"`
	Username string `json:"username"`
	Password string `json:"password"`
	Depth    int    `json:"depth"`
	Insecure bool   `json:"insecure_skip_tls"`
}

func (t *Toolbox) gitClone(c *call) error {
	var in cloneRequest
	if err := c.read(&in); err != nil {
		return err
	}
	dir, err := c.repository(in.Path)
	if err == nil {
		err = goodName("url", in.URL)
	}
	if err != nil {
		return err
	}
	if u, err := url.Parse(in.URL); err == nil && u.User != nil { // it would stay in the repository's configuration
		if in.Username == "" && in.Password == "" {
			in.Username = u.User.Username()
			in.Password, _ = u.User.Password()
		}
		u.User = nil
		in.URL = u.String()
	}
	args := []string{"clone"}
	if in.Insecure {
		args = append([]string{"-c", "http.sslVerify=false"}, args...)
	}
	if in.Branch != "" {
		if err := goodName("branch", in.Branch); err != nil {
			return err
		}
		args = append(args, "--branch", in.Branch)
	}
	if in.Depth > 0 && in.Commit == "" {
		args = append(args, "--depth", fmt.Sprint(in.Depth))
	}
	if in.Commit != "" {
		if err := goodName("commit_id", in.Commit); err != nil {
			return err
		}
	}
	if _, err := t.git(c, gitCall{args: append(args, "--", in.URL, dir), username: in.Username, password: in.Password}); err != nil {
		return err
	}
	if in.Commit != "" {
		if _, err := t.git(c, gitCall{dir: dir, args: []string{"checkout", "--detach", in.Commit, "--"}}); err != nil {
			return err
		}
	}
	return done(c)
}

func (t *Toolbox) gitAdd(c *call) error {
	var in struct {
		Path  string   `json:"path"`
		Files []string `json:"files"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	dir, err := c.repository(in.Path)
	if err != nil {
		return err
	}
	if len(in.Files) == 0 {
		return invalid("files: there are none")
	}
	return t.gitDone(c, gitCall{dir: dir, args: append([]string{"add", "--"}, in.Files...)})
}

func (t *Toolbox) gitCommit(c *call) error {
	var in struct {
		Path    string `json:"path"`
		Message string `json:"message"`
		Author  string `json:"author"`
		Email   string `json:"email"`
		Empty   bool   `json:"allow_empty"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	dir, err := c.repository(in.Path)
	if err != nil {
		return err
	}
	if in.Message == "" || in.Author == "" || in.Email == "" {
		return invalid("message, author, email: a commit has all of them")
	}
	args := []string{"-c", "user.name=" + in.Author, "-c", "user.email=" + in.Email, "commit", "--quiet", "--file=-", "--cleanup=whitespace"}
	if in.Empty {
		args = append(args, "--allow-empty")
	}
	if _, err := t.git(c, gitCall{dir: dir, args: args, input: []byte(in.Message)}); err != nil {
		return err
	}
	hash, err := t.git(c, gitCall{dir: dir, args: []string{"rev-parse", "--verify", "HEAD"}})
	if err != nil {
		return err
	}
	reply(c.w, http.StatusOK, map[string]string{"hash": strings.TrimSpace(hash)})
	return nil
}

type remoteRequest struct {
	Path     string `json:"path"`
	Remote   string `json:"remote"`
	Branch   string `json:"branch"`
	Username string `json:"username"`
	Password string `json:"password"`
	Upstream *bool  `json:"set_upstream"`
}

// remote reads a request to push or to pull. args are those after the options.
func (c *call) remote() (in remoteRequest, dir string, args []string, err error) {
	if err = c.read(&in); err != nil {
		return in, "", nil, err
	}
	if dir, err = c.repository(in.Path); err != nil {
		return in, "", nil, err
	}
	if in.Remote == "" && in.Branch != "" {
		in.Remote = "origin"
	}
	for field, name := range map[string]string{"remote": in.Remote, "branch": in.Branch} {
		if name == "" {
			continue
		}
		if err = goodName(field, name); err != nil {
			return in, "", nil, err
		}
	}
	for _, name := range []string{in.Remote, in.Branch} {
		if name != "" {
			args = append(args, name)
		}
	}
	return in, dir, args, nil
}

func (t *Toolbox) gitPush(c *call) error {
	in, dir, args, err := c.remote()
	if err != nil {
		return err
	}
	push := []string{"-c", "push.autoSetupRemote=true", "push"}
	if in.Upstream != nil && *in.Upstream {
		push = append(push, "--set-upstream")
		if len(args) == 0 {
			args = []string{"origin", "HEAD"}
		}
	}
	return t.gitDone(c, gitCall{dir: dir, args: append(push, args...), username: in.Username, password: in.Password})
}

func (t *Toolbox) gitPull(c *call) error {
	in, dir, args, err := c.remote()
	if err != nil {
		return err
	}
	return t.gitDone(c, gitCall{dir: dir, args: append([]string{"pull", "--no-rebase"}, args...), username: in.Username, password: in.Password})
}

func (t *Toolbox) gitInit(c *call) error {
	var in struct {
		Path   string `json:"path"`
		Bare   bool   `json:"bare"`
		Branch string `json:"initial_branch"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	dir, err := c.repository(in.Path)
	if err != nil {
		return err
	}
	args := []string{"init", "--quiet"}
	if in.Bare {
		args = append(args, "--bare")
	}
	if in.Branch != "" {
		if err := goodName("initial_branch", in.Branch); err != nil {
			return err
		}
		args = append(args, "--initial-branch="+in.Branch)
	}
	return t.gitDone(c, gitCall{args: append(args, "--", dir)})
}

func (t *Toolbox) gitReset(c *call) error {
	var in struct {
		Path   string   `json:"path"`
		Mode   string   `json:"mode"`
		Target string   `json:"target"`
		Files  []string `json:"files"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	dir, err := c.repository(in.Path)
	if err != nil {
		return err
	}
	args := []string{"reset", "--quiet"}
	switch in.Mode {
	case "":
	case "soft", "mixed", "hard", "merge", "keep":
		if len(in.Files) > 0 && in.Mode != "mixed" {
			return invalid("mode: files are reset in the index alone, which is the mode mixed")
		}
		if len(in.Files) == 0 {
			args = append(args, "--"+in.Mode)
		}
	default:
		return invalid(fmt.Sprintf("mode: %.40q is none of soft, mixed, hard, merge, keep", in.Mode))
	}
	if in.Target != "" {
		if err := goodName("target", in.Target); err != nil {
			return err
		}
		args = append(args, in.Target)
	}
	if len(in.Files) > 0 {
		args = append(append(args, "--"), in.Files...)
	}
	return t.gitDone(c, gitCall{dir: dir, args: args})
}

func (t *Toolbox) gitRestore(c *call) error {
	var in struct {
		Path     string   `json:"path"`
		Files    []string `json:"files"`
		Source   string   `json:"source"`
		Staged   bool     `json:"staged"`
		Worktree *bool    `json:"worktree"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	dir, err := c.repository(in.Path)
	if err != nil {
		return err
	}
	if len(in.Files) == 0 {
		return invalid("files: there are none")
	}
	args := []string{"restore"}
	if in.Staged {
		args = append(args, "--staged")
	}
	if in.Worktree != nil && *in.Worktree || !in.Staged {
		args = append(args, "--worktree")
	}
	if in.Source != "" {
		if err := goodName("source", in.Source); err != nil {
			return err
		}
		args = append(args, "--source="+in.Source)
	}
	return t.gitDone(c, gitCall{dir: dir, args: append(append(args, "--"), in.Files...)})
}

var errPorcelain = errors.New("git does not answer in the form that was asked for")
