package e2e_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/llm/model/modeltest"
	"cove/internal/server/auth"
	"cove/internal/server/store/pgtest"
	"cove/internal/testkit/testneeds"
)

// canaries are secrets that a server is given, and which must stay where they are.
type canaries struct {
	*server
	t       *testing.T
	secrets map[string]string // by what they are
	said    []utterance       // by the server
}

type utterance struct{ where, text string }

// hunt is code that looks for texts, which it gets in disguise, wherever code can look. It says how much it looked at.
const hunt = `
import os, sys
wanted = [bytes.fromhex(x)[::-1] for x in %s]
found, files, size, me = [], 0, 0, str(os.getpid())
room = bytearray(1 << 20)  # one for all files: there are tens of thousands
def look(path, limit):
    global files, size
    try: f = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError: return
    try:
        kept, left = 0, limit
        while left > 0:
            part = os.readv(f, [memoryview(room)[kept:kept + left]])
            if not part: break
            left -= part; size += part; end = kept + part
            for n, w in enumerate(wanted):
                if room.find(w, 0, end) >= 0: found.append((path, n))
            kept = min(end, 200)
            room[:kept] = room[end - kept:end]
        files += 1
    except OSError: pass
    finally: os.close(f)
for n, w in enumerate(wanted):
    for k, v in os.environb.items():
        if w in k + b'=' + v: found.append(('environ', n))
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline', 'maps', 'mountinfo', 'auxv'):
        look('/proc/%%s/%%s' %% (pid, name), 1 << 20)
    if pid != me:
        try:
            for line in open('/proc/%%s/maps' %% pid):
                low, high = (int(x, 16) for x in line.split()[0].split('-'))
                with open('/proc/%%s/mem' %% pid, 'rb', buffering=0) as f:
                    f.seek(low); part = f.read(min(high - low, 1 << 24))
                    for n, w in enumerate(wanted):
                        if w in part: found.append(('memory of ' + pid, n))
        except OSError: pass
def walk(top):
    try: entries = list(os.scandir(top))
    except OSError: return
    dirs = [e.path for e in entries if e.is_dir(follow_symlinks=False)]
    if top == '/': dirs.sort(key=lambda d: d not in ('/home', '/tmp', '/etc', '/run', '/var', '/mnt'))  # the rest is large and the host's
    for e in entries:
        if size < 300 << 20 and e.is_file(follow_symlinks=False): look(e.path, 4 << 20)
    for d in dirs:
        if d not in ('/proc', '/sys', '/dev'): walk(d)
walk('/')
planted = len(wanted) - 1
print('found', [f for f in found if f[1] != planted], 'and what was planted' * any(f[1] == planted for f in found), 'in', files, 'files')
`

// ask makes a request, also one that fails, and keeps everything that comes back.
func (c *canaries) ask(method, path string, body any, header ...string) reply {
	c.t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			c.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, content)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var head bytes.Buffer
	_ = response.Header.Write(&head)
	c.said = append(c.said, utterance{method + " " + strings.SplitN(path, "?", 2)[0], head.String() + string(text)})
	return reply{response.StatusCode, response.Header, text}
}

// silent checks that a text has none of the secrets, but for those named.
func (c *canaries) silent(where, text string, but ...string) {
	c.t.Helper()
	for name, secret := range c.secrets {
		if at := strings.Index(text, secret); at >= 0 && !slices.Contains(but, name) {
			c.t.Errorf("%s has the %s: %q", where, name, text[max(0, at-100):at])
		}
	}
}

