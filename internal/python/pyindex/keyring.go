package pyindex

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// keyring knows the names of indexes and what the user has set to log in to them.
type keyring struct {
	names map[string]string // URL without credentials to name
	env   map[string]string
	netrc map[string]login // by host name
}

type login struct{ user, password string }

var named = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]*)=(.+)$`) })

func newKeyring(env map[string]string, conf config) keyring {
	k := keyring{names: map[string]string{}, env: env}
	for _, variable := range []string{"UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL"} {
		for _, word := range words(env[variable]) {
			if m := named().FindStringSubmatch(word); m != nil {
				k.name(m[2], m[1])
			}
		}
	}
	for _, index := range conf.Index {
		k.name(index.URL, index.Name)
	}
	path := firstOf(env["NETRC"], filepath.Join(env["HOME"], ".netrc"))
	if text, err := os.ReadFile(path); err == nil {
		k.netrc = readNetrc(string(text))
	}
	return k
}

func (k keyring) name(place, name string) {
	if u, err := url.Parse(place); err == nil && name != "" && k.names[bare(u)] == "" {
		k.names[bare(u)] = name
	}
}

// bare is the spelling of an index's URL that tells it from others.
func bare(u *url.URL) string {
	return strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
}

// unlock adds credentials to a URL that has none, as uv finds them: UV_INDEX_<NAME>_USERNAME and _PASSWORD, then netrc, whose "default" entry is
// left alone. It returns the name of the index for messages. A path may hold a token, so that a host is all that is shown of a URL.
func (k keyring) unlock(u *url.URL) (name string) {
	name = k.names[bare(u)]
	if _, ok := u.User.Password(); ok {
		return firstOf(name, u.Host)
	}
	user := u.User.Username()
	if name != "" {
		prefix := "UV_INDEX_" + variable(name)
		given, password := k.env[prefix+"_USERNAME"], k.env[prefix+"_PASSWORD"]
		if given != "" || password != "" {
			u.User = url.UserPassword(firstOf(user, given), password)
			return name
		}
	}
	if l, ok := k.netrc[strings.ToLower(u.Hostname())]; ok && (user == "" || user == l.user) {
		u.User = url.UserPassword(l.user, l.password)
	}
	return firstOf(name, u.Host)
}

// variable spells an index's name as uv's variables do.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// readNetrc reads the logins of a netrc file, the first of each machine. Macros are passed over: they reach to the next blank line.
func readNetrc(text string) map[string]login {
	logins := map[string]login{}
	var machine string
	var current login
	keep := func() {
		if _, known := logins[machine]; machine != "" && !known {
			logins[machine] = current
		}
		machine, current = "", login{}
	}
	macro := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			macro = macro && len(fields) > 0
			continue
		}
		for i := 0; i < len(fields) && !macro; i++ {
			value := ""
			if i+1 < len(fields) {
				value = fields[i+1]
			}
			switch fields[i] {
			case "machine":
				keep()
				machine = strings.ToLower(value)
			case "default":
				keep()
				continue
			case "login":
				current.user = value
			case "password":
				current.password = value
			case "macdef":
				macro = true
			}
			i++
		}
	}
	keep()
	return logins
}
