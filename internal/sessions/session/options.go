package session

import (
	"context"

	"cove/internal/machine/sandbox"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
)

// Options are what a session is made of.
type Options struct {
	Engine sandbox.Engine
	Env    *pyenv.Environment
	Limits sandbox.Limits

	// Checkpoint is what the sandbox starts from, made by Save in a session with the same Env and, but for Memory and CPUs, the same Limits. Zero starts an
	// interpreter from nothing. The Engine must be a sandbox.Saver.
	Checkpoint sandbox.Checkpoint
	// Reseed is for checkpoints that several sessions start from: each gets random generators of its own. Without it they
	// go on where they were saved.
	Reseed bool
	// Running is a sandbox that runs already, with or without a kernel. It is taken over, and none is started. When it is lost, the next sandbox starts from Checkpoint.
	Running sandbox.Sandbox
	// Prepared returns a sandbox that Engine has prepared before for a spec with the same mounts and limits, or nil when none waits. Where it is nil itself, none ever does.
	Prepared func(ctx context.Context, spec sandbox.Spec) sandbox.Prepared
	// Packages installs what code imports; with nil, code has the packages of Env alone.
	Packages Packages
	// Installed is what Packages has installed for the session that Checkpoint or Running is of, or what a new session begins with.
	Installed installation.State
	// Kernels are the process ids of the kernels in Checkpoint or Running by their names, as KernelPIDs returned them; 0 for one whose interpreter is to be started.
	// With nil there is one kernel, kernel.Main.
	Kernels map[string]int
	// Parked are the executions that wait in kernels of Checkpoint, by the kernels' names (kernel.Parked.ID): they go on with Resume. All other code that waits there is interrupted.
	Parked map[string]string
	// Volumes are folders that other sessions use, too. A checkpoint is good for the same ones alone.
	Volumes []sandbox.VolumeMount
	// Mold is for a session that only exists to be saved as the checkpoint of others, which set what depends on the memory limit themselves.
	Mold bool
}

// SandboxSpec describes the session's sandbox, but for its ID and what it starts from.
func (o *Options) SandboxSpec() sandbox.Spec {
	spec := sandbox.Spec{Layer: o.Env.Layer, Mounts: o.mounts(), Limits: o.Limits, Volumes: o.Volumes, Common: o.Mold}
	if o.Env.Image != nil {
		spec.Root = o.Env.Image.Root
	}
	return spec
}

func (o *Options) mounts() []sandbox.Mount {
	mounts := o.Env.Mounts()
	if o.Packages != nil {
		mounts = append(mounts, o.Packages.Mount())
	}
	return mounts
}
