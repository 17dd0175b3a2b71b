package debs

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
)

//go:embed install.sh
var script string

// filesName is the tar file with what was installed, in the workspace: what a program writes to its output is bounded, and a file is not held in memory.
const filesName = "files.tar"

// Bounds of one installation.
const (
	longest   = time.Hour
	leaving   = 30 * time.Second // to end the sandbox
	tellEvery = 2 * time.Second
	mostSaid  = 64 << 10 // bytes of apt's words that are kept
	mostShown = 5        // lines of apt's errors that are told
	longLine  = 300
	// leastSystem is what apt's lists of packages take, with some room for packages, in bytes.
	leastSystem = 256 << 20
)

// Apt is a Maker that has apt install packages in a sandbox that is thrown away.
type Apt struct {
	Engine sandbox.Engine
	Limits sandbox.Limits // with a System: apt needs a root
}

var _ Maker = Apt{}

// Make implements Maker.
func (a Apt) Make(ctx context.Context, packages []string, files, progress io.Writer) (err error) {
	if a.Limits.System < leastSystem {
		return problem.New(problem.SystemPackagesFailed, fmt.Sprintf("system packages take a sandbox in which %d MB can be installed, and sandbox.system allows %d MB", leastSystem>>20, a.Limits.System>>20)).
			WithHint("raise sandbox.system (COVE_SYSTEM)")
	}
	rules, options, err := sources(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longest, problem.New(problem.SystemPackagesFailed, "the installation of the system packages took longer than "+longest.String()).
		WithHint("see that the mirror of apt is near, or name fewer packages in packages.system"))
	defer cancel()
	s, err := a.Engine.Start(ctx, sandbox.Spec{ID: sandbox.NewID("build"), Limits: a.Limits})
	if err != nil {
		return err
	}
	end := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		_ = s.Stop(ctx) // what is left of it goes with the next sweep
	})
	defer end()
	defer context.AfterFunc(ctx, end)()
	l, err := guestlink.Dial(ctx, s, guestlink.Session{})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	stop, err := l.ServeNetwork(ctx, egress.New(egress.Options{Operator: rules}))
	if err != nil {
		return err
	}
	defer stop()
	said := &listener{progress: progress}
	args := append([]string{"/usr/local/bin/sudo", "sh", "-c", script, "install", filesName, strconv.Itoa(len(options))}, options...)
	code, err := l.Run(ctx, wire.ProcessSpec{Args: append(args, packages...), Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}}, said, said)
	if err == nil && code == 0 {
		_, err = l.ReadFile(ctx, filesName, a.Limits.OrDefault().Workspace, files)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && ended(s):
		return fmt.Errorf("install the system packages: %w", errors.Join(s.Cause(), err))
	case err != nil:
		return err
	case code != 0:
		return failure(said.text())
	}
	return nil
}

// ended says whether a sandbox has ended. Its connection ends a moment before it does.
func ended(s sandbox.Sandbox) bool {
	select {
	case <-s.Done():
	case <-time.After(time.Second):
		return false
	}
	return s.Cause() != nil
}

// listener hears what apt says, tells now and then how far it is, and keeps the end.
type listener struct {
	progress io.Writer
	told     time.Time
	kept     []byte
	line     []byte
}

var step = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(Unpacking|Setting up) ([a-z0-9][a-z0-9+.:-]{0,100})|(Get:[0-9]{1,6}) )`)
})

// Write implements io.Writer.
func (l *listener) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	if len(l.kept) > 2*mostSaid {
		l.kept = append(l.kept[:0], l.kept[len(l.kept)-mostSaid:]...)
	}
	for rest := p; ; {
		head, tail, found := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, head[:min(len(head), longLine-len(l.line))]...)
		if !found {
			return len(p), nil
		}
		l.tell(string(l.line))
		l.line, rest = l.line[:0], tail
	}
}

// tell tells of a step, in words of which none is apt's but a package's name.
func (l *listener) tell(line string) {
	found := step().FindStringSubmatch(line)
	if found == nil || time.Since(l.told) < tellEvery {
		return
	}
	l.told = time.Now()
	switch {
	case found[3] != "":
		_, _ = fmt.Fprintln(l.progress, "  downloading ...")
	case found[1] == "Unpacking":
		_, _ = fmt.Fprintf(l.progress, "  unpacking %s\n", found[2])
	default:
		_, _ = fmt.Fprintf(l.progress, "  setting up %s\n", found[2])
	}
}

func (l *listener) text() string { return string(l.kept) }

var unknown = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^E: (?:Unable to locate package ([^\s]{1,100})|Package '([^']{1,100})' has no installation candidate|(?:Version '[^']{1,100}' for '|Couldn't find any package by (?:regex|glob) ')([^']{1,100})')`)
})

// failure is why apt failed, by what it said.
func failure(said string) error {
	var missing, faults []string
	for _, found := range unknown().FindAllStringSubmatch(said, -1) {
		for _, one := range found[1:] {
			if one = clean(one); one != "" && len(missing) < 20 && !slices.Contains(missing, one) {
				missing = append(missing, one)
			}
		}
	}
	for line := range strings.Lines(said) {
		if line = clean(line); strings.HasPrefix(line, "E: ") && len(faults) < mostShown {
			faults = append(faults, line)
		}
	}
	cause := errors.New(strings.Join(faults, "\n"))
	unreachable := strings.Contains(said, "Some index files failed to download") || strings.Contains(said, "Failed to fetch")
	switch {
	case strings.Contains(said, "No space left on device") || strings.Contains(said, "You don't have enough free space"):
		return problem.New(problem.SystemPackagesFailed, "there is no room for the system packages in the sandbox that they are installed in").
			WithHint("raise sandbox.system (COVE_SYSTEM), or name fewer packages in packages.system").WithCause(cause)
	case len(missing) > 0 && !unreachable:
		return problem.New(problem.SystemPackageUnknown, "there is no system package "+strings.Join(missing, ", ")+" in the package sources of this machine").
			WithHint("correct packages.system; `apt-cache search WORD` finds names").WithCause(cause)
	case len(missing) > 0:
		return problem.New(problem.SystemPackagesFailed, "the package sources of this machine could not all be reached, and the others do not have "+strings.Join(missing, ", ")).
			WithHint("see that `apt-get update` works on this machine, and that packages.system is right").WithCause(cause)
	case unreachable:
		return problem.New(problem.SystemPackagesFailed, "the package sources of this machine could not be reached").
			WithHint("see that `apt-get update` works on this machine; to go on without, leave packages.system empty").WithCause(cause)
	}
	return problem.New(problem.SystemPackagesFailed, "the system packages could not be installed").
		WithHint("see that `apt-get install --simulate` of packages.system works on this machine").WithCause(cause)
}

// clean makes a line of the sandbox's fit to print.
func clean(line string) string {
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	return strings.ToValidUTF8(line[:min(len(line), longLine)], "")
}
