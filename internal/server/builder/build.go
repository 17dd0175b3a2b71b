package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Programs are what steps run.
type Programs interface {
	CheckProgram(ctx context.Context, who auth.Principal, code string) error
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
	SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error
	Process(ctx context.Context, who auth.Principal, session, id string) (process.Info, error)
	Processes(ctx context.Context, who auth.Principal, session string) ([]process.Info, error)
}

// Session is what a build is made in.
type Session interface {
	MayBeginFrom(image string) (named bool, err error)
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	UseFiles(ctx context.Context, who auth.Principal, session string, u hub.FilesUse, use func(ctx context.Context, f guestlink.Files) error) error
	Ports(ctx context.Context, who auth.Principal, session string) ([]process.Port, error)
	NetworkConnections(ctx context.Context, who auth.Principal, session string) ([]egress.Event, error)
}

// Hub is what a build needs of the server. *hub.Hub has it.
type Hub interface {
	Programs
	Session
}

// Level says how grave a line of a build's log is.
type Level string

// The levels.
const (
	Info Level = "info"
	Warn Level = "warn"
	Bad  Level = "error"
)

// Said is a line of a build's log.
type Said struct {
	At    time.Time
	Level Level
	Step  int // as that of a Fault
	Text  string
}

// Setting is what commands run with: what the steps have set.
type Setting struct {
	Env  map[string]string
	Dir  string // absolute
	User string // "user" or "root"
}

// Options say what to build, and where.
type Options struct {
	Hub     Hub
	Who     auth.Principal
	Session string // that becomes what the recipe says. It is spoiled where the build fails
	Root    bool   // it has a root
	Recipe  Recipe
	From    Setting // what is set before the first step; the zero value is a session's own
	Done    int     // so many steps have been done in the session, and with one more than there are steps the start command runs: what they set is still set
	// Archive opens the archive of a copy, by the name that the step has for it.
	Archive func(ctx context.Context, name string) (io.ReadCloser, error)
	// Log gets the lines of the log, one after the other.
	Log func(Said)
	// Allowed is asked before each step whether the build may go on; nil: it may.
	Allowed   func(ctx context.Context) error
	StepTime  time.Duration // the longest that a step may take; 0: half an hour
	ReadyTime time.Duration // that the start command may take until it is ready; 0: five minutes
}

// homes are the users, and their folders.
var homes = map[string]string{"user": "/home/user", "root": "/root"}

type build struct {
	Options
	Setting
	args map[string]string
	own  map[string]string // the session's variables, once they are needed
	step int
	// shell runs commands: bash, or where an image has none, sh.
	shell string
}

// Build does the steps of a recipe in a session, and starts its start command there. It ends with the context, and so does what it runs then. What fails by the recipe or the commands in it is
// a *Fault; other errors are the server's, of the problems that the hub's methods have.
func Build(ctx context.Context, o Options) (Setting, error) {
	if err := o.Recipe.Check(); err != nil {
		return Setting{}, err
	}
	if o.StepTime <= 0 {
		o.StepTime = 30 * time.Minute
	}
	if o.ReadyTime <= 0 {
		o.ReadyTime = 5 * time.Minute
	}
	b := &build{Options: o, Setting: o.From, args: map[string]string{}, shell: "/bin/bash"}
	b.Env = maps.Clone(b.Env)
	if b.Env == nil {
		b.Env = map[string]string{}
	}
	if b.User == "" {
		b.User = "user"
	}
	if b.Dir == "" {
		b.Dir = homes[b.User]
	}
	if err := b.begin(ctx); err != nil {
		return Setting{}, b.fault(ctx, o.Recipe.Line, err)
	}
	for i, s := range o.Recipe.Steps {
		b.step = i + 1
		if err := b.next(ctx, s); err != nil {
			return Setting{}, b.fault(ctx, s.Line, err)
		}
	}
	b.step = len(o.Recipe.Steps) + 1
	if o.Done < b.step && (o.Recipe.Start != "" || o.Recipe.Ready != "") {
		if err := b.start(ctx); err != nil {
			return Setting{}, b.fault(ctx, 0, err)
		}
	}
	return b.Setting, nil
}

// begin looks at what the session begins from.
func (b *build) begin(ctx context.Context) error {
	if !b.Recipe.Fetched {
		if note, _ := Begins(b.Recipe.Image); note != "" {
			b.say(Warn, note)
		}
		return nil
	}
	b.say(Info, "the session begins from the image "+b.Recipe.Image)
	_, err := b.exec(ctx, b.aside(":"), func(process.Kind, []byte) {})
	if problem.Has(err, problem.ProgramMissing) {
		b.shell = "/bin/sh"
		b.say(Warn, "the image has no bash: commands of the build run in sh, and what clients run in bash will not be found")
		return nil
	}
	return err
}

// failed is why a step fails that its author can do something about.
type failed string

// Error implements error.
func (f failed) Error() string { return string(f) }

func failedf(format string, args ...any) error { return failed(fmt.Sprintf(format, args...)) }

