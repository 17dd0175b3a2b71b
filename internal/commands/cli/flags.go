package cli

import (
	"context"

	"cove/internal/core/config"
	"cove/internal/python/kernel"
)

// fileFlags are the flags of every command that works with files.
type fileFlags struct {
	File  []string `short:"f" sep:"none" placeholder:"PATH" help:"Put this file or folder into the workspace, or what is at an https:// address; PATH:NAME gives it another name there. Of folders, files with secrets are left out. Repeatable."`
	Out   string   `short:"o" default:"${out}" placeholder:"DIR" help:"Folder for figures and for files that the code makes or changes; made when needed; files of the same name from earlier runs are replaced, others stay, and the numbers of figures go on (default: ${out})."`
	Force bool     `help:"Have files that the code makes replace files of the same name that were in the out folder before."`
}

// envFlags set variables of the code's environment.
type envFlags struct {
	Env []string `short:"e" sep:"none" placeholder:"NAME=VALUE" help:"Set a variable of the code's environment; in a session it stays set. Repeatable; NAME alone takes the value that it has here. What the code must not see is for --credential."`
}

// set sets the variables in an interpreter before other code runs there.
func (f envFlags) set(ctx context.Context, s runner, getenv func(string) string) error {
	env, err := environment(f.Env, getenv)
	if err != nil || len(env) == 0 {
		return err
	}
	for _, err := range s.Execute(ctx, kernel.Request{Code: "pass", Environment: env, Unnumbered: true}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// sandboxFlags are the flags of every command that starts a sandbox. A nil or empty one was not given.
type sandboxFlags struct {
	Timeout   config.Duration `default:"${timeout}" placeholder:"TIME" help:"Wall clock of one execution; 0 means none (default: ${timeout})."`
	Memory    *config.Size    `placeholder:"SIZE" help:"Memory of the sandbox (default: ${memory})."`
	CPUs      *float64        `name:"cpus" placeholder:"N" help:"Processor cores of the sandbox (default: ${cpus})."`
	MaxOutput config.Size     `default:"${max_output}" placeholder:"SIZE" help:"Bytes of output that one execution may deliver (default: ${max_output})."`
	Packages  string          `placeholder:"SET" help:"Python environment: standard, standard-2024 or minimal (default: ${packages})."`
	Engine    string          `default:"${engine}" placeholder:"NAME" help:"gvisor, docker, or local, which isolates nothing (default: ${engine})."`
	Image     string          `placeholder:"IMAGE" help:"Begin from the file system of an OCI image: python:3.12-slim, oci-archive:FILE, docker-archive:FILE or oci:FOLDER. Its Python is used where it is new enough. A server takes those of registries that its operator allows. See cove image --help."`
	Root      bool            `help:"Let programs run as root in the sandbox, with sudo, and change its system: apt-get install, pip install."`
	Quiet     bool            `short:"q" help:"Print nothing but the output of the code or the answer."`
}

// config is the settings with the command line's on top.
func (f sandboxFlags) config(p *Program) (config.Config, error) {
	if p.ConfigErr != nil {
		return config.Config{}, p.ConfigErr
	}
	c := p.Config
	c.Sandbox.Timeout, c.Sandbox.MaxOutput, c.Sandbox.Engine, c.Sandbox.Root = f.Timeout, f.MaxOutput, f.Engine, f.Root
	c.Image = f.Image
	if f.Memory != nil {
		c.Sandbox.Memory = *f.Memory
	}
	if f.CPUs != nil {
		c.Sandbox.CPUs = *f.CPUs
	}
	if f.Packages != "" {
		c.Packages.Set = f.Packages
	}
	return c, c.Validate()
}
