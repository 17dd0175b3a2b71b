package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"cove/internal/config"
)

// closeTimeout bounds how long an ended command waits for its sandbox to go; what stays is swept by the next command.
const closeTimeout = 10 * time.Second

// fileFlags are the flags of every command that works with files.
type fileFlags struct {
	File []string `short:"f" sep:"none" placeholder:"PATH" help:"Put this file or folder into the workspace. Repeatable."`
	Out  string   `short:"o" default:"${out}" placeholder:"DIR" help:"Folder for figures and for files that the code makes or changes; made when needed, files of the same name from earlier runs are replaced (default: ${out})."`
}

// sandboxFlags are the flags of every command that starts a sandbox.
type sandboxFlags struct {
	Timeout   config.Duration `default:"${timeout}" placeholder:"TIME" help:"Wall clock of one execution; 0 means none (default: ${timeout})."`
	Memory    config.Size     `default:"${memory}" placeholder:"SIZE" help:"Memory of the sandbox (default: ${memory})."`
	CPUs      float64         `name:"cpus" default:"${cpus}" placeholder:"N" help:"Processor cores of the sandbox (default: ${cpus})."`
	MaxOutput config.Size     `default:"${max_output}" placeholder:"SIZE" help:"Bytes of output that one execution may deliver (default: ${max_output})."`
	Packages  string          `default:"${packages}" placeholder:"SET" help:"Python environment: standard or minimal (default: ${packages})."`
	Engine    string          `default:"${engine}" placeholder:"NAME" help:"gvisor, or local, which isolates nothing (default: ${engine})."`
	Quiet     bool            `short:"q" help:"Say nothing but what the code or the answer says."`
}

// config is the settings with the command line's on top.
func (f sandboxFlags) config(p *Program) (config.Config, error) {
	if p.ConfigErr != nil {
		return config.Config{}, p.ConfigErr
	}
	c := p.Config
	c.Timeout, c.Memory, c.CPUs, c.MaxOutput = f.Timeout, f.Memory, f.CPUs, f.MaxOutput
	c.Packages, c.Engine = f.Packages, f.Engine
	return c, c.Validate()
}

// bench is a session with the user's files in it, and the folder that receives what comes out.
type bench struct {
	Session
	out *outFolder
}

// prepare checks everything that can be checked before a sandbox is started.
func (p *Program) prepare(files fileFlags) ([]input, *outFolder, error) {
	inputs, skipped, err := collect(files.File, workspaceLimit())
	if err != nil {
		return nil, nil, err
	}
	for _, link := range skipped {
		fmt.Fprintln(p.Err, "cove: "+oneLine(link)+" is a link inside a folder and was left out")
	}
	out, err := newOutFolder(files.Out, inputs)
	return inputs, out, err
}

// open starts the session and puts the files in.
func (p *Program) open(ctx context.Context, cfg config.Config, inputs []input, out *outFolder, quiet bool) (*bench, error) {
	progress := p.Err
	if quiet {
		progress = io.Discard
	}
	if cfg.Engine == "local" {
		fmt.Fprintln(p.Err, "cove: engine local: there is no isolation, the code can do whatever you can do")
	}
	sess, err := p.Open(ctx, cfg, progress)
	if err != nil {
		return nil, err
	}
	b := &bench{Session: sess, out: out}
	if err := put(ctx, sess, inputs); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// close ends the sandbox even when the command's own context has ended.
func (b *bench) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = b.Close(ctx) // the next command sweeps what could not be removed
	b.out.close()
}

// killed closes the session as soon as hard ends, which makes a running execution end too.
func (b *bench) killed(hard context.Context) (stop func() bool) {
	return context.AfterFunc(hard, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = b.Close(ctx)
	})
}

// plotly is the text of plotly.js, or "".
func (p *Program) plotly(cfg config.Config) func() string {
	return func() string {
		if p.PlotlyScript == nil {
			return ""
		}
		text, err := os.ReadFile(p.PlotlyScript(cfg))
		if err != nil {
			return ""
		}
		return string(text)
	}
}
