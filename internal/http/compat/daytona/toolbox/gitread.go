package toolbox

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// gitState is the state of a repository as clients see it.
type gitState struct {
	Branch    string    `json:"currentBranch"`
	Files     []gitFile `json:"fileStatus"`
	Ahead     int       `json:"ahead"`
	Behind    int       `json:"behind"`
	Published bool      `json:"branchPublished"`
	Detached  bool      `json:"detached"`
	Upstream  string    `json:"upstream,omitempty"`
}

type gitFile struct {
	Name     string `json:"name"`
	Staging  string `json:"staging"`
	Worktree string `json:"worktree"`
	Extra    string `json:"extra"` // what a file was called before
}

var gitWords = map[byte]string{
	'.': "Unmodified", 'M': "Modified", 'T': "Modified", 'A': "Added", 'D': "Deleted", 'R': "Renamed", 'C': "Copied", 'U': "Updated but unmerged", '?': "Untracked",
}

// parseStatus reads what git status --porcelain=v2 --branch -z writes.
func parseStatus(text string) (gitState, error) {
	out := gitState{Files: []gitFile{}}
	entries := strings.Split(text, "\x00")
	for i := 0; i < len(entries); i++ {
		entry := entries[i]
		if entry == "" {
			continue
		}
		kind, rest, _ := strings.Cut(entry, " ")
		fields := map[string]int{"1": 8, "2": 9, "u": 10}[kind] // how many there are, the name the last
		switch {
		case kind == "#":
			if err := out.header(rest); err != nil {
				return out, err
			}
		case kind == "?":
			out.Files = append(out.Files, gitFile{Name: rest, Staging: gitWords['?'], Worktree: gitWords['?']})
		case kind == "!":
		case fields > 0:
			parts := strings.SplitN(rest, " ", fields)
			if len(parts) != fields || len(parts[0]) != 2 || gitWords[parts[0][0]] == "" || gitWords[parts[0][1]] == "" {
				return out, fmt.Errorf("%w: %.100q", errPorcelain, entry)
			}
			f := gitFile{Name: parts[fields-1], Staging: gitWords[parts[0][0]], Worktree: gitWords[parts[0][1]]}
			if kind == "2" {
				i++
				if i == len(entries) {
					return out, fmt.Errorf("%w: %.100q", errPorcelain, entry)
				}
				f.Extra = entries[i]
			}
			out.Files = append(out.Files, f)
		default:
			return out, fmt.Errorf("%w: %.100q", errPorcelain, entry)
		}
	}
	return out, nil
}

func (s *gitState) header(text string) error {
	name, value, _ := strings.Cut(text, " ")
	switch name {
	case "branch.head":
		s.Branch = value
		if value == "(detached)" {
			s.Branch, s.Detached = "HEAD", true
		}
	case "branch.upstream":
		s.Upstream, s.Published = value, true
	case "branch.ab":
		ahead, behind, _ := strings.Cut(value, " ")
		var errA, errB error
		s.Ahead, errA = strconv.Atoi(strings.TrimPrefix(ahead, "+"))
		s.Behind, errB = strconv.Atoi(strings.TrimPrefix(behind, "-"))
		if errA != nil || errB != nil {
			return fmt.Errorf("%w: %.100q", errPorcelain, text)
		}
	}
	return nil
}

