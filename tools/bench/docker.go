package bench

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const dockerNote = "namespaces and cgroups on the host's own Linux kernel; no network"

// dockerRun starts a container for each execution.
type dockerRun struct{ daemon *dockerDaemon }

func (s *dockerRun) About() About {
	return About{ID: "docker", Title: "docker run", Note: dockerNote + "; a new container for each execution, nothing is kept", Version: s.daemon.version}
}

func (s *dockerRun) Start(ctx context.Context) error { return s.daemon.start(ctx) }
func (s *dockerRun) Stop(ctx context.Context) error  { return s.daemon.stop(ctx) }

func (s *dockerRun) Cold(context.Context) (Live, error) {
	d := s.daemon
	return &program{shop: d.shop, argv: func(code string) []string {
		return d.docker(append(d.create("run", "--rm"), d.env.Python, "-c", code)...)
	}}, nil
}

func (s *dockerRun) Refill(context.Context) error            { return nil }
func (s *dockerRun) Claim(ctx context.Context) (Live, error) { return s.Cold(ctx) }

// dockerExec runs each execution in a container that is there already.
type dockerExec struct {
	daemon  *dockerDaemon
	waiting Live // started ahead of need, or nil
}

func (s *dockerExec) About() About {
	return About{ID: "docker-exec", Title: "docker exec", Note: dockerNote + "; a running container, a new Python for each execution, variables are not kept", Version: s.daemon.version}
}

func (s *dockerExec) Start(ctx context.Context) error { return s.daemon.start(ctx) }
func (s *dockerExec) Stop(ctx context.Context) error  { return s.daemon.stop(ctx) }

func (s *dockerExec) Open(ctx context.Context) (Live, error) {
	d := s.daemon
	argv := d.docker(append(d.create("run", "--detach", "--rm"), "sleep", "3600")...)
	out, err := d.shop.do(ctx, d.shop.command(argv[0], argv[1:]...))
	if err != nil {
		return nil, err
	}
	id := strings.TrimSpace(out)
	return &container{daemon: d, id: id, program: &program{shop: d.shop, argv: func(code string) []string {
		return d.docker("exec", id, d.env.Python, "-c", code)
	}}}, nil
}

// Refill leaves one running container.
func (s *dockerExec) Refill(ctx context.Context) (err error) {
	if s.waiting == nil {
		s.waiting, err = s.Open(ctx)
	}
	return err
}

func (s *dockerExec) Claim(ctx context.Context) (Live, error) {
	if err := s.Refill(ctx); err != nil {
		return nil, err
	}
	l := s.waiting
	s.waiting = nil
	return l, nil
}

type container struct {
	*program
	daemon *dockerDaemon
	id     string
}

func (c *container) Close(ctx context.Context) error {
	if err := c.program.Close(ctx); err != nil {
		return err
	}
	argv := c.daemon.docker("rm", "--force", c.id)
	if _, err := c.daemon.shop.do(ctx, c.daemon.shop.command(argv[0], argv[1:]...)); err != nil {
		return fmt.Errorf("remove container: %w", err)
	}
	return nil
}

// until asks again and again until it is answered without an error; the last error is why it never was.
func until(ctx context.Context, limit time.Duration, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
