package e2e_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/server/store/pgtest"
	"cove/internal/testkit/testneeds"
)

// kept is a server whose data is searched.
type kept struct {
	*server
	t        *testing.T
	dir, key string
	env      []string
	canary   string
	session  string
	file     string
}

// keptServer starts a server whose model runs the code that it is asked to run, in folders of its own.
func keptServer(t *testing.T, database string, keys string) *kept {
	t.Helper()
	service := modeltest.NewServer()
	t.Cleanup(service.Close)
	service.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		messages := r.Messages()
		last := messages[len(messages)-1]
		if last["role"] == "tool" {
			return modeltest.Say("It is there.")
		}
		_, code, _ := strings.Cut(modeltest.Asked(modeltest.Request{Body: map[string]any{"messages": []any{last}}}.Text()), "run: ")
		return modeltest.Run(code)
	})
	k := &kept{t: t, dir: t.TempDir(), key: testKey(t), canary: "canary" + strings.ToLower(randomText())}
	k.env = append([]string{
		"COVE_MODEL=openai/gpt-4o", "OPENAI_BASE_URL=" + service.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_POOL=1", "COVE_SESSIONS=" + filepath.Join(k.dir, "sessions"),
	}, crowd...)
	if database != "" {
		k.env = append(k.env, "COVE_DATABASE="+database)
	}
	if keys != "" {
		k.env = append(k.env, "COVE_ENCRYPTION_KEY_FILE="+keys)
	}
	k.server = startServer(t, k.dir, k.key, k.env...)
	return k
}

// tool runs a program that has to succeed.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func randomText() string {
	const letters = "bcdfghjklmnpqrstvwxz"
	out := make([]byte, 16)
	for i := range out {
		out[i] = letters[rand.IntN(len(letters))]
	}
	return string(out)
}

// use writes the canary wherever a user can.
func (k *kept) use() {
	k.t.Helper()
	var c struct{ ID, Session string }
	k.must("POST", "/api/v1/conversations", map[string]any{"title": k.canary}, &c)
	var turn struct{ State, Session string }
	code := "x = '" + k.canary + "' * 3; open('" + k.canary + ".txt', 'w').write(x); print(x)"
	k.must("POST", "/api/v1/conversations/"+c.ID+"/turns?wait=true", map[string]any{"prompt": "run: " + code}, &turn)
	if turn.State != "completed" {
		k.t.Fatalf("the turn is %+v", turn)
	}
	k.session = turn.Session
	var f struct{ ID string }
	k.raw("POST", "/api/v1/files?name="+k.canary+".csv", strings.Repeat(k.canary+"\n", 10_000)).into(k.t, &f)
	k.file = f.ID
	if k.file == "" {
		k.t.Fatal("no file was stored")
	}
	k.must("POST", "/api/v1/sessions/"+k.session+"/points", nil, nil)
	if got := k.says(k.session, "y = x.upper(); print(len(y))"); got == "" {
		k.t.Error("the session says nothing")
	}
	var fork struct{ ID string }
	k.must("POST", "/api/v1/sessions/"+k.session+"/fork", map[string]any{}, &fork)
	k.must("POST", "/api/v1/sessions/"+fork.ID+"/pause", nil, nil)
	k.must("POST", "/api/v1/sessions/"+k.session+"/pause", nil, nil)
}

// remembers wants all of it to be there still.
func (k *kept) remembers() {
	k.t.Helper()
	if got := k.says(k.session, "print(x == open('"+k.canary+".txt').read(), x[:6])"); got != "True canary\n" {
		k.t.Errorf("the session says %q", got)
	}
	if r := k.raw("GET", "/api/v1/files/"+k.file+"/content", ""); r.status != http.StatusOK || bytes.Count(r.body, []byte(k.canary)) != 10_000 {
		k.t.Errorf("the file is %d, %d bytes", r.status, len(r.body))
	}
	var found struct{ Items []json.RawMessage }
	k.must("GET", "/api/v1/search?q="+k.canary, nil, &found)
	if len(found.Items) == 0 {
		k.t.Error("nothing is found")
	}
	k.must("POST", "/api/v1/sessions/"+k.session+"/pause", nil, nil)
}

