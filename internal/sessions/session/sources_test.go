package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/python/deps/layer"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
)

// distant is an engine on whose machine are the packages, and what it saved. It tells what it is asked to start, and starts nothing.
type distant struct {
	sandbox.Saver
	asked sandbox.Spec
	from  sandbox.Checkpoint
}

var errFar = errors.New("far away")

func (d *distant) Start(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	d.asked = spec
	return nil, errFar
}

func (d *distant) Prepare(_ context.Context, spec sandbox.Spec) (sandbox.Prepared, error) {
	d.asked = spec
	return d, nil
}

func (d *distant) Restore(_ context.Context, from sandbox.Checkpoint) (sandbox.Sandbox, error) {
	d.from = from
	return nil, errFar
}

func (d *distant) Stop(context.Context) error { return nil }

// volumes are packages on the engine's machine.
type volumes struct{ session.Packages }

func (volumes) Mount() sandbox.Mount {
	return sandbox.Mount{Source: sandbox.Volume("layers"), Target: layer.MountPoint}
}

// TestSourcesAreHandedOn opens sessions with mounts and a checkpoint that are nowhere on this host: the engine gets them as they are.
func TestSourcesAreHandedOn(t *testing.T) {
	t.Parallel()
	env := &pyenv.Environment{Dir: "/srv/env", Base: "/srv/python"}
	want := []sandbox.Mount{
		{Source: sandbox.HostFolder("/srv/env"), Target: pyenv.MountPoint}, {Source: sandbox.HostFolder("/srv/python"), Target: "/srv/python"}, volumes{}.Mount(),
	}
	for _, from := range []sandbox.Checkpoint{{}, sandbox.CheckpointNamed("saved:1", 1)} {
		d := &distant{}
		_, err := session.Open(t.Context(), session.Options{Engine: d, Env: env, Packages: volumes{}, Checkpoint: from})
		if !errors.Is(err, errFar) || !slices.Equal(d.asked.Mounts, want) || d.asked.Checkpoint != from || d.from != from {
			t.Errorf("%v: %+v, from %v", err, d.asked, d.from)
		}
	}
}