func (t *Toolbox) gitState(c *call) error {
	dir, err := c.repository(c.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	text, err := t.git(c, gitCall{dir: dir, args: []string{"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"}})
	if err != nil {
		return err
	}
	out, err := parseStatus(text)
	if err == nil {
		reply(c.w, http.StatusOK, out)
	}
	return err
}

func (t *Toolbox) gitBranches(c *call) error {
	dir, err := c.repository(c.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	text, err := t.git(c, gitCall{dir: dir, args: []string{"for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"}})
	if err != nil {
		return err
	}
	current, err := t.git(c, gitCall{dir: dir, args: []string{"branch", "--show-current"}})
	if err != nil {
		return err
	}
	out := map[string]any{"branches": append([]string{}, strings.Fields(text)...)}
	if current = strings.TrimSpace(current); current != "" {
		out["current"] = current
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

type branchRequest struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Branch string `json:"branch"`
}

// branch reads a request about a branch.
func (c *call) branch() (dir, name string, err error) {
	var in branchRequest
	if err = c.read(&in); err != nil {
		return "", "", err
	}
	if dir, err = c.repository(in.Path); err != nil {
		return "", "", err
	}
	if name = in.Name; name == "" {
		name = in.Branch
	}
	return dir, name, goodName("branch", name)
}

func (t *Toolbox) makeBranch(c *call) error {
	dir, name, err := c.branch()
	if err == nil {
		_, err = t.git(c, gitCall{dir: dir, args: []string{"branch", "--", name}})
	}
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

func (t *Toolbox) deleteBranch(c *call) error {
	dir, name, err := c.branch()
	if err == nil {
		_, err = t.git(c, gitCall{dir: dir, args: []string{"branch", "-D", "--", name}})
	}
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (t *Toolbox) gitCheckout(c *call) error {
	dir, name, err := c.branch()
	if err == nil {
		_, err = t.git(c, gitCall{dir: dir, args: []string{"checkout", "--quiet", name, "--"}})
	}
	if err != nil {
		return err
	}
	return done(c)
}

// gitLog is a commit as clients see it.
type gitLog struct {
	Hash      string `json:"hash"`
	Author    string `json:"author"`
	Email     string `json:"email"`
	Message   string `json:"message"`
	Timestamp string `json:"timestamp"`
}

// logFormat has a commit's fields after each other, with zeros between them and after the last.
const logFormat = "--format=tformat:%H%x00%an%x00%ae%x00%aI%x00%B%x00"

// parseLog reads what git log writes by logFormat with -z, which puts a zero after each commit.
func parseLog(text string) ([]gitLog, error) {
	out := []gitLog{}
	fields := strings.Split(text, "\x00")
	const each = 6
	if len(fields)%each != 1 || fields[len(fields)-1] != "" {
		return out, fmt.Errorf("%w: %d fields of a log", errPorcelain, len(fields))
	}
	for ; len(fields) > each; fields = fields[each:] {
		out = append(out, gitLog{Hash: fields[0], Author: fields[1], Email: fields[2], Timestamp: fields[3], Message: fields[4]})
	}
	return out, nil
}

func (t *Toolbox) gitHistory(c *call) error {
	dir, err := c.repository(c.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	text, exit, stderr, err := t.gitStatus(c, gitCall{dir: dir, args: []string{"log", "-z", "--max-count=" + strconv.Itoa(mostHistory), logFormat}})
	switch {
	case err != nil:
		return err
	case exit != 0 && strings.Contains(stderr, "does not have any commits"):
		text = ""
	case exit != 0:
		return gitFault(stderr, text)
	}
	out, err := parseLog(text)
	if err == nil {
		reply(c.w, http.StatusOK, out)
	}
	return err
}

type gitRemote struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (t *Toolbox) gitRemotes(c *call) error {
	dir, err := c.repository(c.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	text, exit, stderr, err := t.gitStatus(c, gitCall{dir: dir, args: []string{"config", "--null", "--get-regexp", `^remote\..*\.url$`}})
	if err != nil {
		return err
	}
	if exit > 1 {
		return gitFault(stderr, text)
	}
	if exit == 1 { // there are none, or there is no repository
		if _, err := t.git(c, gitCall{dir: dir, args: []string{"rev-parse", "--git-dir"}}); err != nil {
			return err
		}
	}
	out := []gitRemote{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".url")
		if ok && name != key {
			out = append(out, gitRemote{name, value})
		}
	}
	reply(c.w, http.StatusOK, map[string]any{"remotes": out})
	return nil
}

func (t *Toolbox) addRemote(c *call) error {
	var in struct {
		Path      string `json:"path"`
		Name      string `json:"name"`
		URL       string `json:"url"`
		Fetch     bool   `json:"fetch"`
		Overwrite bool   `json:"overwrite"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	dir, err := c.repository(in.Path)
	for field, name := range map[string]string{"name": in.Name, "url": in.URL} {
		if err == nil {
			err = goodName(field, name)
		}
	}
	if err != nil {
		return err
	}
	_, err = t.git(c, gitCall{dir: dir, args: []string{"remote", "add", "--", in.Name, in.URL}})
	if code, word, _ := faultOf(err); in.Overwrite && code == http.StatusConflict && word == "CONFLICT" {
		_, err = t.git(c, gitCall{dir: dir, args: []string{"remote", "set-url", "--", in.Name, in.URL}})
	}
	if err == nil && in.Fetch {
		_, err = t.git(c, gitCall{dir: dir, args: []string{"fetch", "--", in.Name}})
	}
	if err != nil {
		return err
	}
	return done(c)
}

func faultOf(err error) (code int, word, message string) {
	if err == nil {
		return 0, "", ""
	}
	return said(err)
}
