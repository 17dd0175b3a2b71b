package toolbox

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

var gitKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9-]+(\.[^\x00\n]+)?\.[A-Za-z][A-Za-z0-9-]*$`)
})

// scope returns the option for a scope of configuration, and the repository where it needs one.
func (c *call) scope(scope, p string) (option, dir string, err error) {
	switch scope {
	case "global", "":
		if scope == "" && p != "" {
			return "--local", c.s.absolute(p), nil
		}
		return "--global", "", nil
	case "local":
		dir, err = c.repository(p)
		return "--local", dir, err
	case "system":
		return "--system", "", nil
	}
	return "", "", invalid(fmt.Sprintf("scope: %.40q is none of global, local, system", scope))
}

func (t *Toolbox) gitConfig(c *call) error {
	q := c.URL.Query()
	option, dir, err := c.scope(q.Get("scope"), q.Get("path"))
	if err != nil {
		return err
	}
	if !gitKey().MatchString(q.Get("key")) {
		return invalid("key: a key has a section and a name, as user.name")
	}
	text, exit, stderr, err := t.gitStatus(c, gitCall{dir: dir, args: []string{"config", option, "--null", "--get", q.Get("key")}})
	switch {
	case err != nil:
		return err
	case exit == 1:
		reply(c.w, http.StatusOK, map[string]any{})
	case exit != 0:
		return gitFault(stderr, text)
	default:
		reply(c.w, http.StatusOK, map[string]string{"value": strings.TrimSuffix(text, "\x00")})
	}
	return nil
}

func (t *Toolbox) setGitConfig(c *call) error {
	var in struct{ Key, Value, Path, Scope string }
	if err := c.read(&in); err != nil {
		return err
	}
	option, dir, err := c.scope(in.Scope, in.Path)
	if err == nil && !gitKey().MatchString(in.Key) {
		err = invalid("key: a key has a section and a name, as user.name")
	}
	if err == nil {
		_, err = t.git(c, gitCall{dir: dir, args: []string{"config", option, "--replace-all", "--", in.Key, in.Value}})
	}
	if err != nil {
		return err
	}
	return done(c)
}

func (t *Toolbox) gitUser(c *call) error {
	var in struct{ Name, Email, Path, Scope string }
	if err := c.read(&in); err != nil {
		return err
	}
	option, dir, err := c.scope(in.Scope, in.Path)
	if err == nil && (in.Name == "" || in.Email == "") {
		err = invalid("name, email: a user has both")
	}
	for key, value := range map[string]string{"user.name": in.Name, "user.email": in.Email} {
		if err == nil {
			_, err = t.git(c, gitCall{dir: dir, args: []string{"config", option, "--replace-all", "--", key, value}})
		}
	}
	if err != nil {
		return err
	}
	return done(c)
}

// gitCredentials keeps credentials in the sandbox, which is what this call is for: in ~/.git-credentials, where its code can read them.
func (t *Toolbox) gitCredentials(c *call) error {
	var in struct{ Username, Password, Host, Protocol string }
	if err := c.read(&in); err != nil {
		return err
	}
	if in.Host == "" {
		in.Host = "github.com"
	}
	if in.Protocol == "" {
		in.Protocol = "https"
	}
	text := ""
	for _, pair := range [][2]string{{"protocol", in.Protocol}, {"host", in.Host}, {"username", in.Username}, {"password", in.Password}} {
		if pair[1] == "" || strings.ContainsAny(pair[1], "\x00\n\r") {
			return invalid(pair[0] + ": it is missing, or has a line end")
		}
		text += pair[0] + "=" + pair[1] + "\n"
	}
	_, first := t.git(c, gitCall{args: []string{"config", "--global", "--replace-all", "credential.helper", "store"}})
	if first != nil {
		return first
	}
	_, err := t.git(c, gitCall{args: []string{"credential", "approve"}, input: []byte(text + "\n")})
	if err != nil {
		return err
	}
	return done(c)
}
