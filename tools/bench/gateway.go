package bench

import (
	"context"
	"errors"
)

// gateway is a running Jupyter kernel gateway that starts a kernel when it is asked for one.
type gateway struct {
	kit    *gatewayKit
	server *gatewayServer
}

func (s *gateway) About() About {
	return About{ID: "gateway", Title: "kernel gateway, no isolation", Version: s.kit.version,
		Note: "Jupyter kernels over WebSocket; the gateway runs already, a kernel is started when it is asked for; " +
			"the client acknowledges at once, an ordinary one waits about 40 ms longer for each execution"}
}

func (s *gateway) Start(ctx context.Context) error {
	err := s.kit.prepare(ctx)
	if err == nil {
		s.server, err = s.kit.serve(ctx)
	}
	return err
}

func (s *gateway) Stop(ctx context.Context) error { return s.server.stop(ctx) }

// Cold starts a kernel and connects to it, as a client of the gateway does.
func (s *gateway) Cold(ctx context.Context) (Live, error) {
	id, err := s.server.startKernel(ctx)
	if err != nil {
		return nil, err
	}
	k, err := s.server.connect(ctx, id)
	if err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
		defer cancel()
		return nil, errors.Join(err, s.server.deleteKernel(stop, id))
	}
	return k, nil
}

func (s *gateway) Refill(context.Context) error             { return nil }
func (s *gateway) Claim(ctx context.Context) (Live, error)  { return s.Cold(ctx) }
func (s *gateway) Open(ctx context.Context) (Live, error)   { return s.Cold(ctx) }
func (s *gateway) Create(ctx context.Context) (Live, error) { return s.Cold(ctx) }
func (s *gateway) Join(ctx context.Context) (Live, error)   { return s.Cold(ctx) }
func (s *gateway) Footprint() int64                         { return 100e6 }

// prespawned is a gateway that has started a kernel ahead of need; its client finds it in the list of kernels.
type prespawned struct {
	kit    *gatewayKit
	server *gatewayServer
}

func (s *prespawned) About() About {
	return About{ID: "gateway-prespawn", Title: "gateway prespawned, no isolation", Version: s.kit.version,
		Note: "prespawn_count=1: the kernel idles already, its client lists the kernels, connects and executes"}
}

func (s *prespawned) Start(ctx context.Context) error {
	err := s.kit.prepare(ctx)
	if err == nil {
		s.server, err = s.kit.serve(ctx, "--KernelGatewayApp.prespawn_count=1")
	}
	return err
}

// Otherwise is the gateway: its kernels are the same.
func (s *prespawned) Otherwise() string { return "kernel gateway" }

func (s *prespawned) Stop(ctx context.Context) error { return s.server.stop(ctx) }

// Refill leaves one kernel that has answered once.
func (s *prespawned) Refill(ctx context.Context) error {
	ids, err := s.server.kernels(ctx)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		id, err := s.server.startKernel(ctx)
		if err != nil {
			return err
		}
		ids = []string{id}
	}
	k, err := s.server.connect(ctx, ids[0])
	if err != nil {
		return err
	}
	k.hangUp()
	return nil
}

func (s *prespawned) Claim(ctx context.Context) (Live, error) {
	ids, err := s.server.kernels(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("no kernel was prespawned")
	}
	k, err := s.server.connect(ctx, ids[0])
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Create is what a client does who wants a kernel at once; asking for a new one would start it then.
func (s *prespawned) Create(ctx context.Context) (Live, error) { return s.Claim(ctx) }