// holders are the files with the canary, as text or as Python keeps it, but for what is in memory alone.
func (k *kept) holders(folder string) (found []string) {
	k.t.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(k.canary)) || bytes.Contains(text, []byte(strings.ToUpper(k.canary))) || strings.Contains(path, k.canary) {
			found = append(found, strings.TrimPrefix(path, folder))
		}
		return err
	})
	if err != nil {
		k.t.Error(err)
	}
	return found
}

// journals has the server be killed after it took a file for a session, and wants the file in the session that goes on, and nowhere as it is.
func (k *kept) journals() {
	k.t.Helper()
	path := "/api/v1/sessions/" + k.session + "/files/late-" + k.canary
	if r := k.raw("PUT", path, k.canary+" came late"); r.status != http.StatusCreated {
		k.t.Fatalf("a file is answered with %d: %s", r.status, r.body)
	}
	if found := k.holders(k.dir); len(found) > 0 {
		k.t.Errorf("with a change that is not saved it is in %v", found)
	}
	k.kill()
	k.server = startServer(k.t, k.dir, k.key, k.env...)
	if r := k.raw("GET", path, ""); string(r.body) != k.canary+" came late" {
		k.t.Errorf("after a kill the file is %d, %.100q", r.status, r.body)
	}
}

// backedUp is a backup, and the same unpacked as far as archives go.
func (k *kept) backedUp() (path, dir string) {
	k.t.Helper()
	path = filepath.Join(k.t.TempDir(), "backup.tar.gz")
	k.cli(0, "backup", path)
	if r := k.cli(0, "backup", "verify", path); !strings.Contains(r.stdout, "can be restored") {
		k.t.Errorf("trying the backup says %q", r.stdout)
	}
	dir = k.t.TempDir()
	tool(k.t, "tar", "-xzf", path, "-C", dir)
	tool(k.t, "sh", "-c", "gzip -dc "+dir+"/database > "+dir+"/database.jsonl")
	return path, dir
}

// elsewhere restores a backup in other folders, without the key and with it, and wants the server there to have the file.
func (k *kept) elsewhere(path string) {
	k.t.Helper()
	there := *k
	there.dir = k.t.TempDir()
	there.env = append(append([]string{}, k.env...), "COVE_DATABASE="+filepath.Join(there.dir, "cove.db"), "COVE_SESSIONS="+filepath.Join(there.dir, "sessions"))
	keys := there.env
	there.env = append(append([]string{}, keys...), "COVE_ENCRYPTION_KEY_FILE=")
	if r := there.cli(125, "restore", path); !strings.Contains(r.stderr, "ek_") {
		k.t.Errorf("without the key a restore says %q", r.stderr)
	}
	there.env = keys
	there.cli(0, "restore", path)
	there.server = startServer(k.t, there.dir, k.key, there.env...)
	if r := there.raw("GET", "/api/v1/files/"+k.file+"/content", ""); r.status != http.StatusOK || bytes.Count(r.body, []byte(k.canary)) != 10_000 {
		k.t.Errorf("the restored file is %d, %d bytes", r.status, len(r.body))
	}
	there.stop()
	if found := there.holders(there.dir); len(found) > 0 {
		k.t.Errorf("what was restored has it in %v", found)
	}
}

// cli runs a command on the server's folders.
func (k *kept) cli(code int, args ...string) result {
	k.t.Helper()
	c := newCommand(k.t, args...)
	c.setenv("COVE_SERVER_FOLDER="+filepath.Join(k.dir, "server"), "COVE_DATABASE="+filepath.Join(k.dir, "cove.db"))
	c.setenv(k.env...)
	r := c.run()
	if r.code != code {
		k.t.Fatalf("%v ended with %d: %s%s", args, r.code, r.stdout, r.stderr)
	}
	return r
}

