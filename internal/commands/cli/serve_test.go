package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/problem"
)

// standIn is a server that does nothing until it is ended.
type standIn struct {
	about   cli.ServerAbout
	serving chan struct{}
	cfg     config.Config
	hard    bool // end with the second signal only
}

func (s *standIn) About() cli.ServerAbout { return s.about }
func (s *standIn) Serve(soft, hard context.Context) error {
	close(s.serving)
	<-soft.Done()
	if s.hard {
		<-hard.Done()
		return problem.New(problem.Stopped, "it was stopped at once")
	}
	return nil
}

func serve(t *testing.T, s *standIn, signals []os.Signal, args ...string) result {
	t.Helper()
	s.serving = make(chan struct{})
	return run(t, &scripted{}, func(_ string, p *cli.Program) {
		sent := make(chan os.Signal)
		p.Signals = sent
		p.Serve = func(_ context.Context, c config.Config, _ cli.ServerOptions) (cli.Server, error) {
			s.cfg = c
			return s, nil
		}
		go func() {
			<-s.serving
			for _, one := range signals {
				sent <- one
			}
		}()
	}, append([]string{"serve"}, args...)...)
}

var about = cli.ServerAbout{Address: "http://127.0.0.1:8700", Key: "cove_first", Engine: "gvisor", Python: "3.11.7", Packages: "standard", Models: []string{"openai/a"}, Database: "SQLite, /d/cove.db", Folder: "/d/server"}

func TestServeWelcomes(t *testing.T) {
	t.Parallel()
	r := serve(t, &standIn{about: about}, []os.Signal{syscall.SIGTERM})
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	for _, want := range []string{"http://127.0.0.1:8700/api/v1", "cove_first", "openai/a", "SQLite, /d/cove.db", "curl "} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the welcome lacks %q:\n%s", want, r.out)
		}
	}
	for address, warned := range map[string]bool{"http://10.1.2.3:8700": true, "https://10.1.2.3:8700": false} {
		open := about
		open.Outside = []string{address}
		r := serve(t, &standIn{about: open}, []os.Signal{syscall.SIGTERM})
		if !strings.Contains(r.out, "elsewhere  "+address) || strings.Contains(r.out, "unencrypted") != warned {
			t.Errorf("that other machines reach %s is said so:\n%s", address, r.out)
		}
	}
	socket := about
	socket.Address = "unix:/run/cove.sock"
	if r = serve(t, &standIn{about: socket}, []os.Signal{syscall.SIGTERM}); !strings.Contains(r.out, "curl -sS --unix-socket /run/cove.sock http://localhost/api/v1/sessions") || strings.Contains(r.out, "COVE_SERVER") {
		t.Errorf("behind a socket this is what to try:\n%s", r.out)
	}
	known := about
	known.Key, known.Models, known.NoModel = "", nil, "no key is set"
	r = serve(t, &standIn{about: known}, []os.Signal{os.Interrupt})
	if !strings.Contains(r.out, "none yet: running code needs none, answering questions does. Set OPENAI_API_KEY") || strings.Contains(r.out, "none: ") {
		t.Errorf("that there is no model is said so:\n%s", r.out)
	}
	if !strings.Contains(r.out, "start again. The reason: no key is set\n") {
		t.Errorf("why is said in a sentence of its own:\n%s", r.out)
	}
	known.Page = "http://127.0.0.1:8700/"
	if r := serve(t, &standIn{about: known}, []os.Signal{os.Interrupt}); !strings.Contains(r.out, "start again, or connect one in the page. The reason: no key is set\n") {
		t.Errorf("the page can connect one:\n%s", r.out)
	}
	if r.code != 0 || strings.Contains(r.out, "first key") || !strings.Contains(r.out, "no key is set") || !strings.Contains(r.out, "cove key create") {
		t.Errorf("exit code %d:\n%s", r.code, r.out)
	}
}

func TestServeAsJSON(t *testing.T) {
	t.Parallel()
	s := &standIn{about: about}
	r := serve(t, s, []os.Signal{syscall.SIGTERM}, "--json", "--listen", ":1", "--listen", "unix:/s", "--model", "openai/b", "--database", "postgres://db/cove")
	var line struct{ Type, Address, Key string }
	if err := json.Unmarshal([]byte(r.out), &line); err != nil || line.Type != "serving" || line.Address != about.Address || line.Key != "cove_first" {
		t.Errorf("got %s, %v", r.out, err)
	}
	if s.cfg.Log.Format != "json" || s.cfg.Serve.Listen.String() != ":1, unix:/s" || s.cfg.Models.Default != "openai/b" || s.cfg.SQLite() != "" {
		t.Errorf("the settings are %+v", s.cfg.Serve)
	}
}

// TestServeEndsAtOnce wants the second signal to end what the first one began to. A first key is said even when nothing is: nobody could find it out later.
func TestServeEndsAtOnce(t *testing.T) {
	t.Parallel()
	r := serve(t, &standIn{about: about, hard: true}, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, "--quiet")
	if r.code != 130 || r.out != "cove_first\n" || !strings.Contains(r.err, "stopped at once") {
		t.Errorf("exit code %d, stdout %q, stderr %q", r.code, r.out, r.err)
	}
}

func TestServeMistakes(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"write 127.0.0.1:8700":                      {"serve", "--listen", "here"},
		"or unix:/PATH":                             {"serve", "--listen", "unix:cove.sock"},
		"does not name a model":                     {"serve", "--model", "nonsense"},
		"there is no provider":                      {"serve", "--config", "$DIR/models.toml"},
		"COVE_DATABASE=/tmp/new.db cove key create": {"serve", "--config", "$DIR/key.toml"},
		"must be a number of 0 or more":             {"serve", "--config", "$DIR/below.toml"},
		"see `cove key create --help`":              {"key", "create"},
		"nothere.toml":                              {"serve", "--config", "$DIR/nothere.toml"},
		"memory must be":                            {"serve", "--config", "$DIR/small.toml"},
	} {
		r := run(t, &scripted{}, func(dir string, p *cli.Program) {
			p.Getenv = func(name string) string { return map[string]string{"HOME": dir}[name] }
			for name, text := range map[string]string{
				"small": `memory = "1MiB"`, "models": `serve_models = ["openai/a", "opnai/b"]`, "key": `first_key = "a long text, but no key of cove's at all"`, "below": "project_sessions = -1",
			} {
				if err := os.WriteFile(dir+"/"+name+".toml", []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}, args...)
		if r.code != 125 || !strings.Contains(r.err, want) {
			t.Errorf("%q: exit code %d, %s", args, r.code, r.err)
		}
	}
}
