// Package app builds the program from its settings. It is the only place that knows every package: engines, models and
// surfaces are put together here and nowhere else.
package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/core/sdnotify"
	"cove/internal/llm/model"
	"cove/internal/llm/model/anthropic"
	"cove/internal/llm/model/choose"
	"cove/internal/llm/model/openai"
	"cove/internal/machine/keeper"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/docker"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/local"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
	"cove/internal/server/hub"
	"cove/internal/sessions/session"
)

// replayPace is waited between the pieces of a recorded answer, so that a person can watch it.
const replayPace = 8 * time.Millisecond

// Signals delivers what the user sends the process to interrupt or end it, instead of ending the process at once. From then on writing to a closed pipe fails
// with EPIPE and does not kill the process, which has sandboxes to stop first.
func Signals() <-chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signals
}

// Main runs cove's command line and returns the exit code. Signals delivers what the user sends the process.
func Main(ctx context.Context, args []string, build cli.Build, signals <-chan os.Signal) int {
	build = build.Complete()
	version := build.String()
	cfg, err := config.Load(os.Getenv)
	lang.Use(lang.Of(cfg.Terminal.Language, os.Getenv))
	var sweeping sync.WaitGroup
	sweeping.Go(func() { sweep(ctx, cfg) })
	defer sweeping.Wait()
	return cli.Main(ctx, args, &cli.Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv:    os.Getenv,
		Build:     build,
		Config:    cfg,
		ConfigErr: err,
		Signals:   signals,
		Open:      open,
		Prepare:   prepareNamed(version),
		Served:    served,
		Salvage:   salvage,
		Outlook:   outlook,
		Launch:    launchKeeper,
		Report:    keeper.Reporter(),
		NewModel:  func(c choose.Choice) (model.Model, error) { return newModel(cfg, c) },
		Models:    modelsOf,
		Engine:    newEngine,
		Packages:  newPackageDesk,
		Images:    images,
		Serve:     newServer(version, sdnotify.Find()),
		Records:   openRecords(version),
		Restore:   restoreRecords,
		Verify:    verifyBackup,

		Encryption: newEncryption,
		Explain:    explain,
		Reach:      reach,
		Bundle:     bundleOf(build.Version),
		Unbundle:   unbundle(build.Version),
		Tools: func(c config.Config, log *slog.Logger) (cli.ToolServers, error) {
			return newToolServers(c, log, nil, version)
		},

		PlotlyScript: plotlyScript,
	})
}

// sweep removes what killed commands left behind, whichever engine they used. That costs next to nothing when there is nothing.
func sweep(ctx context.Context, c config.Config) {
	if _, err := os.Stat(c.Folders.Runtime); err != nil {
		return
	}
	for _, name := range []string{"gvisor", "docker", "local"} {
		c.Sandbox.Engine = name
		engine, err := newEngine(c)
		if err == nil {
			_, err = engine.Sweep(ctx)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "cove: what an earlier command left behind could not be removed: %v\n", err)
			return
		}
	}
	if err := sweepPackages(c); err != nil {
		fmt.Fprintf(os.Stderr, "cove: packages that nobody uses could not be removed: %v\n", err)
	}
}

// open prepares the Python environment and starts a session.
func open(ctx context.Context, c config.Config, progress io.Writer) (hub.Live, error) {
	engine, err := newEngine(c)
	if err != nil {
		return nil, err
	}
	if e, ok := engine.(sandbox.Warmer); ok {
		e.Warm()
	}
	if err := sayIsolation(ctx, engine, progress); err != nil {
		return nil, withDoctor(err)
	}
	env, err := environment(ctx, c, "", progress)
	if err != nil {
		return nil, err
	}
	packages, installed, err := installing(ctx, c, env, installation.State{}, progress)
	if err != nil {
		return nil, err
	}
	o := session.Options{Engine: engine, Env: env, Limits: sandbox.Limits{Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs, System: systemOf(c)}, Packages: packages, Installed: installed}
	s, err := openWarm(ctx, c, o, progress)
	if err != nil {
		return nil, withDoctor(ofImage(env, err))
	}
	return s, nil
}

// sayIsolation says what is between code and the machine, where that depends on what else runs here.
func sayIsolation(ctx context.Context, engine sandbox.Engine, progress io.Writer) error {
	e, ok := engine.(sandbox.Describer)
	if !ok {
		return nil
	}
	isolation, _, err := e.Describe(ctx)
	if err == nil {
		_, _ = fmt.Fprintln(progress, "cove: "+isolation)
	}
	return err
}