// TestNoPlainTextIsLeft searches every byte that an encrypted server keeps for what its users wrote, ran and got; and, so that this means something, those of one that is not.
func TestNoPlainTextIsLeft(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := filepath.Join(t.TempDir(), "keys")
			tool(t, sandboxtest.Binary(t), "encryption", "key", "new", keys)
			k := keptServer(t, database(t), keys)
			k.use()
			if found := append(k.holders(k.dir), k.holders(k.runtime)...); len(found) > 0 {
				t.Errorf("while the server runs it is in %v", found)
			}
			k.journals()
			k.remembers()
			k.stop()
			if found := k.holders(k.dir); len(found) > 0 {
				t.Errorf("it is in %v", found)
			}
			archive, dir := k.backedUp()
			if found := k.holders(dir); len(found) > 0 {
				t.Errorf("a backup has it in %v", found)
			}
			k.elsewhere(archive)
			if left, _ := filepath.Glob("/dev/shm/cove-state-*"); len(left) > 0 {
				t.Logf("in memory there are %v", left) // of tests beside this one
			}
		})
	}
}

// TestAServerIsEncryptedLater: without a word nothing is encrypted; with a key the server says what to run; that may be killed at any moment; and then no plain text is left.
func TestAServerIsEncryptedLater(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	k := keptServer(t, "", "")
	k.use()
	k.stop()
	if found := k.holders(k.dir); len(found) < 3 {
		t.Errorf("it is in %v alone", found)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	tool(t, sandboxtest.Binary(t), "encryption", "key", "new", keys)
	k.env = append(k.env, "COVE_ENCRYPTION_KEY_FILE="+keys)
	if r := k.cli(125, "serve", "--listen", "127.0.0.1:0"); !strings.Contains(r.stderr, "cove encryption on") {
		t.Errorf("the server says %q", r.stderr)
	}
	for n := range 5 {
		c := newCommand(t, "encryption", "on")
		c.setenv("COVE_SERVER_FOLDER="+filepath.Join(k.dir, "server"), "COVE_DATABASE="+filepath.Join(k.dir, "cove.db"))
		c.setenv(k.env...)
		c.start()
		time.Sleep(time.Duration(rand.IntN(150*(n+1))) * time.Millisecond) // any moment will do
		_ = c.cmd.Process.Signal(syscall.SIGKILL)
		_ = c.cmd.Wait()
	}
	k.cli(0, "encryption", "on")
	k.server = startServer(t, k.dir, k.key, k.env...)
	k.remembers()
	k.stop()
	if found := k.holders(k.dir); len(found) > 0 {
		t.Errorf("it is in %v", found)
	}
}

// TestAnotherKeyTakesItsPlace rotates while a server runs, is killed at moments of it, and loses the key.
func TestAnotherKeyTakesItsPlace(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	keys := filepath.Join(t.TempDir(), "keys")
	tool(t, sandboxtest.Binary(t), "encryption", "key", "new", keys)
	old, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	k := keptServer(t, "", keys)
	k.use()
	k.cli(0, "encryption", "key", "new", "--first", keys)
	for range 10 {
		c := newCommand(t, "encryption", "rotate")
		c.setenv("COVE_SERVER_FOLDER="+filepath.Join(k.dir, "server"), "COVE_DATABASE="+filepath.Join(k.dir, "cove.db"))
		c.setenv(k.env...)
		c.start()
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		_ = c.cmd.Process.Signal(syscall.SIGKILL)
		_ = c.cmd.Wait()
	}
	k.remembers()
	k.cli(0, "encryption", "rotate")
	if r := k.cli(125, "encryption", "rotate", "--data-key"); !strings.Contains(r.stderr, "uses the database") {
		t.Errorf("while a server runs new data keys are refused with %q", r.stderr)
	}
	k.stop()
	k.cli(0, "encryption", "rotate", "--data-key")
	k.server = startServer(t, k.dir, k.key, k.env...)
	k.remembers()
	k.stop()
	both, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	alone := strings.TrimSuffix(string(both), string(old))
	for name, text := range map[string]string{"the former key": string(old), "the new key": alone} {
		if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "the new key" {
			continue
		}
		needed := strings.Fields(alone)[1] // "# ek_..., made"
		if r := k.cli(125, "serve", "--listen", "127.0.0.1:0"); !strings.Contains(r.stderr, strings.TrimSuffix(needed, ",")) {
			t.Errorf("with %s the server says %q, which does not name %s", name, r.stderr, needed)
		}
	}
	if err := os.WriteFile(keys, []byte(alone), 0o600); err != nil {
		t.Fatal(err)
	}
	k.server = startServer(t, k.dir, k.key, k.env...)
	k.remembers()
	k.stop()
}
