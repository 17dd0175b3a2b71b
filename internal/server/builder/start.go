package builder

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

// readyEvery is how long a ready command that has failed is not asked again.
const readyEvery = 500 * time.Millisecond

// StartLabel is the label of the process of a start command.
const StartLabel = "start"

// portReady is the command by which E2B's libraries wait for a port. The guest knows that without the program ss, which reads from a socket that gVisor does not have.
var portReady = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[ -n "\$\(ss -Htuln sport = :(\d{1,5})\)" \]$`) })

// start starts the start command, and waits until it is ready.
func (b *build) start(ctx context.Context) error {
	id := ""
	if b.Recipe.Start != "" {
		b.say(Info, fmt.Sprintf("[start] %.500s", b.Recipe.Start))
		if err := b.stopOthers(ctx); err != nil {
			return err
		}
		start := process.Start{Args: []string{b.shell, "-c", b.Recipe.Start}, Dir: b.Dir, Env: b.Env, Root: b.User == "root", Label: StartLabel}
		info, err := b.Hub.StartProcess(ctx, b.Who, b.Session, start)
		if err != nil {
			return err
		}
		id = info.ID
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.ReadyTime, failedf("the start command was not ready within %s", b.ReadyTime))
	defer cancel()
	for {
		if b.Recipe.Ready == "" {
			return b.failed(ctx, id)
		}
		ready, err := b.ready(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && !ready {
			err = b.failed(ctx, id)
		}
		if err != nil || ready {
			return err
		}
		select {
		case <-time.After(readyEvery):
		case <-ctx.Done():
		}
	}
}

// ready asks the ready command.
func (b *build) ready(ctx context.Context) (bool, error) {
	if found := portReady().FindStringSubmatch(strings.TrimSpace(b.Recipe.Ready)); found != nil {
		all, err := b.Hub.Ports(ctx, b.Who, b.Session)
		for _, p := range all {
			if strconv.Itoa(p.Number) == found[1] {
				return true, nil
			}
		}
		return false, err
	}
	l := lines{say: func(level Level, text string) { b.say(level, "[ready] "+text) }}
	start := b.as(b.User, b.Recipe.Ready)
	start.Timeout = b.ReadyTime
	exit, err := b.exec(ctx, start, l.take)
	l.end()
	return err == nil && exit.Status() == 0, err
}

// failed says whether the start command has ended, other than well.
func (b *build) failed(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	info, err := b.Hub.Process(ctx, b.Who, b.Session, id)
	if err != nil || info.Exit == nil || info.Exit.Status() == 0 {
		return err
	}
	l := lines{say: func(Level, string) {}}
	if events, err := b.Hub.FollowProcess(ctx, b.Who, b.Session, id, info.Kept); err == nil {
		for e, err := range events {
			if err != nil || e.Kind == process.Ended {
				break
			}
			l.take(e.Kind, e.Data)
		}
	}
	l.end()
	return failed(strings.TrimSuffix(fmt.Sprintf("the start command has ended with status %d: %s", info.Exit.Status(), strings.Join(l.last, "\n")), ": "))
}

// stopOthers ends the start command of what the session was forked from: the recipe's own goes in its place.
func (b *build) stopOthers(ctx context.Context) error {
	all, err := b.Hub.Processes(ctx, b.Who, b.Session)
	for _, p := range all {
		if p.Label == StartLabel && p.Exit == nil && err == nil {
			err = b.Hub.SignalProcess(ctx, b.Who, b.Session, p.ID, "KILL", true)
			if problem.Has(err, problem.ProcessEnded) {
				err = nil
			}
		}
	}
	return err
}
