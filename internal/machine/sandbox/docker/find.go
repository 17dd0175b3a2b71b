package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"

	"cove/internal/core/problem"
)

// oldestAPI is the oldest version of the API that has all that is used here: Docker 19.03 and Podman 4.
const oldestAPI = client.MinAPIVersion

// pingPatience bounds how long a daemon may take to answer at all.
const pingPatience = 20 * time.Second

// candidate is an address at which a daemon may be.
type candidate struct{ host, because string }

// candidates returns the addresses to try: the one that is asked for and no other, or those that are usual. getenv is os.Getenv.
func candidates(asked string, getenv func(string) string) ([]candidate, error) {
	if asked != "" {
		return []candidate{{asked, "it is asked for"}}, nil
	}
	if host := getenv("DOCKER_HOST"); host != "" {
		return []candidate{{host, "DOCKER_HOST names it"}}, nil
	}
	host, name, err := contextHost(getenv)
	if err != nil {
		return nil, err
	}
	if host != "" {
		return []candidate{{host, "the Docker context " + name + " names it"}}, nil
	}
	all := []candidate{{"unix:///var/run/docker.sock", "it is Docker's usual socket"}}
	if run := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		all = append(all, candidate{"unix://" + filepath.Join(run, "docker.sock"), "it is rootless Docker's usual socket"},
			candidate{"unix://" + filepath.Join(run, "podman/podman.sock"), "it is rootless Podman's usual socket"})
	}
	return append(all, candidate{"unix:///run/podman/podman.sock", "it is Podman's usual socket"}), nil
}

// contextHost returns the address in the Docker context that is in use; "" where that is the default. The files are those of the command docker: its configuration names the
// context, and each context has a file in a folder that is called after the SHA-256 of its name.
func contextHost(getenv func(string) string) (host, name string, err error) {
	dir := getenv("DOCKER_CONFIG")
	if dir == "" {
		dir = filepath.Join(getenv("HOME"), ".docker")
	}
	name = getenv("DOCKER_CONTEXT")
	if name == "" {
		var config struct{ CurrentContext string }
		text, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil || json.Unmarshal(text, &config) != nil {
			return "", "", nil //nolint:nilerr // without a configuration it is the default
		}
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return "", "", nil
	}
	sum := sha256.Sum256([]byte(name))
	text, err := os.ReadFile(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"))
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	if err != nil {
		return "", "", problem.New(problem.DockerAbsent, "the Docker context "+name+" cannot be read").WithCause(err).
			WithHint("set DOCKER_HOST to the daemon's socket, such as unix:///var/run/docker.sock, or choose another context with `docker context use`")
	}
	return meta.Endpoints["docker"].Host, name, nil
}

// dial connects to the daemon at one address.
func dial(ctx context.Context, host string) (*client.Client, error) {
	if !strings.HasPrefix(host, "unix://") {
		return nil, problem.New(problem.DockerUnfit, "the Docker daemon at "+host+" is not reached through a socket of this machine").
			WithHint("cove shows containers folders of this machine: set DOCKER_HOST to the socket of a daemon that runs here, such as unix:///var/run/docker.sock")
	}
	api, err := client.New(client.WithHost(host), client.WithUserAgent("cove"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if _, err := api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return api, nil
}

// find connects to the first daemon that answers.
func find(ctx context.Context, asked string, getenv func(string) string) (*client.Client, candidate, error) {
	all, err := candidates(asked, getenv)
	if err != nil {
		return nil, candidate{}, err
	}
	var worst error
	for _, c := range all {
		api, err := dial(ctx, c.host)
		if err == nil {
			return api, c, nil
		}
		if ctx.Err() != nil {
			return nil, c, ctx.Err()
		}
		if worst == nil || rank(err) > rank(worst) {
			worst = unreachable(c, err)
		}
	}
	return nil, candidate{}, worst
}

// rank says how much an error tells: a daemon that is there and refuses is more to the point than one that is not there.
func rank(err error) int {
	switch {
	case errors.Is(err, syscall.EACCES), problem.Has(err, problem.DockerDenied):
		return 2
	case errors.Is(err, fs.ErrNotExist):
		return 0
	}
	return 1
}

// unreachable says why a daemon cannot be used, and what to do.
func unreachable(c candidate, err error) error {
	path := strings.TrimPrefix(c.host, "unix://")
	switch text := err.Error(); {
	case problem.Has(err, problem.DockerUnfit):
		return err
	case errors.Is(err, syscall.EACCES), strings.Contains(text, "permission denied"):
		return problem.New(problem.DockerDenied, "you may not use the Docker daemon at "+path).WithCause(err).
			WithHint("use rootless Docker or Podman, or join the group of the socket (`sudo usermod -aG docker $USER`, then log in again); who may use that socket is root on this machine")
	case strings.Contains(text, "API version"):
		return problem.New(problem.DockerUnfit, "the Docker daemon at "+path+" is too old: cove needs version "+oldestAPI+" of its API").WithCause(err).
			WithHint("upgrade it to Docker 19.03 or Podman 4 at least")
	}
	return problem.New(problem.DockerAbsent, "no Docker daemon answers at "+path+" ("+c.because+")").WithCause(err).
		WithHint("start it (`sudo systemctl start docker`; for Podman `systemctl --user start podman.socket`), or set DOCKER_HOST to its socket; --engine gvisor needs no daemon")
}

// containerName is the name of a sandbox's container.
func containerName(id string) string { return "cove-" + id }

// explain makes a problem of what a daemon that was reached has refused.
func (d *daemon) explain(what string, err error) error {
	if p := problem.Of(err); p.Kind != problem.Internal {
		return err
	}
	if client.IsErrConnectionFailed(err) {
		return unreachable(candidate{d.host, "it answered before"}, err)
	}
	return problem.New(problem.DockerUnfit, fmt.Sprintf("%s refused to %s: %.300s", d.product(), what, firstLine(err.Error()))).WithCause(err).
		WithHint("`docker info` shows its settings; `cove doctor --engine docker` tries again")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