// use does with the server what users do, and what goes wrong for them.
func (c *canaries) use() {
	c.t.Helper()
	spoken := c.secrets["key that is in words"]
	made := c.ask("POST", "/api/v1/keys", map[string]any{"name": "second"})
	var second struct {
		Text string
		Key  struct{ ID string }
	}
	made.into(c.t, &second)
	c.said = c.said[:len(c.said)-1] // it shows the key, once
	c.secrets["second key"] = second.Text
	session := c.session()
	at := "/api/v1/sessions/" + session
	for _, r := range []reply{
		c.ask("POST", at+"/executions?wait=true", map[string]any{"code": "1/0"}, "Authorization", "Bearer "+second.Text),
		c.ask("PUT", at+"/files/a.csv", "a,b", "X-Api-Key", c.key, "Cookie", "key="+c.key, "User-Agent", "agent "+c.key, "X-Request-Id", c.key),
		c.ask("POST", "/api/v1/turns?wait=true", map[string]any{"prompt": "compute"}),
		c.ask("POST", "/v1/responses", map[string]any{"model": "scripted", "input": "compute", "tools": []any{map[string]any{"type": "code_interpreter", "container": map[string]any{"type": "auto"}}}}),
	} {
		if r.status/100 != 2 {
			c.t.Fatalf("%d %s", r.status, r.body)
		}
	}
	for _, prompt := range []string{"refuse", "reject", "break"} {
		c.ask("POST", "/api/v1/turns", map[string]any{"prompt": prompt})
		c.ask("POST", "/v1/responses", map[string]any{"model": "scripted", "input": prompt})
		c.ask("POST", "/v1/chat/completions", map[string]any{"model": "scripted", "messages": []any{map[string]any{"role": "user", "content": prompt}}})
	}
	for _, header := range [][]string{
		{"Authorization", "Bearer " + spoken}, {"Authorization", "Basic " + spoken}, {"Authorization", c.key}, {"X-Api-Key", spoken},
		{"Authorization", "Bearer " + c.key + "x"}, {"Last-Event-ID", c.key}, {"Idempotency-Key", c.key},
	} {
		c.ask("GET", "/api/v1/me", nil, header...)
		c.ask("GET", "/v1/models", nil, header...)
	}
	for _, path := range []string{"/api/v1/me?key=", "/api/v1/sessions/", "/api/v1/nothing/", "/v1/files/", "/v1/models/", "/nothing/", "/api/v1/sessions?after=", at + "/stat?path="} {
		r := c.ask("GET", path+url.QueryEscape(c.key), nil)
		// What a client writes into an address may be said back to it, for it has the key; to others and to the log it may not.
		c.said = c.said[:len(c.said)-1]
		c.silent("an answer to "+path, string(r.body), "first key")
	}
	c.speak(session, spoken)
	for _, path := range []string{"/metrics", "/api/v1/openapi.json", "/api/v1/docs", "/api/v1/audit?limit=1000", "/api/v1/keys", "/api/v1/users", "/api/v1/usage",
		"/api/v1/models", "/v1/models", at, at + "/packages", "/api/v1/health/ready", "/"} {
		c.ask("GET", path, nil)
	}
}

// speak has a user write a key where none belongs: he and his project see it again, nobody else does.
func (c *canaries) speak(session, spoken string) {
	c.t.Helper()
	before := len(c.said)
	at := "/api/v1/sessions/" + session
	c.ask("POST", at+"/executions?wait=true", map[string]any{"code": "raise ValueError('" + spoken + "')"})
	c.ask("PUT", at+"/files/"+spoken+".csv", "a,b")
	c.ask("GET", at+"/files/no/"+spoken, nil)
	c.ask("POST", at+"/packages?wait=true", map[string]any{"requirements": []string{"x @ https://user:" + spoken + "@127.0.0.1:1/x-1-py3-none-any.whl"}})
	c.ask("POST", at+"/kernels", map[string]any{"name": spoken + "!"})
	c.ask("POST", "/api/v1/turns", map[string]any{"prompt": "say " + spoken, "model": spoken})
	c.ask("DELETE", at, nil)
	c.said = c.said[:before]
}

// hunted has code look for the secrets from the inside.
func (c *canaries) hunted() {
	c.t.Helper()
	var hidden, names []string
	hide := func(secret string) {
		backward := []byte(secret)
		slices.Reverse(backward)
		hidden = append(hidden, strconv.Quote(hex.EncodeToString(backward)))
	}
	for name, secret := range c.secrets {
		names = append(names, name)
		hide(secret)
	}
	session, planted := c.session(), auth.NewText()
	c.must("PUT", "/api/v1/sessions/"+session+"/files/planted.txt", []byte(planted), nil)
	hide(planted) // it must be found, or nothing was looked at
	var done struct {
		State  string
		Events []struct{ Type, Text string }
	}
	c.ask("POST", "/api/v1/sessions/"+session+"/executions?wait=true", map[string]any{"code": fmt.Sprintf(hunt, "["+strings.Join(hidden, ",")+"]")}).into(c.t, &done)
	text := ""
	for _, e := range done.Events {
		text += e.Text
	}
	var files int
	_, counted, _ := strings.Cut(text, " in ")
	if _, err := fmt.Sscan(counted, &files); err != nil || done.State != "ok" || files < 100 || !strings.HasPrefix(text, "found [] and what was planted in ") {
		c.t.Errorf("%s: %s (of %q)", done.State, text, names)
	}
	c.outside()
	c.must("DELETE", "/api/v1/sessions/"+session, nil, nil)
}