// withDoctor points to the doctor when a sandbox does not start.
func withDoctor(err error) error {
	p := problem.Of(err)
	if p.Kind == problem.Canceled {
		return err
	}
	hint := "`cove doctor` says what this machine can do"
	if p.Hint != "" {
		hint = p.Hint + "\n" + hint
	}
	return p.WithHint(hint)
}

func isTerminal(w io.Writer) bool {
	_, tty := terminal.Descriptor(w)
	return tty
}

func newEngine(c config.Config) (sandbox.Engine, error) {
	if err := ownFolder(c.Folders.Runtime); err != nil {
		return nil, err
	}
	switch c.Sandbox.Engine {
	case "gvisor":
		return gvisor.New(gvisor.Options{State: filepath.Join(c.Folders.Runtime, "gvisor"), Shared: shared(c), Debug: os.Getenv("COVE_DEBUG_GVISOR"), Sealing: sync.OnceValues(func() (gvisor.Sealing, error) { return sealingOf(c) })}), nil
	case "docker":
		return docker.New(docker.Options{State: filepath.Join(c.Folders.Runtime, "docker"), Shared: shared(c), Runtime: c.Sandbox.DockerRuntime}), nil
	case "local":
		return local.New(local.Options{State: filepath.Join(c.Folders.Runtime, "local"), Guests: shared(c)}), nil
	}
	return nil, problem.New(problem.EngineUnknown, fmt.Sprintf("there is no engine %q", c.Sandbox.Engine)).WithHint("the engines are gvisor, docker and local")
}

// newSaver is newEngine for what needs one that can save.
func newSaver(c config.Config) (sandbox.Saver, error) {
	engine, err := newEngine(c)
	if err != nil {
		return nil, err
	}
	return sandbox.SaverOf(engine)
}

// shared is the folder with what every sandbox sees: the program that runs inside, and memory that sandboxes have in common. Saved ones need those that they were saved with.
func shared(c config.Config) string { return filepath.Join(c.Folders.Data, "shared") }

// ownFolder makes the folder for running sandboxes and makes sure that nobody else can prepare it: it may be in a
// folder that everyone can write to. Others may pass through it (0711), because sandboxed code of another uid does.
func ownFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return runtimeProblem(dir, err)
	}
	if err := os.Mkdir(dir, 0o711); err != nil && !os.IsExist(err) {
		return runtimeProblem(dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return runtimeProblem(dir, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return problem.New(problem.RuntimeFolder, dir+" is not a folder that only you can write to").
			WithHint("remove it, or set COVE_RUNTIME to a folder of your own")
	}
	return nil
}

func runtimeProblem(dir string, err error) error {
	return problem.New(problem.RuntimeFolder, "cannot make the folder for running sandboxes "+dir).WithCause(err).
		WithHint("set COVE_RUNTIME, or COVE_HOME where it is below that, to a folder that you can write to")
}

func newModel(cfg config.Config, c choose.Choice) (model.Model, error) {
	limits := model.Limits{
		Connect: time.Duration(cfg.Models.ConnectTimeout), FirstToken: time.Duration(cfg.Models.FirstTokenTimeout), Stall: time.Duration(cfg.Models.StallTimeout),
	}
	images := sight(cfg, c.String())
	switch c.Provider {
	case "openai":
		return openai.New(openai.Options{Model: c.Name, Images: images, BaseURL: c.BaseURL, APIKey: c.Key, Limits: limits}), nil
	case "anthropic":
		return anthropic.New(anthropic.Options{Model: c.Name, Images: images, BaseURL: c.BaseURL, APIKey: c.Key, Limits: limits}), nil
	case "ollama":
		return openai.New(openai.Options{Model: c.Name, Images: images, BaseURL: openai.OllamaBaseURL(c.BaseURL), APIKey: c.Key, Ollama: true, Limits: limits}), nil
	case "replay":
		pace := replayPace
		if !isTerminal(os.Stderr) {
			pace = 0
		}
		return model.OpenReplay(c.Name, pace)
	}
	return nil, problem.New(problem.ModelProvider, fmt.Sprintf("there is no provider %q", c.Provider))
}

// plotlyScript finds plotly.js, which Python's plotly brings, so that an interactive figure can be saved as a page
// that needs no network.
func plotlyScript(c config.Config) string {
	script := ""
	for _, folder := range pyenv.Built(c.Folders.Data, pyenv.Set(c.Packages.Set)) {
		if found, _ := filepath.Glob(filepath.Join(folder, "lib", "python3*", "site-packages", "plotly", "package_data", "plotly.min.js")); len(found) > 0 {
			script = found[len(found)-1]
		}
	}
	return script
}