// fault is an error with the step that it is of. That the context ended, and what is the server's own, stays as it is: it may say what is nobody else's.
func (b *build) fault(ctx context.Context, line int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	why, own := errors.AsType[failed](err)
	text := string(why)
	if p, is := errors.AsType[*problem.Error](err); !own && is && p.Kind != problem.Internal {
		if own, text = true, p.Message; p.Hint != "" {
			text += " (" + p.Hint + ")"
		}
	}
	if !own {
		return err
	}
	b.say(Bad, text)
	return &Fault{Step: b.step, Line: line, Message: text}
}

func (b *build) say(level Level, text string) {
	if b.Log != nil {
		b.Log(Said{At: time.Now().UTC(), Level: level, Step: b.step, Text: text})
	}
}

// next does one step, or where it has been done sets what it sets.
func (b *build) next(ctx context.Context, s Step) error {
	done := b.step <= b.Done
	if err := ctx.Err(); err != nil {
		return err
	}
	if !done { // the quota of processor time may have been used up meanwhile
		if err := b.Hub.CheckProgram(ctx, b.Who, ""); err != nil {
			return err
		}
	}
	if b.Allowed != nil && !done {
		if err := b.Allowed(ctx); err != nil {
			return err
		}
	}
	mark := ""
	if done {
		mark = "CACHED "
	}
	b.say(Info, fmt.Sprintf("%s[%d/%d] %s", mark, b.step, len(b.Recipe.Steps), s.shown()))
	switch s.Kind {
	case Run:
		if done {
			return nil
		}
		return b.run(ctx, s)
	case Copy:
		if done {
			return nil
		}
		return b.copy(ctx, s)
	case Env, Arg:
		return b.set(ctx, s)
	case User:
		user, err := b.userOf(ctx, s.User)
		if err != nil {
			return err
		}
		b.User = user
		return nil
	default:
		return b.enter(ctx, s.Dir, done)
	}
}

// shown is a step for the log.
func (s Step) shown() string {
	switch s.Kind {
	case Run:
		return fmt.Sprintf("RUN %.500s", s.Command)
	case Copy:
		return fmt.Sprintf("COPY %.300s %.200s", strings.Join(s.Sources, " "), s.To)
	case Workdir:
		return "WORKDIR " + s.Dir
	case User:
		return "USER " + s.User
	}
	var names []string
	for i := 0; i < len(s.Pairs); i += 2 {
		names = append(names, s.Pairs[i]) // values may be secrets
	}
	return string(s.Kind) + " " + strings.Join(names, " ")
}

// lookup returns the function by which texts are expanded: variables that were set, of ARG, and the session's own.
func (b *build) lookup(ctx context.Context, failed *error) func(name string) string {
	return func(name string) string {
		if value, ok := b.Env[name]; ok {
			return value
		}
		if value, ok := b.args[name]; ok {
			return value
		}
		if b.own == nil && *failed == nil {
			b.own = map[string]string{}
			var text strings.Builder
			if _, err := b.exec(ctx, b.aside("env -0"), func(_ process.Kind, data []byte) {
				text.Write(data[:min(len(data), mostOwn-text.Len())])
			}); err != nil {
				*failed = err
			}
			for pair := range strings.SplitSeq(text.String(), "\x00") {
				if name, value, ok := strings.Cut(pair, "="); ok {
					b.own[name] = value
				}
			}
		}
		return b.own[name]
	}
}

// mostOwn bounds what a session says of its variables, in bytes.
const mostOwn = 1 << 20

// aside is a command that the recipe does not have.
func (b *build) aside(line string) process.Start {
	return process.Start{Args: []string{b.shell, "-c", line}, Dir: homes["user"], Env: b.Env, Timeout: time.Minute}
}

func (b *build) expand(ctx context.Context, text string) (out string, err error) {
	out = expand(text, b.lookup(ctx, &err))
	return out, err
}

func (b *build) set(ctx context.Context, s Step) error {
	values := make([]string, 0, len(s.Pairs)/2)
	for i := 1; i < len(s.Pairs); i += 2 { // all by what there was before
		value, err := b.expand(ctx, s.Pairs[i])
		if err != nil {
			return err
		}
		values = append(values, value)
	}
	for i, value := range values {
		if s.Kind == Env {
			b.Env[s.Pairs[2*i]] = value
		} else {
			b.args[s.Pairs[2*i]] = value
		}
	}
	return process.CheckEnvironment(b.passing())
}

// passing are the variables of a command of the build.
func (b *build) passing() map[string]string {
	all := maps.Clone(b.args)
	maps.Copy(all, b.Env)
	return all
}

// userOf returns the user that a text means: a name, or one and a group.
func (b *build) userOf(ctx context.Context, text string) (string, error) {
	text, err := b.expand(ctx, text)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(text, ":")
	switch name {
	case "0":
		name = "root"
	case "1000":
		name = "user"
	}
	if homes[name] == "" {
		return "", failedf("invalid username: '%.80s'; there are user and root", name)
	}
	if name == "root" && !b.Root {
		b.say(Warn, "the sandboxes of this server have no root: what is to run as root runs as user")
		name = "user"
	}
	return name, nil
}