// outside looks at the processes that the server has started: none of them is given a secret.
func (c *canaries) outside() {
	c.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		c.t.Fatal(err)
	}
	own := strconv.Itoa(c.cmd.Process.Pid)
	seen := 0
	for _, p := range all {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		c.silent("the command line of "+string(line), string(line))
		env, err := os.ReadFile(filepath.Join(p, "environ"))
		if err != nil || filepath.Base(p) == own {
			continue
		}
		if strings.Contains(string(line), c.runtime) {
			seen++
		}
		c.silent("the environment of "+strings.ReplaceAll(string(line), "\x00", " "), string(env))
	}
	if seen == 0 {
		c.t.Error("no process of a sandbox was looked at")
	}
}

// kept looks through what the server leaves on disk. Of keys there is the hash.
func (c *canaries) kept(dir string) {
	c.t.Helper()
	whole := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		whole[filepath.Base(path)] = string(text)
		// What users say in code and names is kept, because it is theirs.
		c.silent(path, string(text), "key that is in words")
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if database := whole["cove.db"]; database != "" {
		_, hash, err := auth.ParseText(c.key)
		if err != nil || !strings.Contains(database, string(hash[:])) {
			c.t.Error("the database does not even have the hash of the key: the search finds nothing")
		}
	}
}

// TestSecretsStay gives a server secrets, uses it in every way, and looks for them wherever they do not belong.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secrets := map[string]string{
				"first key": testKey(t), "key of the model": "sk-" + ident.Body(ident.New("x")), "password of the database": ident.Body(ident.New("x")),
				"key that is in words": auth.NewText(),
			}
			upstream := modeltest.NewServer()
			t.Cleanup(upstream.Close)
			upstream.Decide(func(_ int, r modeltest.Request) modeltest.Turn { return leaking(r, secrets["key of the model"]) })
			env := []string{"OPENAI_BASE_URL=" + upstream.OpenAIURL(), "OPENAI_API_KEY=" + secrets["key of the model"], "COVE_MODEL=openai/scripted",
				"COVE_LOG_LEVEL=debug", "COVE_POOL=1", "COVE_KEY=" + secrets["first key"]}
			if name == "postgres" {
				database, err := url.Parse(pgtest.Database(t))
				if err != nil {
					t.Fatal(err)
				}
				database.User = url.UserPassword(database.User.Username(), secrets["password of the database"])
				env = append(env, "COVE_DATABASE="+database.String())
			}
			dir := t.TempDir()
			c := &canaries{server: startServer(t, dir, secrets["first key"], env...), t: t, secrets: secrets}
			c.use()
			c.hunted()
			c.stop().ended(t, 0)
			for _, u := range c.said {
				c.silent("the answer to "+u.where, u.text)
			}
			c.silent("the log", c.log.String())
			c.silent("standard output", c.stdout.String(), "first key") // which an operator asked for
			if !strings.Contains(c.log.String(), "level=INFO msg=request") {
				t.Errorf("the log has no requests: %s", c.log)
			}
			c.kept(dir)
		})
	}
}

// leaking is a model that says in its errors what key it was asked with.
func leaking(r modeltest.Request, key string) modeltest.Turn {
	text := r.Text()
	switch {
	case strings.Contains(text, "refuse"):
		return modeltest.Error(401, "authentication_error", "Incorrect API key provided: "+key)
	case strings.Contains(text, "reject"):
		return modeltest.Error(400, "invalid_request_error", "the key "+key+" may not do that")
	case strings.Contains(text, "break"):
		return modeltest.Error(500, "server_error", "failed for "+key, "Retry-After", "0")
	}
	for _, m := range r.Messages() {
		if m["role"] == "tool" {
			return modeltest.Say("It is done.")
		}
	}
	return modeltest.Run("import os\nprint(dict(os.environ))\nopen('out.txt', 'w').write(str(dict(os.environ)))")
}
