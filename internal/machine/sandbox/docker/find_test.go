package docker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox/docker"
)

// TestNoDaemon wants each reason why there is no daemon to be told, with what to do. Nothing of Docker is needed for that.
func TestNoDaemon(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "silent.sock")
	l, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	config := t.TempDir()
	for name, c := range map[string]struct {
		env        map[string]string
		code, text string
	}{
		"not there":             {map[string]string{"DOCKER_HOST": "unix:///nowhere/docker.sock"}, "docker_absent", "DOCKER_HOST names it"},
		"nobody answers":        {map[string]string{"DOCKER_HOST": "unix://" + silent}, "docker_absent", "no Docker daemon answers at " + silent},
		"another machine":       {map[string]string{"DOCKER_HOST": "tcp://192.0.2.1:2375"}, "docker_unfit", "not reached through a socket of this machine"},
		"by ssh":                {map[string]string{"DOCKER_HOST": "ssh://somebody@example.com"}, "docker_unfit", "not reached through a socket of this machine"},
		"a context not there":   {map[string]string{"DOCKER_CONTEXT": "none-such"}, "docker_absent", "the Docker context none-such cannot be read"},
		"a context of a socket": {map[string]string{"DOCKER_CONTEXT": "mine"}, "docker_absent", "the Docker context mine names it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_CONFIG", config)
			t.Setenv("DOCKER_HOST", "")
			t.Setenv("DOCKER_CONTEXT", "")
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			writeContext(t, config, "mine", "unix:///nowhere/mine.sock")
			_, _, err := docker.New(docker.Options{State: t.TempDir()}).Describe(t.Context())
			if p := problem.Of(err); p == nil || p.Code != c.code || !strings.Contains(p.Message, c.text) || p.Hint == "" {
				t.Errorf("it says %+v", err)
			}
		})
	}
	if os.Geteuid() == 0 {
		return // nothing is closed to root
	}
	t.Run("closed", func(t *testing.T) {
		closed := filepath.Join(t.TempDir(), "closed.sock")
		l, err := net.Listen("unix", closed)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if err := os.Chmod(closed, 0); err != nil {
			t.Fatal(err)
		}
		_, _, err = docker.New(docker.Options{State: t.TempDir(), Host: "unix://" + closed}).Describe(t.Context())
		if !problem.Has(err, problem.DockerDenied) || !strings.Contains(problem.Of(err).Hint, "is root on this machine") {
			t.Errorf("it says %+v", err)
		}
	})
}

func writeContext(t *testing.T, config, name, host string) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	dir := filepath.Join(config, "contexts", "meta", hex.EncodeToString(sum[:]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"Name":"` + name + `","Endpoints":{"docker":{"Host":"` + host + `"}}}`
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