// enter makes a folder where it is missing, and has what follows run there.
func (b *build) enter(ctx context.Context, dir string, done bool) error {
	dir, err := b.expand(ctx, dir)
	if err != nil {
		return err
	}
	if !path.IsAbs(dir) {
		dir = path.Join(b.Dir, dir)
	}
	b.Dir = path.Clean(dir)
	if done {
		return nil
	}
	return b.script(ctx, "WORKDIR "+b.Dir, makeFolders+`make "$1"`, b.User, b.Dir)
}

// makeFolders is a function of bash that makes a folder and those that it is in, as $owner's.
const makeFolders = `set -e
owner=${OWNER_OF_MADE:-}
make() { [ -d "$1" ] || { make "$(dirname "$1")"; mkdir "$1"; [ -z "$owner" ] || chown "$owner:" "$1"; }; }
`

// script runs bash with a text of cove's own: as root where the session has one, with what it makes owned by a user.
func (b *build) script(ctx context.Context, about, text, owner string, args ...string) error {
	start := process.Start{Args: slices.Concat([]string{b.shell, "-c", text, "build"}, args), Dir: "/", Timeout: b.StepTime, Root: b.Root, Env: map[string]string{}}
	if b.Root {
		start.Env["OWNER_OF_MADE"] = owner
	}
	return b.command(ctx, about, start)
}

func (b *build) run(ctx context.Context, s Step) error {
	user := b.User
	if s.User != "" {
		var err error
		if user, err = b.userOf(ctx, s.User); err != nil {
			if _, own := errors.AsType[failed](err); !own {
				return err
			}
			return failedf("failed to run command '%.200s': command failed: unauthenticated: %v", s.Command, err)
		}
	}
	return b.command(ctx, s.Command, b.as(user, s.Command))
}

// as is a command of the recipe's.
func (b *build) as(user, line string) process.Start {
	return process.Start{Args: []string{b.shell, "-c", line}, Dir: b.Dir, Env: b.passing(), Root: user == "root", Timeout: b.StepTime}
}

// command runs a command to its end, with its output in the log.
func (b *build) command(ctx context.Context, about string, start process.Start) error {
	l := lines{say: b.say}
	exit, err := b.exec(ctx, start, l.take)
	l.end()
	if err != nil {
		return err
	}
	if exit.Reason == process.ForTime {
		return failedf("failed to run command '%.200s': it took longer than %s", about, start.Timeout)
	}
	if status := exit.Status(); status != 0 {
		text := fmt.Sprintf("failed to run command '%.200s': exit status %d", about, status)
		if exit.Reason == process.ForMemory {
			text += ", because the session's memory was full"
		}
		if last := strings.Join(l.last, "\n"); last != "" {
			text += ": " + last
		}
		return failed(text + b.reason(ctx))
	}
	return nil
}

// reason is what cove knows of why a command may have failed, or "".
func (b *build) reason(ctx context.Context) string {
	var why []string
	row, err := b.Hub.Session(ctx, b.Who, b.Session)
	if err == nil && (row.Network == nil || len(row.Network.Allow) == 0) {
		why = append(why, "the build has no network: the operator can allow what it fetches from, as a package index, in network.allow")
	} else if err == nil {
		events, _ := b.Hub.NetworkConnections(ctx, b.Who, b.Session)
		var refused []string
		for _, e := range events {
			if to := e.Host + ":" + strconv.Itoa(e.Port); e.Refused != "" && len(refused) < 5 && !slices.Contains(refused, to) {
				refused = append(refused, to)
			}
		}
		if len(refused) > 0 {
			why = append(why, "the build was not allowed to connect to "+strings.Join(refused, ", "))
		}
	}
	if !b.Root {
		why = append(why, "the sandboxes of this server have no root: the operator can set sandbox.root")
	}
	if len(why) == 0 {
		return ""
	}
	return "\n(" + strings.Join(why, "; ") + ")"
}

// exec runs a command to its end. It is ended, with all that it has started, where the context ends.
func (b *build) exec(ctx context.Context, start process.Start, out func(kind process.Kind, data []byte)) (process.Exit, error) {
	start.Followed, start.Label = true, "build"
	info, err := b.Hub.StartProcess(ctx, b.Who, b.Session, start)
	if err != nil {
		return process.Exit{}, err
	}
	events, err := b.Hub.FollowProcess(ctx, b.Who, b.Session, info.ID, 0)
	if err == nil {
		for e, failed := range events {
			if err = failed; err != nil {
				break
			}
			if e.Kind == process.Ended && e.Exit != nil {
				return *e.Exit, nil
			}
			out(e.Kind, e.Data)
		}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_ = b.Hub.SignalProcess(late, b.Who, b.Session, info.ID, "KILL", true) // it may have ended
	if err == nil {
		err = errors.New("the command's end was not told")
	}
	return process.Exit{}, err
}
