package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/machine/wire"
	"cove/internal/sessions/ondisk"
	"cove/internal/sessions/session"
)

// A saved session can be restored by coves with the same release of gVisor alone. So the cove that saves is kept, one for each such release, and
// a later one has it read the files of what it has saved itself (see salvageWith). Nothing removes them: sessions may be in folders that no setting names.
//
//	<data>/coves/<release>/cove        the executable
//	<data>/coves/<release>/made.json   which cove that is, a snapshot.Maker

const (
	coveName = "cove"
	madeName = "made.json"
	// salvagePatience bounds the reading of a session's files.
	salvagePatience = 30 * time.Minute
)

func coves(c config.Config) string { return filepath.Join(c.Folders.Data, "coves") }

func releaseFolder(c config.Config, key snapshot.Key) string {
	return filepath.Join(coves(c), filepath.Base(sandbox.ReleaseOf(key.Engine)))
}

// keepCove keeps a copy of the running cove, unless this very build is kept already. A hard link would change with what it is a link to.
func keepCove(c config.Config, key snapshot.Key, made snapshot.Maker) error {
	dir := releaseFolder(c, key)
	if have, err := readMaker(dir); err == nil && have == made {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return err
	}
	own, err := os.Open("/proc/self/exe") // the running one, also when its file was replaced
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }()
	// Sandboxes are other users where cove is root, and run it.
	if err := durable.Replace(filepath.Join(dir, coveName), 0o755, own); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, madeName), 0o600, strings.NewReader(string(text)+"\n"))
}

func readMaker(dir string) (m snapshot.Maker, err error) {
	text, err := os.ReadFile(filepath.Join(dir, madeName))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, coveName))
	}
	return m, err
}

// keptCove returns the cove that can restore what has that key, or "".
func keptCove(c config.Config, key snapshot.Key) (path string, size int64) {
	path = filepath.Join(releaseFolder(c, key), coveName)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", 0
	}
	return path, info.Size()
}

// withUpgrades completes the ground of sessions with what outlives upgrades of cove.
func withUpgrades(c config.Config, b ondisk.Base, g *ondisk.Ground, made snapshot.Maker) *ondisk.Ground {
	own := g.Key
	g.Made = made
	g.Keep = func() error { return keepCove(c, own, made) }
	g.Kept = func(key snapshot.Key) (string, int64) { return keptCove(c, key) }
	g.Accepts = accepts
	g.Salvage = func(ctx context.Context, from *snapshot.Snapshot, use func(io.Reader) error) error {
		program, _ := keptCove(c, from.Manifest.Key)
		if sandbox.ReleaseOf(from.Manifest.Key.Engine) == sandbox.ReleaseOf(own.Engine) {
			program = "/proc/self/exe" // what does not fit is something that its files do not depend on
		}
		if program == "" {
			return problem.New(problem.CoveMissing, "the cove that could read them was not kept").
				WithHint("use " + from.Manifest.Made.String() + " to read it; nothing is changed until then")
		}
		folder, err := sandbox.HostFolderOf(from.Checkpoint()) // another cove is told a path
		if err != nil {
			return err
		}
		return salvageWith(ctx, c, program, cli.Salvage{Image: folder, Base: b, Key: from.Manifest.Key, Variables: c.Session.CarryVariables}, use)
	}
	return g
}

// accepts says whether this cove speaks with what runs inside a sandbox that was saved with that as its Key.Guest.
func accepts(guest string) bool {
	version, err := strconv.Atoi(guest)
	return err == nil && version >= wire.Oldest && version <= wire.Version
}

// salvageWith has another cove write the files of a snapshot to use. It gets the folders that it needs and nothing else of our settings, which it
// may not know; see salvage.
func salvageWith(ctx context.Context, c config.Config, program string, what cli.Salvage, use func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, salvagePatience)
	defer cancel()
	question, err := json.Marshal(what)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, cli.SalvageArgs()...)
	cmd.Args[0] = "cove"                                                  // the path of the running one is how gVisor calls its own commands
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it has a sandbox to end
	cmd.WaitDelay = 30 * time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "COVE_CONFIG=" + os.DevNull, "COVE_HOME=" + c.Folders.Data, "COVE_RUNTIME=" + c.Folders.Runtime, "COVE_PYTHON=" + c.Packages.Python}
	if c.Encryption.Key != "" { // with which it opens what is sealed
		cmd.Env = append(cmd.Env, "COVE_ENCRYPTION_KEY="+c.Encryption.Key, "COVE_ENCRYPTION_MEMORY="+c.Encryption.Memory, "COVE_SERVER_FOLDER="+c.Folders.Server)
	}
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(string(question))
	var said strings.Builder
	cmd.Stderr = &cut{w: &said, left: 4 << 10}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the cove that can read it: %w", err)
	}
	archive := bufio.NewReader(out)
	_, err = archive.Peek(1)
	switch {
	case err == nil:
		err = use(archive)
	case errors.Is(err, io.EOF):
		err = errors.New("the cove that can read it wrote nothing")
	}
	_, _ = io.Copy(io.Discard, archive)
	failed := cmd.Wait()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return problem.New(problem.SalvageTimeout, "the cove that can read it was not done within "+salvagePatience.String()).WithCause(err)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case failed != nil && ctx.Err() == nil:
		return problem.New(problem.SalvageFailed, "the cove that can read it failed: "+strings.TrimSpace(said.String())).WithCause(errors.Join(err, failed))
	}
	return err
}

// cut passes the first bytes on and drops the rest.
type cut struct {
	w    io.Writer
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if _, err := c.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// salvage writes the files of a snapshot of this cove's to w.
func salvage(ctx context.Context, c config.Config, what cli.Salvage, w io.Writer) error {
	c.Sandbox.Engine, c.Packages.Set = what.Base.Engine, what.Base.Packages
	engine, err := newEngine(c)
	if err != nil {
		return err
	}
	c.Packages.System = nil // a snapshot is read with the layer that it was saved with
	env, err := environment(ctx, c, what.Key.Environment, io.Discard)
	if err != nil {
		return err
	}
	o := session.Options{Engine: engine, Env: env, Limits: what.Base.Limits.Sandbox(), Checkpoint: sandbox.CheckpointIn(what.Image), Volumes: volumesOf(c, what.Base.Volumes)}
	if what.Key.Layers {
		if o.Packages, err = newPackages(c, env, io.Discard); err != nil {
			return err
		}
	}
	o.Kernels = what.Base.Kernels
	return session.Salvage(ctx, o, what.Variables, w)
}
