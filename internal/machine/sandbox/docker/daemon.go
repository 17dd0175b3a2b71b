package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// daemon is a Docker daemon that was reached, and what it says of itself.
type daemon struct {
	api     *client.Client
	host    string
	podman  bool
	info    system.Info
	runtime string // of the containers; one of info.Runtimes
	asked   bool   // the runtime was asked for by its name
}

// isolating is what runtimes are called that put a kernel of their own between code and the host's.
const isolating = "runsc"

// connect finds a daemon and looks at what it is.
func connect(ctx context.Context, o Options) (*daemon, error) {
	api, where, err := find(ctx, o.Host, os.Getenv)
	if err != nil {
		return nil, err
	}
	d := &daemon{api: api, host: where.host}
	said, err := api.Info(ctx, client.InfoOptions{})
	if err != nil {
		_ = api.Close()
		return nil, unreachable(where, err)
	}
	d.info = said.Info
	if version, err := api.ServerVersion(ctx, client.ServerVersionOptions{}); err == nil {
		for _, c := range version.Components {
			d.podman = d.podman || strings.HasPrefix(c.Name, "Podman")
		}
	}
	if d.info.OSType != "" && d.info.OSType != "linux" {
		_ = api.Close()
		return nil, problem.New(problem.DockerUnfit, "the Docker daemon at "+where.host+" runs no Linux containers")
	}
	if err := d.choose(o.Runtime); err != nil {
		_ = api.Close()
		return nil, err
	}
	return d, nil
}

// choose takes the runtime that is asked for, or runsc where it is there, or the daemon's default.
func (d *daemon) choose(asked string) error {
	d.runtime = d.info.DefaultRuntime
	if _, there := d.info.Runtimes[isolating]; there && !d.podman { // Podman lists every runtime that it knows of, installed or not
		d.runtime = isolating
	}
	if asked == "" {
		return nil
	}
	if _, there := d.info.Runtimes[asked]; !there {
		return problem.New(problem.DockerUnfit, fmt.Sprintf("%s has no runtime %q", d.product(), asked)).
			WithHint("`docker info` lists its runtimes; name one of them with sandbox.docker_runtime (COVE_DOCKER_RUNTIME), or none")
	}
	d.runtime, d.asked = asked, true
	return nil
}

func (d *daemon) product() string {
	if d.podman {
		return "Podman " + d.info.ServerVersion
	}
	return "Docker " + d.info.ServerVersion
}

// isolates says whether gVisor is between code and the host's kernel.
func (d *daemon) isolates() bool { return strings.HasPrefix(filepath.Base(d.runtime), isolating) }

// hasOption says whether the daemon lists a security option, such as "rootless".
func (d *daemon) hasOption(name string) bool {
	for _, o := range d.info.SecurityOptions {
		if o == name || strings.Contains(","+o+",", ",name="+name+",") {
			return true
		}
	}
	return false
}

// ownUsers says that users of its containers are not the host's users of the same numbers: the daemon is an ordinary user's, or remaps them.
func (d *daemon) ownUsers() bool { return d.rootless() || d.hasOption("userns") }

// rootless says whether the daemon is an ordinary user's. Podman does not always say so, but its socket is that user's.
func (d *daemon) rootless() bool {
	if d.hasOption("rootless") {
		return true
	}
	var st unix.Stat_t
	return unix.Stat(d.path(), &st) == nil && st.Uid != 0
}

// describe is what is said each time of how far code is isolated.
func (d *daemon) describe() string {
	how, runtime := d.product(), d.runtime
	if d.rootless() {
		how += ", rootless"
	}
	if runtime == "" {
		runtime = "its default runtime"
	}
	if d.isolates() {
		return fmt.Sprintf("docker+%s isolates: gVisor is between code and this machine's kernel (%s at %s)", runtime, how, d.path())
	}
	return fmt.Sprintf("docker+%s shares this machine's kernel with code (%s at %s)", runtime, how, d.path())
}

func (d *daemon) path() string { return strings.TrimPrefix(d.host, "unix://") }

// warnings are what the doctor warns of.
func (d *daemon) warnings() (all []string) {
	if !d.isolates() {
		all = append(all, "a hole in the kernel is a way out of the container; --engine gvisor and Docker's runtime runsc put a kernel of their own in between")
	}
	if !d.rootless() {
		all = append(all, "who may use the socket "+d.path()+" is root on this machine: give it to nobody whom you would not give root, and never mount it into a container")
	}
	if _, err := d.limitsBy(); err != nil {
		all = append(all, problem.Of(err).Message)
	}
	return all
}

// limitsBy says what holds containers to their limits.
func (d *daemon) limitsBy() (string, error) {
	var absent []string
	for _, l := range []struct {
		there bool
		what  string
	}{{d.info.MemoryLimit, "memory"}, {d.info.CPUCfsQuota, "processors"}, {d.info.PidsLimit, "processes"}} {
		if !l.there {
			absent = append(absent, l.what)
		}
	}
	if len(absent) > 0 {
		return "", problem.New(problem.DockerUnfit, d.product()+" does not limit "+strings.Join(absent, ", ")+" here").
			WithHint("a rootless daemon limits what systemd has delegated to its user, on cgroup v2: see Docker's page on rootless mode")
	}
	return "cgroup v" + d.info.CgroupVersion + " of " + d.product(), nil
}
