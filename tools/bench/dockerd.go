package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
)

// dockerDaemon is a dockerd of the run's own: its socket, its images and its cgroups go when the run ends. A daemon of the
// user's is left alone, so nothing has to be put into it or taken out of it again.
type dockerDaemon struct {
	shop    *workshop
	env     *pyenv.Environment
	install bool
	version string

	tried  bool
	failed error
	server *server
	socket string
}

const dockerImage = "cove-bench"

// start brings the daemon up for the first of its subjects; the others share it, or the reason why there is none.
func (d *dockerDaemon) start(ctx context.Context) error {
	if d.tried {
		return d.failed
	}
	d.tried = true
	d.failed = d.bringUp(ctx)
	return d.failed
}

func (d *dockerDaemon) bringUp(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return problem.New(codeNeedsRoot, "a docker daemon can only be started by root").WithHint("run `cove bench` as root to have docker measured")
	}
	for program, packages := range map[string][]string{"dockerd": {"docker.io"}, "docker": {"docker.io"}, "debootstrap": {"debootstrap"}} {
		if err := provide(ctx, d.shop, d.install, program, packages...); err != nil {
			return err
		}
	}
	if err := fillFonts(fontFolder(d.shop), d.env); err != nil {
		return err
	}
	image, err := d.rootfs(ctx)
	if err != nil {
		return err
	}
	if err := d.serve(ctx); err != nil {
		return err
	}
	argv := d.docker("import", image, dockerImage)
	if _, err := d.shop.do(ctx, d.shop.command(argv[0], argv[1:]...)); err != nil {
		return fmt.Errorf("import the image: %w", err)
	}
	return nil
}

// serve starts the daemon and waits until it answers.
func (d *dockerDaemon) serve(ctx context.Context) error {
	at := func(name string) string { return filepath.Join(d.shop.run, name) }
	// A socket's path may have 107 bytes; that of the data folder may be longer.
	d.socket = at("docker.sock")
	if len(d.socket) > 100 {
		return problem.New(codePathTooLong, "the data folder's path is too long for docker's socket").WithHint("set COVE_HOME to a shorter one")
	}
	config := at("docker.json")
	if err := os.WriteFile(config, []byte("{}\n"), 0o644); err != nil {
		return fmt.Errorf("write docker's settings: %w", err)
	}
	var err error
	d.server, err = d.shop.serve(d.shop.command("dockerd", "--config-file", config, "--host", "unix://"+d.socket,
		"--data-root", at("docker"), "--exec-root", at("docker-exec"), "--pidfile", at("docker.pid"),
		"--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", "/"+cgroupName(d.shop.id)))
	if err != nil {
		return fmt.Errorf("start dockerd: %w", err)
	}
	err = until(ctx, 30*time.Second, func(ctx context.Context) error {
		if why := d.server.gone(); why != nil {
			return why
		}
		argv := d.docker("version", "--format", "{{.Server.Version}}")
		out, err := d.shop.do(ctx, d.shop.command(argv[0], argv[1:]...))
		d.version = strings.TrimSpace(out)
		return err
	})
	if err != nil {
		return problem.New(codeDockerd, "dockerd does not run here").WithCause(errors.Join(err, d.server.gone()))
	}
	return nil
}

func (d *dockerDaemon) stop(ctx context.Context) error {
	if d.server == nil {
		return nil
	}
	argv := d.docker("ps", "--all", "--quiet")
	if out, err := d.shop.do(ctx, d.shop.command(argv[0], argv[1:]...)); err == nil && out != "" {
		argv := d.docker(append([]string{"rm", "--force"}, strings.Fields(out)...)...)
		_, _ = d.shop.do(ctx, d.shop.command(argv[0], argv[1:]...)) // what stays is swept with the run
	}
	s := d.server
	d.server = nil
	return s.stop(ctx)
}

// docker is a command line of the client's for this daemon.
func (d *dockerDaemon) docker(args ...string) []string {
	return append([]string{"docker", "--host", "unix://" + d.socket}, args...)
}

// create is the part of a command line that makes a container, up to the image. The standard environment and its base
// Python are at their own paths, read-only.
func (d *dockerDaemon) create(args ...string) []string {
	fonts := fontFolder(d.shop)
	for _, dir := range []string{d.env.Dir, d.env.Base} {
		args = append(args, "--volume", dir+":"+dir+":ro")
	}
	// matplotlib searches for fonts again when it cannot write here.
	args = append(args, "--volume", fonts+":"+fonts)
	for _, variable := range append(matplotlibEnv(fonts), d.shop.mark()) {
		args = append(args, "--env", variable)
	}
	return append(args, "--network", "none", dockerImage)
}

// rootfs returns a tar file of a small Debian with Python, made once with debootstrap from apt's own mirror.
func (d *dockerDaemon) rootfs(ctx context.Context) (string, error) {
	path := filepath.Join(d.shop.dir, "rootfs.tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	mirror, suite, err := aptMirror(ctx, d.shop)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(d.shop.progress, "  Making a %s root file system for docker with debootstrap, once (about a minute)\n", suite)
	root := filepath.Join(d.shop.run, "root")
	if _, err := d.shop.do(ctx, d.shop.command("debootstrap", "--variant=minbase", "--include=python3", suite, root, mirror)); err != nil {
		return "", problem.New(codeDebootstrap, "debootstrap could not make a root file system").WithCause(err)
	}
	tmp := filepath.Join(d.shop.run, "rootfs.tar")
	if _, err := d.shop.do(ctx, d.shop.command("tar", "-C", root, "-cf", tmp, ".")); err != nil {
		return "", err
	}
	if err := os.RemoveAll(root); err != nil {
		return "", fmt.Errorf("remove the root file system: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return "", fmt.Errorf("keep the root file system: %w", err)
	}
	return path, nil
}

// aptMirror is where apt gets this distribution from.
func aptMirror(ctx context.Context, shop *workshop) (mirror, suite string, err error) {
	suite = strings.Trim(firstValue("/etc/os-release", "VERSION_CODENAME", "="), `"`)
	out, err := shop.do(ctx, shop.command("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"))
	if err != nil {
		return "", "", fmt.Errorf("ask apt for its mirror: %w", err)
	}
	for line := range strings.Lines(out) {
		if uri, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == suite {
			return uri, suite, nil
		}
	}
	return "", "", problem.New(codeNoMirror, "apt names no mirror for "+suite).WithHint("run `apt-get update` first")
}

// server is a program that runs until it is stopped.
type server struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// serve starts cmd with its output in a file of the run's.
func (w *workshop) serve(cmd *exec.Cmd) (*server, error) {
	log, err := os.CreateTemp(w.run, filepath.Base(cmd.Path)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, log: log.Name(), done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // gone tells
		close(s.done)
	}()
	return s, nil
}

// gone says why the program has ended, or nil while it runs.
func (s *server) gone() error {
	select {
	case <-s.done:
	default:
		return nil
	}
	f, err := os.Open(s.log)
	if err != nil {
		return err
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return fmt.Errorf("%s ended: %s", filepath.Base(s.cmd.Path), lastWords(string(text)))
}

// stop asks the program to end, and ends it when it does not.
func (s *server) stop(ctx context.Context) error {
	_ = unix.Kill(s.cmd.Process.Pid, unix.SIGTERM) // it may be gone
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		killGroup(s.cmd)
		<-s.done
		return errors.New("it had to be killed")
	}
}
